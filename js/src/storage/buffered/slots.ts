/**
 * The part of a buffered device's slots that is in memory, and the changes that are in no commit yet.
 *
 * A chunk is in memory for one of three reasons: it was written and is not committed, the store's copy is older than the journal, or
 * somebody read it. Chunks of the last kind are dropped when there are too many.
 *
 * Invariant: a read returns the bytes that were written last, whether committed or not. `freeze` copies everything that was written
 * so far, so that later writes belong to the next commit.
 */

import { missingBytes, SlotError } from '../device.ts';
import { CHUNK_BYTES, Chunk, chunkAt, chunkBytes, chunkStart } from './chunk.ts';
import type { ChunkName, ChunkPut, Commit } from './chunk-store.ts';
import { keptInJournal } from './fold.ts';
import { ALL_ZEROS, decodeRow, encodeRow, type Patch } from './journal-row.ts';

/** Bytes of chunks that are kept only because they were read, unless the host allows more. */
const SPARE_BYTES_MIN = 2 * 1024 * 1024;
/** Slots of one chunk that are read at opening. */
const SMALL_SLOTS_MAX = 8;
/** With more long slots than this, the first read most likely looks at another one. */
const LONG_SLOTS_MAX = 2;
/** A chunk with at least this many written bytes is put whole, not journaled. */
const PUT_BYTES_MIN = 16 * 1024;
/** Chunks of a slot that a key has room for: a key is one number, `slot * CHUNKS_MAX + index`. */
const CHUNKS_MAX = 2 ** 32;

interface Slot {
  size: number;
  /** The end of the bytes that may be other than zero: bytes behind it are not in the store. */
  top: number;
  /** Where the last read ended. */
  readTo: number;
}

/** The state that `undo` restores. */
interface Undo {
  readonly slots: Slot[];
  /** Chunks that changed, each with a copy from before. */
  readonly chunks: Map<Chunk, Chunk>;
}

/** The contents of a commit, and the chunks that it pins while it is under way. */
export interface Frozen {
  readonly commit: Omit<Commit, 'isStrict'>;
  readonly held: readonly Chunk[];
}

/** Numbered slots, partly in memory. */
export class BufferedSlots {
  readonly #slots: Slot[] = [];
  readonly #chunks = new Map<number, Chunk>();
  readonly #dirty = new Set<Chunk>();
  readonly #cuts = new Map<number, number>();
  /** Slots that were cut below the end of their bytes in the store, and where. */
  readonly #drops = new Map<number, number>();
  readonly #missing = new Map<number, ChunkName>();
  /** Bytes written that are in no commit yet. */
  dirtyBytes = 0;
  /** Bytes of chunks that may be kept only because they were read. */
  spareBytesMax = SPARE_BYTES_MIN;
  #undo: Undo | undefined;

  get count(): number {
    return this.#slots.length;
  }

  /** Whether a commit would change anything. */
  get isDirty(): boolean {
    return this.#dirty.size > 0 || this.#cuts.size > 0;
  }

  /** Whether the next commit cuts a slot. */
  isCut(slot: number): boolean {
    return this.#cuts.has(slot) || this.#drops.has(slot);
  }

  /** Whether the next commit drops chunks. */
  get isDropping(): boolean {
    return this.#drops.size > 0;
  }

  /** Whether the next commit drops this chunk. */
  isDropped({ slot, index }: ChunkName): boolean {
    const cut = this.#drops.get(slot);
    return cut !== undefined && index >= firstBehind(cut);
  }

  size(slot: number): number {
    return this.#slot(slot).size;
  }

  /** Adds an empty slot. */
  add(): void {
    this.#slots.push({ size: 0, top: 0, readTo: 0 });
    this.#cuts.set(this.#slots.length - 1, 0);
  }

  /** Whether a read needed bytes that are not in memory, since `takeMissing` was called. */
  get isMissing(): boolean {
    return this.#missing.size > 0;
  }

