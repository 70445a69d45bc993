/**
 * Chunks and journal of a store in Deno KV.
 *
 *     [..., 'store', name]                                  the head: holder, first row that counts and a later one, whether the reserve was given
 *     [..., 'data', name, 'row', number, part]              rows of the journal; part -1: whole, of a commit of one operation
 *     [..., 'data', name, 'chunk', slot, index, generation] chunks, without the zeros at their end
 *     [..., 'data', name, 'debris', number, part]           what the commit of that number may leave behind
 *     [..., 'data', name, 'reserve', piece, part]           room that is set aside
 *
 * A commit is one atomic operation where it fits into one. It overwrites the chunks that were there, and its row counts because it
 * exists, which costs no write of the head. A larger commit stages its chunks under a generation of their own, in as many operations
 * as necessary. The last operation also makes the head count the row. Until then nobody reads the staged chunks, and after that
 * nobody reads the chunks that they replaced. This holder or the next one then deletes the chunks that nobody reads: a note of both
 * kinds is written before the first chunk is.
 *
 * Every operation checks the head, so operations of a holder whose store was taken over fail as a whole (head.ts). Every read asks
 * for the head along with the chunks.
 *
 * Invariant: no chunk exists that is neither in the rows that count nor in a note. Generations are numbers of commits and are never
 * used twice.
 */

import { VarveError } from '../../errors.ts';
import { trimmed } from '../buffered/chunk.ts';
import type {
  ChunkName,
  ChunkPut,
  ChunkReserve,
  ChunkStore,
  Commit,
  FoundChunk,
  Need,
} from '../buffered/chunk-store.ts';
import { EMPTY_ROW_BYTES } from '../buffered/journal-row.ts';
import { SlotError } from '../device.ts';
import { ChunkMap, chunksOf, runsOf, type StoredChunk } from './chunk-map.ts';
import { asked, type ClaimOptions, Head, taken } from './head.ts';
import { type Change, keyBytes, pack, READ_KEYS_MAX } from './pack.ts';
import { type Kv, type KvKey, type KvKeyPart, STRONG } from './platform.ts';
import { decodeDebris, decodeStoredRow, encodeDebris, encodeStoredRow, type StoredRow } from './row.ts';

/** Most bytes of the device's part of a row of the journal. */
const ROW_BYTES_MAX = 128 * 1024;
/** Instead of the number of a part: marks a row that is stored whole, and that counts because it exists. */
const WHOLE = -1;
/** How many reads are under way at once, at most. */
const READS_MAX = 8;

/**
 * The reserve: how many values each of its pieces has (no more than one operation can set), and how many pieces each need may use, from
 * the first one on. A flush must succeed before any room can be freed, and it writes a memtable of up to 2 MiB.
 */
const RESERVE_VALUES: readonly number[] = [12, 12, 8, 1, 1];
const RESERVE_VALUE_BYTES = 63 * 1024;
const PIECES: Readonly<Record<Need, number>> = { any: 1, full: 3, small: 5 };

/** Where a store is. */
interface StorePlace {
  readonly kv: Kv;
  readonly prefix: KvKey;
  readonly name: string;
}

/** A chunk on its way into the store. */
type Placed = StoredChunk & Pick<ChunkPut, 'bytes'>;

/** The part of Deno KV that one store has. */
export class DenoKvChunks implements ChunkStore {
  readonly kind = 'deno-kv';
  readonly rowBytesMax = ROW_BYTES_MAX;
  readonly #place: StorePlace;
  readonly #options: ClaimOptions;
  #head: Head | undefined;
  #chunks = new ChunkMap();
  /** The rows that count. */
  #rows: KvKey[] = [];
  /** The keys to delete, in this order. */
  #garbage: KvKey[] = [];
  #sweeping: Promise<void> = Promise.resolve();
  readonly reserve: ChunkReserve = {
    patienceMs: 0,
    wasGiven: () => this.#held().gaveReserve,
    complete: () => this.#completeReserve(),
    give: (need) => this.#giveReserve(PIECES[need]),
  };

  constructor(place: StorePlace, options: ClaimOptions) {
    this.#place = place;
    this.#options = options;
  }

