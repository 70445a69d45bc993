/**
 * An asynchronous storage of chunks in memory, whose commits can be delayed, refused, or lost in a crash.
 *
 * Invariant: `state` changes by whole commits only; every answer comes in a later turn.
 */

import type {
  ChunkName,
  ChunkStore,
  Commit,
  FoundChunk,
  ReadAhead,
} from '../../../js/src/storage/buffered/chunk-store.ts';
import { SlotError } from '../../../js/src/storage/device.ts';

/** The content that survives a crash. */
export class ChunkState {
  rows: Uint8Array[] = [];
  chunks = new Map<string, Uint8Array>();
  owner: object | undefined;
  /** Bytes that commits may still add; undefined: any number. */
  room: number | undefined;
  #durable: Pick<ChunkState, 'rows' | 'chunks'> = { rows: [], chunks: new Map() };

  /** The present content survives a loss of power too. */
  keep(): void {
    this.#durable = { rows: [...this.rows], chunks: new Map(this.chunks) };
  }

  /** Loses the commits since the last strict commit; the holder of the state has lost it. */
  losePower(): void {
    this.rows = [...this.#durable.rows];
    this.chunks = new Map(this.#durable.chunks);
    this.owner = undefined;
  }
}

/** One opening of a state. */
export class FakeChunks implements ChunkStore {
  readonly kind = 'fake';
  readonly rowBytesMax = 256 * 1024;
  readonly state: ChunkState;
  readonly commits: Commit[] = [];
  /** Transactions that only read. */
  reads = 0;
  /** Chunks that these transactions requested. */
  chunksRead = 0;
  /** The error that the next commit fails with. */
  failure: SlotError | undefined;
  /** Whether there is no room for a commit. */
  refuses: (commit: Commit) => boolean = () => false;
  /** When a chunk that is read ahead arrives. */
  reachesAhead: () => Promise<void> = later;
  #left = Number.POSITIVE_INFINITY;
  #died: () => void = () => undefined;
  #gate: Promise<void> = Promise.resolve();
  #open: () => void = () => undefined;

  constructor(state = new ChunkState()) {
    this.state = state;
  }

  /** Delays commits until `resume`. */
  pause(): void {
    this.#gate = new Promise((resolve) => {
      this.#open = resolve;
    });
  }

  resume(): void {
    this.#open();
  }

  async takeOver(
    wanted: (rows: Uint8Array[]) => readonly ChunkName[],
    ahead?: ReadAhead,
  ): Promise<(Uint8Array | undefined)[]> {
    await later();
    this.state.owner = this;
    const first = this.#found(wanted([...this.state.rows]));
    ahead?.((name) => {
      const [chunk] = this.#found([name]);
      return this.reachesAhead().then(() => chunk);
    });
    return first;
  }

  async rows(): Promise<Uint8Array[]> {
    await later();
    if (this.state.owner !== this) throw new SlotError('closed', 'Another tab or worker has taken the store over.');
    return [...this.state.rows];
  }

  async read(names: readonly ChunkName[]): Promise<FoundChunk[]> {
    this.reads++;
    this.chunksRead += names.length;
    await later();
    return this.#found(names);
  }

  /** Cuts this opening off, unless another has taken the state over: nothing that it sends arrives any more. */
  die(): void {
    if (this.state.owner === this) this.state.owner = undefined;
  }

  /** Ends after this many more commits; resolves then. */
  dieAfter(commits: number): Promise<void> {
    this.#left = commits;
    return new Promise((resolve) => {
      this.#died = resolve;
    });
  }

  async commit(commit: Commit): Promise<void> {
    this.commits.push(commit);
    if (this.#left === 0) {
      this.die();
      this.#died();
    }
    this.#left--;
    await this.#gate;
    await later();
    if (this.failure !== undefined) throw this.failure;
    if (this.refuses(commit)) throw new SlotError('full', 'The storage has no room for that.');
    const { state } = this;
    if (state.owner !== this) throw new SlotError('closed', 'Another tab or worker has taken the store over.');
    const bytes = commit.puts.reduce((sum, put) => sum + put.bytes.length, commit.row.length);
    if (state.room !== undefined && bytes > state.room)
      throw new SlotError('full', 'The storage has no room for that.');
    if (state.room !== undefined) state.room -= bytes;
    if (commit.folds) state.rows.length = 0;
    state.rows.push(commit.row);
    for (const { slot, index } of commit.drops) {
      for (const key of [...state.chunks.keys()]) {
        const [one = 0, at = 0] = key.split('/').map(Number);
        if (one === slot && at >= index) state.chunks.delete(key);
      }
    }
    for (const { slot, index, bytes } of commit.puts) state.chunks.set(`${slot}/${index}`, bytes);
    if (commit.isStrict) state.keep();
  }

  async close(): Promise<void> {}

  #found(names: readonly ChunkName[]): (Uint8Array | undefined)[] {
    return names.map(({ slot, index }) => this.state.chunks.get(`${slot}/${index}`)?.slice());
  }
}

function later(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}
