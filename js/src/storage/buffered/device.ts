/**
 * A slot device over an asynchronous storage: what the engine writes is taken in memory at once and committed soon after,
 * what it reads has to be here or is fetched before the engine is asked again.
 *
 *     engine  --write, flush-->  memory  --one commit for all that came meanwhile-->  store
 *     engine  --read-->  not here  ->  one fetch for all that was missing  ->  the same call again
 *
 * Invariant: the store is, at any moment, as the slots were at some earlier moment: commits are whole turns, in order, one at
 * a time. `settle` resolves when all that was written before it is committed; until then its host acknowledges nothing
 * that could have seen it. After a commit that failed no write is taken any more, and no `settle` resolves; after one that was
 * refused for want of room that is so until `goBack` has read what the store holds.
 *
 * A full storage: a commit that is refused is sent again with room from the store's reserve. Until that is whole again no slot becomes
 * longer, as in a file system without room, so that the engine refuses sets, and deletes and merges go on within what the slots have.
 * The engine's own reserve is zeros here, which take no room: it is this one that backs it.
 *
 * How the engine's durability maps: what was flushed since the last commit makes it a strict one; a flush with nothing left
 * to commit is a strict commit of an empty row, unless all that went before was strict.
 */

import { type HeldBytes, type SettlingDevice, SLOT_DATA_OFFSET, SlotError } from '../device.ts';
import type { Chunk } from './chunk.ts';
import type { ChunkStore, Commit, Need } from './chunk-store.ts';
import { Room } from './room.ts';
import { BufferedSlots, type Frozen } from './slots.ts';

const SLOTS_FIRST = 8;
/** No handles are held open: a store grows to 15 GiB within these. */
const SLOTS_MAX = 1000;
/** The journal is folded into chunks when it has so many bytes or rows. */
const JOURNAL_BYTES_MAX = 512 * 1024;
const JOURNAL_ROWS_MAX = 1000;
/** So many times as long it becomes on a full storage, and twice as long each time that folding it finds no room. */
const FULL_PATIENCE = 32;
/** Where what is deleted gives its room back at once, a full storage has no room for a longer one. */
const TIGHT_BYTES_MAX = 16 * 1024;
/** Chunks fetched ahead of one that is read in order. */
const AHEAD_CHUNKS = 4;
/** Bytes that may wait for their commit before writers should. */
const UNSETTLED_BYTES_MAX = 8 * 1024 * 1024;
/** The same of a storage that can be full: a commit must fit beside what it replaces, in the room that is set aside. */
const UNSETTLED_BYTES_MAX_RESERVED = 256 * 1024;

/** A change that is committed by itself. */
interface ApartChange {
  readonly slot: number;
  /** Makes it; gives what forgets it again. */
  readonly make: () => () => void;
  /** Bytes that it takes. */
  readonly bytes: number;
  /** What it may have of the reserve. */
  readonly need: Need | 'nothing';
  readonly resolve: () => void;
  readonly reject: (error: unknown) => void;
}

interface Waiter {
  readonly turn: number;
  readonly resolve: () => void;
  readonly reject: (error: unknown) => void;
}

/** A device whose writes settle later. */
export class BufferedDevice implements SettlingDevice {
  readonly kind: string;
  readonly lendable = false;
  readonly slotsMax = SLOTS_MAX;
  readonly #store: ChunkStore;
  #slots = new BufferedSlots();
  readonly #released = new Set<number>();
  #waiters: Waiter[] = [];
  #apart: ApartChange[] = [];
  /** Counts changes: what is written now has this number. */
  #turn = 0;
  #settled = 0;
  #isStrict = false;
  /** The last commit, under way or through, is no strict one. */
  #isRelaxed = false;
  #isCommitting = false;
  /** The commit under way drops chunks. */
  #isDropping = false;
  #isHeld = false;
  /** Went back, and has not recovered since. */
  #isBack = false;
  #isQuiet = false;
  #isClosed = false;
  readonly #room: Room;
  #failure: SlotError | undefined;
  #committingBytes = 0;
  #journalBytes = 0;
  #journalRows = 0;
  /** The journal becomes so many times as long as it should be. */
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