  /** The chunks that reads needed and that have to be fetched. */
  takeMissing(): Chunk[] {
    const names = [...this.#missing.values()];
    this.#missing.clear();
    return this.named(names);
  }

  /** The chunks of these names; a chunk that is not in memory is made, with no known bytes. */
  named(names: readonly ChunkName[]): Chunk[] {
    return names.map(({ slot, index }) => this.#chunk(slot, index) ?? this.#make(slot, index, false));
  }

  /**
   * The chunks that opening reads first and that are not in memory: the first page of each slot, and the rest of some small slots,
   * such as logs.
   */
  beginnings(): Chunk[] {
    const written = this.#slots.flatMap(({ top }, slot) => (top > 0 ? [{ slot, index: 0 }] : []));
    const small = this.#slots.flatMap(({ top }, slot) =>
      top > chunkStart(1) && top <= chunkStart(2) ? [{ slot, index: 1 }] : [],
    );
    const wanted = [...written, ...small.slice(0, SMALL_SLOTS_MAX)];
    return this.named(wanted).filter((chunk) => chunk.known !== undefined);
  }

  /** The last two chunks of each long slot, if there are few: a reader of a table begins at its end. */
  ends(): Chunk[] {
    const long = this.#slots.flatMap(({ top }, slot) =>
      top > chunkStart(2) ? [{ slot, index: chunkAt(top - 1) }] : [],
    );
    if (long.length > LONG_SLOTS_MAX) return [];
    const ends = long.flatMap(({ slot, index }) => [
      { slot, index },
      { slot, index: index - 1 },
    ]);
    return this.named(ends).filter(({ known }) => known !== undefined);
  }

  /** The chunk before this one, if this is the last of its slot and that one is not in memory: a reader of a table begins at its end. */
  before({ slot, index }: ChunkName): Chunk[] {
    const isLast = index > 1 && chunkStart(index + 1) >= this.#slot(slot).top;
    return isLast && this.#chunk(slot, index - 1) === undefined ? [this.#make(slot, index - 1, false)] : [];
  }

