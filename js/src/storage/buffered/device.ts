/**
 * A slot device over an asynchronous storage. It takes the engine's writes into memory at once and commits them soon after. Bytes that
 * the engine reads must be in memory; if they are not, the device fetches them, and the engine is called again.
 *
 *     engine  --write, flush-->  memory  --one commit for all that came meanwhile-->  store
 *     engine  --read-->  not here  ->  one fetch for all that was missing  ->  the same call again
 *
 * Invariant: at any time, the store equals the slots as they were at some earlier point: commits are whole turns, in order, one at
 * a time. `committed` resolves when everything written before it is committed; until then its host acknowledges nothing that could
 * have seen those writes. After a failed commit the device takes no more writes, and no `committed` resolves. After a commit that was
 * refused for lack of room, this lasts until `goBack` has read the contents of the store. A chunk that the store cannot read fails the
 * calls that need its bytes, each time, and nothing else.
 *
 * A full storage: a commit that is refused is sent again with room from the store's reserve. Until that reserve is whole again no slot
 * becomes longer, as in a file system without room. So the engine refuses sets, while deletes and merges go on within the present slots.
 * The engine's own reserve is zeros here, which take no room: the store's reserve backs it.
 *
 * How the engine's durability maps: a flush since the last commit makes the next commit strict. A flush with nothing left to commit
 * is a strict commit of an empty row, unless everything before it was strict.
 */

import { soon } from '../../runtime/turn.ts';
import { type DeferredDevice, type PinnedBytes, SLOT_DATA_OFFSET, SlotError } from '../device.ts';
import type { Chunk } from './chunk.ts';
import type { ChunkStore, Commit, FoundChunk, Need } from './chunk-store.ts';
import { Room } from './room.ts';
import { BufferedSlots, type Frozen } from './slots.ts';

const SLOTS_FIRST = 8;
/** No file handles stay open, so there can be many: a store grows to 15 GiB within these. */
const SLOTS_MAX = 1000;
/** The journal is folded into chunks when it has more than this many bytes or rows. */
const JOURNAL_BYTES_MAX = 512 * 1024;
const JOURNAL_ROWS_MAX = 1000;
/** At the end of a session it is folded when it has more than this share of them: the next opening reads it. */
const END_SHARE = 1 / 16;
/** On a full storage the journal may become this many times as long. Each fold that finds no room also doubles `#patience`. */
const FULL_PATIENCE = 32;
/** The limit on a full storage that frees the room of deleted data at once: it has no room for a longer journal. */
const TIGHT_BYTES_MAX = 16 * 1024;
/** Chunks that are fetched ahead when a slot is read in order. */
const AHEAD_CHUNKS = 4;
/** When more bytes than this wait to be committed, writers should wait for the commit. */
const UNCOMMITTED_BYTES_MAX = 8 * 1024 * 1024;
/** The same for a storage that can be full: a commit must fit beside the data that it replaces, in the room that is set aside. */
const UNCOMMITTED_BYTES_MAX_RESERVED = 256 * 1024;

/** A change that is committed by itself. */
interface ApartChange {
  readonly slot: number;
  /** Makes the change; returns a function that undoes it. */
  readonly make: () => () => void;
  /** Bytes that it takes. */
  readonly bytes: number;
  /** The part of the reserve that it may use. */
  readonly need: Need | 'nothing';
  readonly resolve: () => void;
  readonly reject: (error: unknown) => void;
}

interface Waiter {
  readonly turn: number;
  readonly resolve: () => void;
  readonly reject: (error: unknown) => void;
}

/** A device whose writes are committed later. */
export class BufferedDevice implements DeferredDevice {
  readonly kind: string;
  readonly lendable = false;
  readonly slotsMax = SLOTS_MAX;
  readonly #store: ChunkStore;
  #slots = new BufferedSlots();
  /** Chunks that are being read ahead. */
  readonly #arriving = new Map<Chunk, Promise<void>>();
  readonly #released = new Set<number>();
  #waiters: Waiter[] = [];
  #apart: ApartChange[] = [];
  /** Counts changes: a write now gets this number. */
  #turn = 0;
  #committedTurn = 0;
  #isStrict = false;
  /** The last commit, under way or done, is not strict. */
  #isRelaxed = false;
  #isCommitting = false;
  /** The commit under way drops chunks. */
  #isDropping = false;
  #isHeld = false;
  /** `goBack` was called, and `recover` has not finished since. */
  #isBack = false;
  /** How many bytes may stay in memory only because they were read. */
  #spareBytes: (() => number) | undefined;
  #isQuiet = false;
  #isClosed = false;
  /** `closeAll` waits for a short journal. */
  #isEnding = false;
  readonly #room: Room;
  #failure: SlotError | undefined;
  #committingBytes = 0;
  #journalBytes = 0;
  #journalRows = 0;
  /** How many times as long as usual the journal may become. */
  #patience = 1;