  async takeOver(wanted: (rows: Uint8Array[]) => readonly ChunkName[]): Promise<FoundChunk[]> {
    if (!(await this.claim())) throw new SlotError('closed', 'There is no such store.');
    const head = this.#held();
    const rows = await this.#load();
    if (head.isErased) {
      await this.#clear();
      await head.write([], { isErased: false, first: head.last + 1 });
      return this.read(wanted([]));
    }
    // A number, and with it a generation, is used again only when nothing of it is left.
    await this.#sweep();
    return this.read(wanted(rows));
  }

  /** Claims the store, once no other holder has it; false where there is no store. */
  async claim(): Promise<boolean> {
    this.#head = await Head.claim(this.#place.kv, headKey(this.#place), this.#options);
    return this.#head !== undefined;
  }

  async read(names: readonly ChunkName[]): Promise<FoundChunk[]> {
    const found = new Array<FoundChunk>(names.length);
    let missing = names.map((_, i) => i);
    while (missing.length > 0) missing = await this.#readInto(found, names, missing);
    return found;
  }

  async rows(): Promise<Uint8Array[]> {
    const { first, last } = this.#held();
    const parts = new Map<number, Uint8Array[]>();
    for (const { key, value } of await this.#list('row')) {
      const number = key.at(-2) as number;
      if (number >= first && number <= last) parts.set(number, [...(parts.get(number) ?? []), value as Uint8Array]);
    }
    const rows = [...parts].sort(([a], [b]) => a - b).map(([, some]) => decodeStoredRow(some)?.row);
    return rows.filter((row) => row !== undefined && row.length > 0) as Uint8Array[];
  }