  /** Those of the next `count` chunks that are not in memory. */
  behind({ slot, index }: ChunkName, count: number): Chunk[] {
    const { top } = this.#slot(slot);
    const more: Chunk[] = [];
    for (let next = index + 1; next <= index + count && chunkStart(next) < top; next++) {
      if (this.#chunk(slot, next) === undefined) more.push(this.#make(slot, next, false));
    }
    return more;
  }

  /** Whether the last read ended in the chunk before this one: then the reader most likely reads on. */
  isReadOn({ slot, index }: ChunkName): boolean {
    const { readTo } = this.#slot(slot);
    return index > 1 && chunkStart(index - 1) < readTo && readTo <= chunkStart(index);
  }

  /** Reads; or, where bytes have to be fetched first, notes which and throws. Throws also where they could not be read. */
  read(slot: number, into: Uint8Array, at: number): number {
    const place = this.#slot(slot);
    const { size, top } = place;
    const count = Math.max(0, Math.min(into.length, size - at));
    let isMissing = false;
    let failure: SlotError | undefined;
    eachPiece(at, count, (index, from, to, offset) => {
      const chunk = this.#chunk(slot, index) ?? (chunkStart(index) < top ? this.#make(slot, index, false) : undefined);
      if (chunk === undefined) into.fill(0, offset, offset + to - from);
      else if (chunk.knows(from, to)) {
        chunk.isUsed = true;
        if (!isMissing) into.set(chunk.bytes.subarray(from, to), offset);
      } else if (chunk.failure !== undefined) failure = chunk.failure;
      else {
        isMissing = true;
        this.#missing.set(keyOf(slot, index), chunk);
      }
    });
    if (isMissing) throw missingBytes;
    if (failure !== undefined) throw failure;
    place.readTo = at + count;
    return count;
  }

  write(slot: number, bytes: Uint8Array, at: number): void {
    const place = this.#slot(slot);
    const end = at + bytes.length;
    if (at >= place.top && isZero(bytes)) {
      // Bytes that were never written read as zeros, so growing a slot costs nothing.
      if (end > place.size) this.#resize(slot, place, end);
      return;
    }
    eachPiece(at, bytes.length, (index, from, to, offset) => {
      this.#change(slot, index, from, to, (chunk) => chunk.fill(bytes.subarray(offset, offset + to - from), from));
    });
    place.top = Math.max(place.top, end);
    if (end > place.size) this.#resize(slot, place, end);
  }

  /** Writes for a commit of this slot's chunks alone; returns a function that drops the write, and all other contents of the slot. */
  writeApart(slot: number, bytes: Uint8Array, at: number): () => void {
    const place = this.#slot(slot);
    const { size, top } = place;
    const { dirtyBytes } = this;
    this.write(slot, bytes, at);
    this.dirtyBytes = dirtyBytes;
    return () => {
      for (let index = 1; chunkStart(index) < place.top; index++) this.#remove(slot, index);
      Object.assign(place, { size, top });
      this.#cuts.delete(slot);
    };
  }

  /** Drops all of a slot but its header page, for a commit of this change alone; returns a function that undoes it. */
  discard(slot: number): () => void {
    const place = this.#slot(slot);
    const { size, top } = place;
    this.truncate(slot, Math.min(size, chunkStart(1)));
    place.size = size;
    return () => {
      place.top = top;
      this.#cuts.delete(slot);
      this.#drops.delete(slot);
    };
  }

  /** Cuts or extends a slot. */
  truncate(slot: number, bytes: number): void {
    const place = this.#slot(slot);
    if (bytes < place.top) {
      const last = chunkAt(bytes);
      const first = firstBehind(bytes);
      for (let index = first; chunkStart(index) < place.top; index++) this.#remove(slot, index);
      if (first > last) {
        const from = bytes - chunkStart(last);
        this.#change(slot, last, from, chunkBytes(last), (chunk) => chunk.clear(from, chunkBytes(last)));
      }
      place.top = bytes;
      this.#drops.set(slot, Math.min(this.#drops.get(slot) ?? bytes, bytes));
    }
    const cut = this.#cuts.get(slot) ?? place.size;
    place.size = bytes;
    this.#cuts.set(slot, Math.min(cut, bytes));
  }

  /** Applies a row of the journal that was read from the store. */
  replay(row: Uint8Array): void {
    const { resizes, puts, patches } = decodeRow(row);
    for (const { slot, cut, size } of resizes) {
      while (this.#slots.length <= slot) this.#slots.push({ size: 0, top: 0, readTo: 0 });
      const place = this.#slot(slot);
      for (const chunk of [...this.#chunks.values()]) {
        if (chunk.slot === slot && chunkStart(chunk.index) >= cut) this.#remove(slot, chunk.index);
      }
      place.top = Math.min(cut, size);
      place.size = size;
    }
    for (const { slot, index } of puts) {
      this.#remove(slot, index);
      this.#raise(slot, chunkStart(index + 1));
    }
    for (const { slot, index, from, bytes } of patches) {
      const isWhole = from === ALL_ZEROS;
      const chunk = (isWhole ? undefined : this.#chunk(slot, index)) ?? this.#make(slot, index, isWhole);
      if (!isWhole) {
        chunk.fill(bytes, from);
        this.#raise(slot, chunkStart(index) + from + bytes.length);
      }
      chunk.isJournaled = true;
    }
  }

  /** Chunks with bytes that a commit needs and that are not known: they have to be fetched before `freeze`. */
  incomplete(folds: boolean, rowBytesMax: number, only?: number): Chunk[] {
    const wanted: Chunk[] = [];
    let rowBytes = 0;
    for (const chunk of folds ? this.#chunks.values() : this.#changed(only)) {
      if (chunk.known === undefined || (folds && !chunk.isJournaled && chunk.dirty.bytes === 0)) continue;
      rowBytes += chunk.dirty.bytes + 16;
      if (folds || chunk.dirty.bytes >= PUT_BYTES_MIN || rowBytes > rowBytesMax / 2) wanted.push(chunk);
    }
    return wanted;
  }

  /**
   * Makes a commit of all that was written, or of what `writeApart` wrote to the slot `only`. Chunks with few written bytes go into the
   * row of the journal; the others are put whole. A commit that folds the journal leaves the chunks with the fewest bytes other than
   * zero in its row: the next opening reads them there, with the journal.
   */
  freeze(folds: boolean, rowBytesMax: number, only?: number): Frozen {
    const chunks = folds
      ? [...this.#chunks.values()].filter((one) => one.isJournaled || this.#dirty.has(one))
      : this.#changed(only);
    const puts: ChunkPut[] = [];
    const patches: Patch[] = [];
    const held: Chunk[] = [];
    const kept = folds ? keptInJournal(chunks, rowBytesMax / 2) : undefined;
    let rowBytes = 0;
    for (const chunk of chunks) {
      const bytes = chunk.dirty.bytes;
      const isPut =
        chunk.known === undefined && (folds || bytes >= PUT_BYTES_MIN || rowBytes + bytes > rowBytesMax / 2);
      const { slot, index } = chunk;
      const own = kept?.get(chunk);
      if (own !== undefined) patches.push(...own);
      else if (isPut) puts.push({ slot, index, bytes: chunk.bytes.slice() });
      else {
        // The rows that a fold removes may have had more bytes of it.
        const spans = folds ? (chunk.known ?? chunk.dirty) : chunk.dirty;
        rowBytes += spans.bytes + 16;
        spans.each((from, to) => patches.push({ slot, index, from, bytes: chunk.bytes.subarray(from, to) }));
      }
      chunk.isJournaled = own !== undefined || !isPut;
      chunk.dirty.clear();
      chunk.holders++;
      held.push(chunk);
      this.#dirty.delete(chunk);
    }
    const drops: ChunkName[] = [];
    const isWanted = (slot: number): boolean => only === undefined || slot === only;
    for (const [slot, cut] of this.#drops) if (isWanted(slot)) drops.push({ slot, index: firstBehind(cut) });
    for (const { slot } of drops) this.#drops.delete(slot);
    const cuts = new Map([...this.#cuts].filter(([slot]) => isWanted(slot)));
    if (only === undefined) this.dirtyBytes = 0;
    const resized = folds ? this.#slots.keys() : cuts.keys();
    const resizes = [...resized].map((slot) => {
      const { size, top } = this.#slot(slot);
      return { slot, cut: folds ? top : (cuts.get(slot) ?? size), size };
    });
    for (const slot of cuts.keys()) this.#cuts.delete(slot);
    return { commit: { row: encodeRow({ resizes, puts, patches }), drops, puts, folds }, held };
  }

  /** Unpins chunks that a commit or a reader pinned. */
  unpin(chunks: Iterable<Chunk>): void {
    for (const chunk of chunks) if (--chunk.holders === 0) chunk.failure = undefined;
    this.#evict();
  }

  /** From now on changes can be undone. Nothing may be dirty. */
  begin(): void {
    this.#undo = { slots: this.#slots.map((slot) => ({ ...slot })), chunks: new Map() };
  }

  /** Keeps what changed since `begin`. */
  keep(): void {
    this.#undo = undefined;
  }

  /** Undoes all changes since `begin`. Later changes can be undone, too. */
  undo(): void {
    const { slots, chunks } = this.#undo as Undo;
    this.#slots.splice(0, this.#slots.length, ...slots.map((slot) => ({ ...slot })));
    for (const chunk of this.#dirty) this.#chunks.delete(keyOf(chunk.slot, chunk.index));
    for (const [, copy] of chunks) this.#chunks.set(keyOf(copy.slot, copy.index), copy);
    chunks.clear();
    this.#dirty.clear();
    this.#cuts.clear();
    this.#drops.clear();
    this.dirtyBytes = 0;
  }

  /** Chunks with bytes that are in no commit; with `only`, those of one slot except its header page, which is not written apart. */
  #changed(only: number | undefined): Chunk[] {
    return [...this.#dirty].filter(({ slot, index }) => only === undefined || (slot === only && index > 0));
  }

  #slot(slot: number): Slot {
    const found = this.#slots[slot];
    if (found === undefined) throw new SlotError('closed', `There is no slot ${slot}.`);
    return found;
  }

  #chunk(slot: number, index: number): Chunk | undefined {
    return this.#chunks.get(keyOf(slot, index));
  }

  #make(slot: number, index: number, isKnown: boolean): Chunk {
    const chunk = new Chunk(slot, index, isKnown);
    this.#chunks.set(keyOf(slot, index), chunk);
    return chunk;
  }

  /** Bytes up to `end` may be other than zero. */
  #raise(slot: number, end: number): void {
    const place = this.#slot(slot);
    place.top = Math.max(place.top, Math.min(end, place.size));
  }

  #resize(slot: number, place: Slot, size: number): void {
    if (!this.#cuts.has(slot)) this.#cuts.set(slot, place.size);
    place.size = size;
  }

  #change(slot: number, index: number, from: number, to: number, apply: (chunk: Chunk) => void): void {
    const chunk = this.#chunk(slot, index) ?? this.#make(slot, index, chunkStart(index) >= this.#slot(slot).top);
    this.#keepForUndo(chunk);
    apply(chunk);
    chunk.dirty.add(from, to);
    this.#dirty.add(chunk);
    this.dirtyBytes += to - from;
  }

  #remove(slot: number, index: number): void {
    const chunk = this.#chunk(slot, index);
    if (chunk === undefined) return;
    this.#keepForUndo(chunk);
    this.#chunks.delete(keyOf(slot, index));
    this.#dirty.delete(chunk);
  }

  #keepForUndo(chunk: Chunk): void {
    if (this.#undo === undefined || this.#undo.chunks.has(chunk) || chunk.dirty.bytes > 0) return;
    const copy = new Chunk(chunk.slot, chunk.index, chunk.known === undefined);
    copy.bytes.set(chunk.bytes);
    if (chunk.known !== undefined) copy.known = chunk.known.copy();
    copy.isJournaled = chunk.isJournaled;
    this.#undo.chunks.set(chunk, copy);
  }

  /** Drops chunks that were only read, the least recently used first (second chance). */
  #evict(): void {
    const spareMax = Math.floor(Math.max(this.spareBytesMax, SPARE_BYTES_MIN) / CHUNK_BYTES);
    if (this.#chunks.size <= spareMax) return;
    let spare = 0;
    for (const chunk of this.#chunks.values()) if (chunk.isSpare) spare++;
    for (let pass = 0; pass < 2 && spare > spareMax; pass++) {
      for (const [key, chunk] of this.#chunks) {
        if (spare <= spareMax) return;
        if (!chunk.isSpare) continue;
        if (chunk.isUsed) chunk.isUsed = false;
        else {
          this.#chunks.delete(key);
          spare--;
        }
      }
    }
  }
}

/** The first chunk that lies wholly behind an offset. */
function firstBehind(offset: number): number {
  const index = chunkAt(offset);
  return offset > chunkStart(index) ? index + 1 : index;
}

function keyOf(slot: number, index: number): number {
  return slot * CHUNKS_MAX + index;
}

/** Calls back with each chunk of a range: `[from, to)` in the chunk, and the offset of this part in the range. */
function eachPiece(
  at: number,
  length: number,
  call: (index: number, from: number, to: number, offset: number) => void,
): void {
  for (let done = 0; done < length; ) {
    const index = chunkAt(at + done);
    const from = at + done - chunkStart(index);
    const to = Math.min(chunkBytes(index), from + length - done);
    call(index, from, to, done);
    done += to - from;
  }
}

function isZero(bytes: Uint8Array): boolean {
  for (const byte of bytes) if (byte !== 0) return false;
  return true;
}