  /** Takes the store over and reads what is needed to begin with. A new one gets eight slots. */
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
    // A slot may always have a header: what writes to it apart says for itself whether there is room.
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
      await this.settle();
    } catch {
      // Whoever wrote was told, or is told that the store is closed.
    }
    this.#isClosed = true;
    await this.#room.close();
    await this.#store.close();
    this.onClosed();
  }

  /** Resolves when all that was written so far is committed. */
  settle(): Promise<void> {
    if (this.#failure !== undefined) return Promise.reject(this.#failure);
    if (this.#settled === this.#turn) return Promise.resolve();
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

  /** Goes back to what is settled, after a failure of kind `full`. Who held bytes still may let them go. */
  async goBack(): Promise<void> {
    const rows = await this.#store.rows?.();
    if (rows === undefined || this.#failure?.kind !== 'full') throw this.#failure;
    const { spareBytesMax } = this.#slots;
    this.#slots = new BufferedSlots();
    this.#slots.spareBytesMax = spareBytesMax;
    this.#released.clear();
    this.#replay(rows);
    this.#settled = ++this.#turn;
    this.#committingBytes = 0;
    this.#isDropping = false;
    // The last commit of those that are kept may have been no strict one.
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

  allowSpare(bytes: number): void {
    this.#slots.spareBytesMax = bytes;
  }

  /** Whether so much waits to be committed that writers should wait for it. */
  get isPressed(): boolean {
    const bytesMax = this.#store.reserve === undefined ? UNSETTLED_BYTES_MAX : UNSETTLED_BYTES_MAX_RESERVED;
    return !this.#isQuiet && this.#slots.dirtyBytes + this.#committingBytes > bytesMax;
  }

  moreRoom(untilMs: number): Promise<boolean> {
    return this.#room.more(untilMs);
  }

  /** Runs a call that only reads, or changes nothing when a read fails, until all that it reads is here. */
  async resident<T>(call: () => T): Promise<T> {
    const held: Chunk[] = [];
    try {
      for (;;) {
        const answer = this.attempt(call);
        if (answer !== undefined) return answer.value;
        await this.fetch(held);
      }
    } finally {
      this.#slots.letGo(held);
    }
  }

  /** Runs a call once; undefined when it came upon bytes that have to be fetched. */
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

  /** Fetches what the last attempts were missing, at one moment, and holds it here; `letGo` ends that. */
  async fetch(held: HeldBytes[]): Promise<void> {
    // What was cut off is still in the store until its commit is through.
    if (this.#slots.isDropping || this.#isDropping) await this.settle();
    await this.#fetch(this.#slots.takeMissing(), held as Chunk[]);
  }

  /** Lets go of what `fetch` held. */
  letGo(held: readonly HeldBytes[]): void {
    this.#slots.letGo(held as readonly Chunk[]);
  }

  /** As `resident`, for a call that writes before all its reads are here: what an attempt wrote is taken back. */
  async recover<T>(call: () => T): Promise<T> {
    await this.settle();
    const held: Chunk[] = [];
    this.#isHeld = true;
    // Who opens a pool of slots takes one whose first page does not read for lost.
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
      this.#slots.letGo(held);
      if (this.#isBack) this.#settled = ++this.#turn;
      else this.#changed();
      this.#isQuiet = this.#isBack;
      this.#isBack = false;
    }
  }

  async #load(): Promise<void> {
    this.#replay(await this.#store.takeOver());
    this.#room.begin();
    // Neither taking over nor the last commit before it need have been strict.
    this.#isRelaxed = true;
    if (this.#slots.count === 0) await this.grow(SLOTS_FIRST);
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
    const wanted = [...missing];
    const [only] = missing;
    if (only !== undefined && missing.length === 1) {
      const ahead = this.#slots.isReadOn(only) ? this.#slots.behind(only, AHEAD_CHUNKS) : this.#slots.before(only);
      wanted.push(...ahead);
    }
    for (const chunk of wanted) chunk.holders++;
    held.push(...wanted);
    // What was cut off and is in no commit yet, the store still has.
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
    // All that the turn writes is one commit.
    queueMicrotask(() => void this.#commitAll());
  }

  async #commitAll(): Promise<void> {
    try {
      while (!this.#isHeld && this.#failure === undefined && (this.#settled < this.#turn || this.#apart.length > 0)) {
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
    // A cut that is in no commit yet would take along what is put now.
    if (this.#slots.isCut(slot)) await this.settle();
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
      this.#slots.letGo(held);
    }
  }

  /** Whether the journal is so many times as long as it may become now. Folding it needs room, and gives none back at once. */
  #isLong(times: number): boolean {
    const most = times * Math.max(this.#patience, this.#room.isTight ? FULL_PATIENCE : 1);
    return this.#journalBytes > most * JOURNAL_BYTES_MAX || this.#journalRows > most * JOURNAL_ROWS_MAX;
  }

  /** Whether folding the journal gives room back that is needed now. */
  get #isInTheWay(): boolean {
    return this.#room.givesBackAtOnce && this.#room.isTight && this.#journalBytes > this.#patience * TIGHT_BYTES_MAX;
  }

  /** A commit went through. */
  #journaled({ row, folds }: Pick<Commit, 'row' | 'folds'>): void {
    if (folds) {
      this.#journalBytes = this.#journalRows = 0;
      this.#patience = 1;
    }
    this.#journalBytes += row.length;
    this.#journalRows++;
  }

  /** Puts what the journal has into chunks, by itself: where that finds no room, nothing else is refused with it. */
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
      this.#slots.letGo(held);
    }
  }

  async #commit(): Promise<void> {
    if (this.#settled === this.#turn) return;
    const { rowBytesMax } = this.#store;
    const isLong = this.#isLong(1) || this.#isInTheWay;
    // There was no moment to fold it by itself.
    const folds = this.#isLong(2);
    const incomplete = this.#slots.incomplete(isLong, rowBytesMax);
    if (incomplete.length > 0) {
      const held: Chunk[] = [];
      await this.#fetch(incomplete, held);
      this.#slots.letGo(held);
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
      this.#slots.letGo(held);
      this.#committingBytes = 0;
      this.#journaled(commit);
    }
    this.#settled = turn;
    // Before those who wait hear of it, and write again.
    const canFold = isLong && !folds && this.#turn === turn && !this.#slots.isDirty;
    const fold = canFold ? this.#slots.freeze(true, rowBytesMax) : undefined;
    const waiters = this.#waiters;
    this.#waiters = waiters.filter((waiter) => waiter.turn > turn);
    for (const waiter of waiters) if (waiter.turn <= turn) waiter.resolve();
    if (fold !== undefined) await this.#fold(fold);
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