  async commit(commit: Commit): Promise<void> {
    const { row, drops, puts, folds } = commit;
    // Every commit is strict, so an empty one has nothing to do for the data that is stored already.
    if (row.length <= EMPTY_ROW_BYTES && drops.length + puts.length === 0) return;
    await this.#swept();
    const head = this.#held();
    const number = head.last + 1;
    const dropped = drops.flatMap(({ slot, index }) => [...this.#chunks.from(slot, index)]);
    const gone = new Set(dropped.map(({ slot, index }) => `${slot}/${index}`));
    const current = ({ slot, index }: ChunkName): number =>
      gone.has(`${slot}/${index}`) ? 0 : this.#chunks.get(slot, index);
    let placed = puts.map((put): Placed => ({ ...put, generation: current(put) || number }));
    let changes = this.#changes(number, commit, placed, !folds);
    changes.push(...dropped.map((one) => ({ key: this.#chunkKey(one) })));
    let groups = this.#pack(changes);
    let garbage: KvKey[] = [];
    if (groups.length > 1) {
      placed = puts.map((put): Placed => ({ ...put, generation: number }));
      const replaced = [...dropped, ...puts.map((put) => ({ ...put, generation: current(put) }))];
      const stale = replaced.filter(({ generation }) => generation > 0);
      const notes = encodeDebris({ staged: runsOf(placed), replaced: runsOf(stale) });
      const debris = notes.map((bytes, part): Change => ({ key: this.#key('debris', number, part), bytes }));
      changes = [...debris, ...this.#changes(number, commit, placed, false)];
      groups = this.#pack(changes);
      garbage = [...stale.map((one) => this.#chunkKey(one)), ...debris.map(({ key }) => key)];
    }
    const rows = changes.map(({ key }) => key).filter((key) => key.at(-3) === 'row');
    const whole = rows.find((key) => key.at(-1) === WHOLE);
    const last = groups.pop() ?? [];
    try {
      for (const group of groups) await head.write(group);
      if (whole !== undefined) await head.append(last, whole);
      else await head.write(last, { last: number, ...(folds ? { first: number } : {}) });
    } catch (error) {
      // After a refused commit the next one gets the same number: by then nothing that was staged under it may be left.
      if (groups.length > 0) this.#garbage.push(...changes.map(({ key }) => key).reverse());
      throw error;
    }
    apply(this.#chunks, drops, placed);
    // Rows that no longer count need no note: their numbers identify them.
    if (folds) garbage.unshift(...this.#rows.splice(0));
    this.#rows.push(...rows);
    this.#garbage.push(...garbage);
    this.#sweeping = this.#sweep();
    // The next commit gets the error of what fails here.
    this.#sweeping.catch(() => undefined);
  }

  /** Deletes the store. */
  async erase(): Promise<void> {
    const head = this.#held();
    await this.#load(true);
    await head.write([], { isErased: true });
    await this.#clear();
    await head.remove();
  }

  async close(): Promise<void> {
    await this.#sweeping.catch(() => undefined);
    await this.#head?.release();
    this.#head = undefined;
  }

  async #completeReserve(): Promise<boolean> {
    const there = new Set((await this.#list('reserve')).map(({ key }) => key.at(-2)));
    try {
      for (let piece = RESERVE_VALUES.length - 1; piece >= 0; piece--) {
        if (!there.has(piece)) await this.#held().write(this.#reserved(piece, new Uint8Array(RESERVE_VALUE_BYTES)));
      }
      if (this.#held().gaveReserve) await this.#held().write([], { gaveReserve: false });
      return true;
    } catch (error) {
      if (error instanceof SlotError && error.kind === 'full') return false;
      throw error;
    }
  }

  async #giveReserve(pieces: number): Promise<boolean> {
    const there = (await this.#list('reserve')).map(({ key }) => key.at(-2) as number);
    const piece = Math.min(...there);
    if (piece >= pieces) return false;
    await this.#held().write(this.#reserved(piece, undefined), { gaveReserve: true });
    return true;
  }

  /** The values of a piece of the reserve, to be set or deleted. */
  #reserved(piece: number, bytes: Uint8Array | undefined): Change[] {
    return Array.from({ length: RESERVE_VALUES[piece] ?? 0 }, (_, part) => ({
      key: this.#key('reserve', piece, part),
      bytes,
    }));
  }

  /** The values that a commit sets: chunks, then its row. The row counts because it exists, if it fits in one part and may do so. */
  #changes(number: number, { row, drops, folds }: Commit, placed: readonly Placed[], mayBeWhole: boolean): Change[] {
    let named: Iterable<StoredChunk> = placed.filter(({ generation }) => generation === number);
    if (folds) {
      const after = this.#chunks.copy();
      apply(after, drops, placed);
      named = after.all();
    }
    const parts = encodeStoredRow({ drops, runs: runsOf(named), row });
    const first = mayBeWhole && parts.length === 1 ? WHOLE : 0;
    return [
      ...placed.map((one): Change => ({ key: this.#chunkKey(one), bytes: trimmed(one.bytes) })),
      ...parts.map((bytes, part): Change => ({ key: this.#key('row', number, first + part), bytes })),
    ];
  }

  /** Reads the journal, and finds the keys to delete. A store that is deleted may lack rows. */
  async #load(mayLack = this.#held().isErased): Promise<Uint8Array[]> {
    const head = this.#held();
    const parts = new Map<number, Uint8Array[]>();
    const found = await this.#list('row');
    const keys = found.map(({ key }) => key);
    if (!head.isErased) this.#advance(keys, mayLack);
    for (const { key, value } of found) {
      const number = key.at(-2) as number;
      if (head.isErased || (number >= head.first && number <= head.last)) {
        parts.set(number, [...(parts.get(number) ?? []), value as Uint8Array]);
        this.#rows.push(key);
      } else this.#garbage.push(key);
    }
    const rows: Uint8Array[] = [];
    for (let number = head.first; number <= head.last; number++) {
      const row = decodeStoredRow(parts.get(number) ?? []);
      // When a store is deleted, all its chunks are deleted before its first row.
      if (row === undefined && !mayLack) throw missingRow(this.#place.name, number);
      if (row !== undefined) rows.push(this.#replay(row));
    }
    const notes = await this.#list('debris');
    for (const { key, value } of notes) {
      const { staged, replaced } = decodeDebris(value as Uint8Array);
      const isDone = (key.at(-2) as number) <= head.last;
      for (const chunk of chunksOf(isDone ? replaced : staged)) this.#garbage.push(this.#chunkKey(chunk));
    }
    this.#garbage.push(...notes.map(({ key }) => key));
    return rows.filter((row) => row.length > 0);
  }

  /** Makes the head count the rows that were appended after it was written. */
  #advance(rows: readonly KvKey[], mayLack: boolean): void {
    const head = this.#held();
    for (const key of rows) {
      const number = key.at(-2) as number;
      if (key.at(-1) !== WHOLE || number <= head.last) continue;
      if (number === head.last + 1) head.advance(number);
      else if (!mayLack) throw missingRow(this.#place.name, head.last + 1);
    }
  }

  #replay({ drops, runs, row }: StoredRow): Uint8Array {
    apply(this.#chunks, drops, chunksOf(runs));
    return row;
  }

  /** Deletes everything in the store except its head, chunks first. */
  async #clear(): Promise<void> {
    const chunks = [...this.#chunks.all()].map((one) => this.#chunkKey(one));
    chunks.push(...(await this.#list('reserve')).map(({ key }) => key));
    this.#garbage = [...chunks, ...this.#garbage, ...this.#rows.splice(0)];
    this.#chunks = new ChunkMap();
    await this.#sweep();
    // A damaged store may have chunks that only a missing row named.
    this.#garbage = (await this.#list('chunk')).map(({ key }) => key);
    await this.#sweep();
  }

  /** Reads some of the names; resolves with those whose chunks were replaced meanwhile. */
  async #readInto(found: FoundChunk[], names: readonly ChunkName[], which: readonly number[]): Promise<number[]> {
    const generations = new Map<number, number>();
    for (const i of which) {
      const { slot, index } = names[i] as ChunkName;
      const generation = this.#chunks.get(slot, index);
      if (generation > 0) generations.set(i, generation);
      else found[i] = undefined;
    }
    const wanted = [...generations].map(([i, generation]) => ({
      i,
      chunk: { ...(names[i] as ChunkName), generation },
    }));
    const values = await this.#values(wanted.map(({ chunk }) => this.#chunkKey(chunk)));
    const again: number[] = [];
    wanted.forEach(({ i, chunk: { slot, index, generation } }, at) => {
      const value = values[at];
      if (value instanceof Uint8Array) found[i] = value;
      else if (this.#chunks.get(slot, index) !== generation) again.push(i);
      else found[i] = new SlotError('io', `Chunk ${index} of slot ${slot} is not in Deno KV any more.`);
    });
    return again;
  }

  async #values(keys: readonly KvKey[]): Promise<unknown[]> {
    const head = this.#held();
    const groups: KvKey[][] = [];
    for (let at = 0; at < keys.length; at += READ_KEYS_MAX - 1) groups.push(keys.slice(at, at + READ_KEYS_MAX - 1));
    const values: unknown[] = [];
    for (let at = 0; at < groups.length; at += READS_MAX) {
      const some = groups.slice(at, at + READS_MAX);
      const answers = await Promise.all(
        some.map((group) => asked(() => this.#place.kv.getMany([head.key, ...group], STRONG))),
      );
      for (const [first, ...entries] of answers) {
        // Once another holder has the store, the chunks may be that holder's.
        if (!head.isMine(first)) throw taken();
        values.push(...entries.map(({ value }) => value));
      }
    }
    return values;
  }

  async #list(kind: string): Promise<{ key: KvKey; value: unknown }[]> {
    return asked(async () => {
      const entries: { key: KvKey; value: unknown }[] = [];
      for await (const { key, value } of this.#place.kv.list({ prefix: this.#key(kind) }, STRONG)) {
        entries.push({ key: key as KvKey, value });
      }
      return entries;
    });
  }

  /** Resolves when nothing is left to be deleted. */
  async #swept(): Promise<void> {
    await this.#sweeping.catch(() => undefined);
    await this.#sweep();
  }

  async #sweep(): Promise<void> {
    for (const group of this.#pack(this.#garbage.map((key) => ({ key })))) {
      await this.#held().write(group);
      this.#garbage.splice(0, group.length);
    }
  }

  #pack(changes: readonly Change[]): Change[][] {
    return pack(changes, keyBytes(headKey(this.#place)));
  }

  #held(): Head {
    if (this.#head === undefined) throw new SlotError('closed', 'The store was closed.');
    return this.#head;
  }

  #chunkKey({ slot, index, generation }: StoredChunk): KvKey {
    return this.#key('chunk', slot, index, generation);
  }

  #key(...parts: KvKeyPart[]): KvKey {
    const { prefix, name } = this.#place;
    return [...prefix, 'data', name, ...parts];
  }
}

/** The key of the head of a store. */
export function headKey({ prefix, name }: Pick<StorePlace, 'prefix' | 'name'>): KvKey {
  return [...prefix, 'store', name];
}

function apply(chunks: ChunkMap, drops: readonly ChunkName[], puts: Iterable<StoredChunk>): void {
  for (const { slot, index } of drops) chunks.cut(slot, index);
  for (const { slot, index, generation } of puts) chunks.put(slot, index, generation);
}

function missingRow(name: string, number: number): VarveError {
  return new VarveError(
    'VARVE_CORRUPT',
    `Row ${number} of the journal of the store "${name}" is not in Deno KV any more.`,
  );
}