  /** Called at the first commit that fails. */
  onFailure: (error: SlotError) => void = () => undefined;

  /** Called when the store is closed. */
  onClosed: () => void = () => undefined;

  private constructor(store: ChunkStore) {
    this.#store = store;
    this.kind = store.kind;
    this.#room = new Room(store.reserve);
  }

  /** Takes the store over and reads its journal. A new store gets eight slots. */
  static async open(store: ChunkStore): Promise<BufferedDevice> {
    const device = new BufferedDevice(store);
    await device.#load();
    return device;
  }

  count(): number {
    return this.#slots.count;
  }

  isOpen(slot: number): boolean {
    return !this.#isClosed && slot < this.#slots.count && !this.#released.has(slot);
  }

  size(slot: number): number {
    this.#check(slot);
    return this.#slots.size(slot);
  }

  read(slot: number, into: Uint8Array, at: number): number {
    this.#check(slot);
    return this.#slots.read(slot, into, at);
  }

  write(slot: number, bytes: Uint8Array, at: number): number {
    this.#checkWritable(slot);
    // A slot may always have a header. Writing the rest apart (`writeApart`) reports for itself whether there is room.
    const end = at + bytes.length;
    if (end > SLOT_DATA_OFFSET && end > this.#slots.size(slot) && !this.#room.mayGrow()) return 0;
    this.#slots.write(slot, bytes, at);
    this.#changed();
    return bytes.length;
  }

  flush(slot: number): void {
    this.#checkWritable(slot);
    if (!(this.#slots.isDirty || this.#isRelaxed)) return;
    this.#isStrict = true;
    this.#changed();
  }

  truncate(slot: number, bytes: number): void {
    this.#checkWritable(slot);
    this.#slots.truncate(slot, bytes);
    this.#changed();
  }

  async grow(slots: number): Promise<number> {
    if (this.#isClosed || this.#failure !== undefined) return 0;
    const added = Math.max(0, Math.min(slots, this.slotsMax - this.#slots.count));
    for (let i = 0; i < added; i++) this.#slots.add();
    if (added > 0) this.#changed();
    return added;
  }

  release(slot: number): void {
    this.#released.add(slot);
  }

  async retake(slot: number): Promise<void> {
    this.#released.delete(slot);
  }

  async freeBytes(): Promise<number | undefined> {
    return this.#store.freeBytes?.();
  }

  async closeAll(): Promise<void> {
    if (this.#isClosed) return;
    try {
      await this.committed();
      this.#isEnding = true;
      if (this.#isLong(END_SHARE)) {
        this.#changed();
        await this.committed();
      }
    } catch {
      // The writers got this error, or get one that the store is closed.
    }
    this.#isClosed = true;
    await this.#room.close();
    await this.#store.close();
    this.onClosed();
  }

  /** Resolves when all that was written so far is committed. */
  committed(): Promise<void> {
    if (this.#failure !== undefined) return Promise.reject(this.#failure);
    if (this.#committedTurn === this.#turn) return Promise.resolve();
    return new Promise((resolve, reject) => this.#waiters.push({ turn: this.#turn, resolve, reject }));
  }

  get isTight(): boolean {
    return this.#room.isTight;
  }

  get canGoBack(): boolean {
    return this.#store.rows !== undefined;
  }

  get isQuiet(): boolean {
    return this.#isQuiet;
  }

  /** Goes back to the committed state, after a failure of kind `full`. Bytes that were pinned before may still be unpinned. */
  async goBack(): Promise<void> {
    const rows = await this.#store.rows?.();
    if (rows === undefined || this.#failure?.kind !== 'full') throw this.#failure;
    const { spareBytesMax } = this.#slots;
    this.#slots = new BufferedSlots();
    this.#slots.spareBytesMax = spareBytesMax;
    this.#released.clear();
    this.#replay(rows);
    this.#committedTurn = ++this.#turn;
    this.#committingBytes = 0;
    this.#isDropping = false;
    // The last of the commits that are kept may not have been strict.
    this.#isRelaxed = true;
    this.#isBack = true;
    this.#failure = undefined;
  }

  async writeApart(slot: number, bytes: Uint8Array, at: number, mayUseReserve: boolean): Promise<void> {
    const make = (): (() => void) => this.#slots.writeApart(slot, bytes, at);
    await this.#changeApart(slot, make, bytes.length, mayUseReserve ? 'full' : 'nothing');
  }

  async discard(slot: number): Promise<void> {
    await this.#changeApart(slot, () => this.#slots.discard(slot), 0, 'small');
  }

  allowSpare(bytes: () => number): void {
    this.#spareBytes = bytes;
    this.#slots.spareBytesMax = bytes();
  }

  /** Whether so much waits to be committed that writers should wait for it. */
  get isPressed(): boolean {
    const bytesMax = this.#store.reserve === undefined ? UNCOMMITTED_BYTES_MAX : UNCOMMITTED_BYTES_MAX_RESERVED;
    return !this.#isQuiet && this.#slots.dirtyBytes + this.#committingBytes > bytesMax;
  }

  moreRoom(untilMs: number): Promise<boolean> {
    return this.#room.more(untilMs);
  }

  /** Runs a call that only reads, or changes nothing when a read fails, until everything that it reads is in memory. */
  async resident<T>(call: () => T): Promise<T> {
    const held: Chunk[] = [];
    try {
      for (;;) {
        const answer = this.attempt(call);
        if (answer !== undefined) return answer.value;
        await this.fetch(held);
      }
    } finally {
      this.#slots.unpin(held);
    }
  }

  /** Runs a call once; undefined when it needs bytes that have to be fetched. */
  attempt<T>(call: () => T): { readonly value: T } | undefined {
    this.#slots.takeMissing();
    try {
      const value = call();
      return this.#slots.isMissing ? undefined : { value };
    } catch (error) {
      if (this.#slots.isMissing) return undefined;
      throw error;
    }
  }

  /** Fetches the bytes that the last attempts lacked, as of one point in time, and pins them; `unpin` unpins them. */
  async fetch(held: PinnedBytes[]): Promise<void> {
    // Bytes behind a cut stay in the store until that commit is done.
    if (this.#slots.isDropping || this.#isDropping) await this.committed();
    await this.#fetch(this.#slots.takeMissing(), held as Chunk[]);
    if (this.#spareBytes) this.#slots.spareBytesMax = this.#spareBytes();
  }

  /** Unpins what `fetch` pinned. */
  unpin(held: readonly PinnedBytes[]): void {
    this.#slots.unpin(held as readonly Chunk[]);
  }

  /** As `resident`, for a call that writes before all its reads are in memory: the writes of a failed attempt are undone. */
  async recover<T>(call: () => T): Promise<T> {
    await this.committed();
    const held: Chunk[] = [];
    this.#isHeld = true;
    // The call that opens a pool of slots reads the first page of each, one after the other. So they are fetched together before it,
    // as the takeover did.
    await this.#fetch(this.#slots.beginnings(), held);
    this.#slots.begin();
    try {
      for (;;) {
        const answer = this.attempt(call);
        if (answer !== undefined) {
          this.#slots.keep();
          return answer.value;
        }
        const missing = this.#slots.takeMissing().map(({ slot, index }) => ({ slot, index }));
        this.#slots.undo();
        await this.#fetch(this.#slots.named(missing), held);
      }
    } catch (error) {
      this.#slots.undo();
      throw error;
    } finally {
      this.#isHeld = false;
      this.#slots.unpin(held);
      if (this.#isBack) this.#committedTurn = ++this.#turn;
      else this.#changed();
      this.#isQuiet = this.#isBack;
      this.#isBack = false;
    }
  }

  async #load(): Promise<void> {
    let first: Chunk[] = [];
    const found = await this.#store.takeOver(
      (rows) => {
        this.#replay(rows);
        first = this.#slots.beginnings();
        return first;
      },
      (read) => {
        for (const chunk of this.#slots.ends()) this.#arriving.set(chunk, this.#arrive(chunk, read(chunk)));
      },
    );
    for (const [i, chunk] of first.entries()) {
      const base = found[i];
      // A chunk that could not be read is fetched again by the call that needs it, which gets the error.
      if (!(base instanceof SlotError)) chunk.complete(base);
    }
    this.#room.begin();
    // Neither the takeover nor the last commit before it has to be strict.
    this.#isRelaxed = true;
    if (this.#slots.count === 0) await this.grow(SLOTS_FIRST);
  }

  /** Fills a chunk with bytes that are on their way. If they do not arrive, a read fetches them again. */
  async #arrive(chunk: Chunk, reading: Promise<FoundChunk>): Promise<void> {
    chunk.holders++;
    try {
      chunk.complete(await reading);
    } catch {
      // The takeover failed, or there was no room for it.
    } finally {
      this.#arriving.delete(chunk);
      this.#slots.unpin([chunk]);
    }
  }

  #replay(rows: readonly Uint8Array[]): void {
    this.#journalBytes = 0;
    for (const row of rows) {
      this.#slots.replay(row);
      this.#journalBytes += row.length;
    }
    this.#journalRows = rows.length;
  }

  async #fetch(missing: readonly Chunk[], held: Chunk[]): Promise<void> {
    if (missing.length === 0) return;
    const arriving = missing.flatMap((chunk) => this.#arriving.get(chunk) ?? []);
    const wanted = missing.filter((chunk) => !this.#arriving.has(chunk));
    const [only] = wanted;
    const isOne = only !== undefined && missing.length === 1;
    const isReadOn = isOne && this.#slots.isReadOn(only);
    const more = isReadOn ? this.#slots.behind(only, AHEAD_CHUNKS) : isOne ? this.#slots.before(only) : [];
    wanted.push(...more);
    for (const chunk of [...missing, ...more]) chunk.holders++;
    held.push(...missing, ...more);
    if (arriving.length > 0) await Promise.all(arriving);
    if (wanted.length === 0) return;
    // The store still has bytes whose cut is in no commit yet.
    const isCut = wanted.map((chunk) => this.#slots.isDropped(chunk));
    const found = await this.#store.read(wanted);
    wanted.forEach((chunk, i) => {
      chunk.complete(isCut[i] ? undefined : found[i]);
    });
  }

  #check(slot: number): void {
    if (!this.isOpen(slot)) throw new SlotError('closed', `Slot ${slot} is not open here.`);
  }

  #checkWritable(slot: number): void {
    this.#check(slot);
    if (this.#failure !== undefined) throw this.#failure;
  }

  #changed(): void {
    this.#turn++;
    this.#keepCommitting();
  }

  #keepCommitting(): void {
    if (this.#isCommitting || this.#isHeld) return;
    this.#isCommitting = true;
    // All writes of the turn are one commit.
    soon(() => void this.#commitAll());
  }

  async #commitAll(): Promise<void> {
    try {
      while (
        !this.#isHeld &&
        this.#failure === undefined &&
        (this.#committedTurn < this.#turn || this.#apart.length > 0)
      ) {
        await this.#commit();
        const apart = this.#apart.shift();
        if (apart !== undefined) await this.#commitApart(apart);
      }
    } catch (error) {
      this.#fail(error instanceof SlotError ? error : new SlotError('io', String(error), { cause: error }));
    } finally {
      this.#isCommitting = false;
    }
  }

  async #changeApart(slot: number, make: () => () => void, bytes: number, need: Need | 'nothing'): Promise<void> {
    // A cut that is in no commit yet would also remove the bytes that are put now.
    if (this.#slots.isCut(slot)) await this.committed();
    this.#checkWritable(slot);
    return new Promise((resolve, reject) => {
      this.#apart.push({ slot, make, bytes, need, resolve, reject });
      this.#keepCommitting();
    });
  }

  async #commitApart({ slot, make, bytes, need, resolve, reject }: ApartChange): Promise<void> {
    const { rowBytesMax } = this.#store;
    const held: Chunk[] = [];
    let undo: (() => void) | undefined;
    try {
      undo = make();
      await this.#fetch(this.#slots.incomplete(false, rowBytesMax, slot), held);
      const { commit, held: frozen } = this.#slots.freeze(false, rowBytesMax, slot);
      held.push(...frozen);
      this.#isDropping = commit.drops.length > 0;
      await this.#room.commit(bytes, () => this.#store.commit({ ...commit, isStrict: false }), need);
      this.#isRelaxed = true;
      this.#journaled(commit);
      resolve();
    } catch (error) {
      undo?.();
      reject(error);
      if (!(error instanceof SlotError) || error.kind !== 'full') throw error;
    } finally {
      this.#isDropping = false;
      this.#slots.unpin(held);
    }
  }

  /** Whether the journal is longer than `times` its present limit. Folding it needs room, and frees none at once. */
  #isLong(times: number): boolean {
    const most = times * Math.max(this.#patience, this.#room.isTight ? FULL_PATIENCE : 1);
    return this.#journalBytes > most * JOURNAL_BYTES_MAX || this.#journalRows > most * JOURNAL_ROWS_MAX;
  }

  /** Whether folding the journal frees room that is needed now. */
  get #isInTheWay(): boolean {
    return this.#room.releasesAtOnce && this.#room.isTight && this.#journalBytes > this.#patience * TIGHT_BYTES_MAX;
  }

  /** Counts a commit that succeeded. */
  #journaled({ row, folds }: Pick<Commit, 'row' | 'folds'>): void {
    if (folds) {
      this.#journalBytes = this.#journalRows = 0;
      this.#patience = 1;
    }
    this.#journalBytes += row.length;
    this.#journalRows++;
  }

  /** Folds the journal into chunks, in a commit of its own: if that finds no room, nothing else is refused with it. */
  async #fold({ commit, held }: Frozen): Promise<void> {
    try {
      const send = (): Promise<void> => this.#store.commit({ ...commit, isStrict: false });
      await this.#room.commit(bytesOf(commit), send, 'nothing');
      this.#isRelaxed = true;
      this.#journaled(commit);
    } catch (error) {
      for (const chunk of held) chunk.isJournaled = true;
      this.#patience *= 2;
      if (!(error instanceof SlotError) || error.kind !== 'full') throw error;
    } finally {
      this.#slots.unpin(held);
    }
  }

  async #commit(): Promise<void> {
    if (this.#committedTurn === this.#turn) return;
    const { rowBytesMax } = this.#store;
    const isLong = this.#isLong(this.#isEnding ? END_SHARE : 1) || this.#isInTheWay;
    // Later writes left no time to fold it in a commit of its own.
    const folds = this.#isLong(2) && !this.#isEnding;
    const incomplete = this.#slots.incomplete(isLong, rowBytesMax);
    if (incomplete.length > 0) {
      const held: Chunk[] = [];
      await this.#fetch(incomplete, held);
      this.#slots.unpin(held);
      if (this.#isHeld) return;
    }
    const turn = this.#turn;
    const isStrict = this.#isStrict;
    this.#isStrict = false;
    if (this.#slots.isDirty || isStrict) {
      this.#committingBytes = this.#slots.dirtyBytes;
      const { commit, held } = this.#slots.freeze(folds, rowBytesMax);
      this.#isRelaxed = !isStrict;
      this.#isDropping = commit.drops.length > 0;
      const bytes = folds ? bytesOf(commit) : this.#committingBytes;
      if (folds) this.#patience *= 2;
      await this.#room.commit(bytes, () => this.#store.commit({ ...commit, isStrict }));
      this.#isQuiet = false;
      this.#isDropping = false;
      this.#slots.unpin(held);
      this.#committingBytes = 0;
      this.#journaled(commit);
    }
    this.#committedTurn = turn;
    // Done before the waiters resume, because they may write again.
    const canFold = isLong && !folds && this.#turn === turn && !this.#slots.isDirty;
    const fold = canFold ? this.#slots.freeze(true, rowBytesMax) : undefined;
    if (fold !== undefined && this.#isEnding) await this.#fold(fold);
    const waiters = this.#waiters;
    this.#waiters = waiters.filter((waiter) => waiter.turn > turn);
    for (const waiter of waiters) if (waiter.turn <= turn) waiter.resolve();
    if (fold !== undefined && !this.#isEnding) await this.#fold(fold);
  }

  #fail(error: SlotError): void {
    this.#failure = error;
    const waiters = this.#waiters;
    this.#waiters = [];
    const apart = this.#apart;
    this.#apart = [];
    for (const { reject } of [...waiters, ...apart]) reject(error);
    this.onFailure(error);
  }
}

/** Bytes that a commit brings. */
function bytesOf({ row, puts }: Pick<Commit, 'row' | 'puts'>): number {
  return puts.reduce((sum, { bytes }) => sum + bytes.length, row.length);
}
