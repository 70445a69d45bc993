/**
 * The values that are written beside chunks: rows of the journal, and notes of the chunks that a commit may leave behind.
 *
 *     row      u32 bytes of the row | u32 drops { u32 slot, u32 index }* | u32 runs { run }* | what the device wrote
 *     debris   u32 staged { run }* | u32 replaced { run }*
 *     run      u32 slot, u32 index, u32 count, f64 generation
 *
 * Little-endian. A row first drops all chunks of a slot from an index on, then names the chunks that have a new generation. The
 * first row that counts names all chunks. A row that is longer than a value is stored in parts.
 *
 * A commit of several operations notes its debris before it stages its first chunk: `staged` is to be deleted if the commit did
 * not take place, `replaced` if it did.
 *
 * Invariant: a row with a missing part does not decode.
 */

import type { ChunkName } from '../buffered/chunk-store.ts';
import type { ChunkRun } from './chunk-map.ts';

/** Bytes of a part of a row, and of a note, at most. */
const PART_BYTES = 60_000;
const RUN_BYTES = 20;
/** Runs that a note has room for. */
const DEBRIS_RUNS_MAX = PART_BYTES / RUN_BYTES;

/** A row of the journal. */
export interface StoredRow {
  readonly drops: readonly ChunkName[];
  readonly runs: readonly ChunkRun[];
  /** The device's own bytes. */
  readonly row: Uint8Array;
}

/** Chunks that one of two outcomes leaves behind. */
interface Debris {
  readonly staged: readonly ChunkRun[];
  readonly replaced: readonly ChunkRun[];
}

/** Encodes a row in parts; each part is a value. */
export function encodeStoredRow({ drops, runs, row }: StoredRow): Uint8Array<ArrayBuffer>[] {
  const bytes = new Uint8Array(12 + drops.length * 8 + runs.length * RUN_BYTES + row.length);
  const view = new DataView(bytes.buffer);
  view.setUint32(0, bytes.length, true);
  view.setUint32(4, drops.length, true);
  let at = 8;
  for (const { slot, index } of drops) {
    view.setUint32(at, slot, true);
    view.setUint32(at + 4, index, true);
    at += 8;
  }
  at = putRuns(view, at, runs);
  bytes.set(row, at);
  return Array.from({ length: Math.ceil(bytes.length / PART_BYTES) }, (_, part) =>
    bytes.slice(part * PART_BYTES, (part + 1) * PART_BYTES),
  );
}

/** Decodes the parts of a row; undefined when a part is missing. */
export function decodeStoredRow(parts: readonly Uint8Array[]): StoredRow | undefined {
  const bytes = new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0));
  let end = 0;
  for (const part of parts) {
    bytes.set(part, end);
    end += part.length;
  }
  const view = new DataView(bytes.buffer);
  if (bytes.length < 12 || view.getUint32(0, true) !== bytes.length) return undefined;
  const drops: ChunkName[] = [];
  let at = 8;
  for (let left = view.getUint32(4, true); left > 0; left--) {
    drops.push({ slot: view.getUint32(at, true), index: view.getUint32(at + 4, true) });
    at += 8;
  }
  const runs: ChunkRun[] = [];
  at = takeRuns(view, at, runs);
  return { drops, runs, row: bytes.subarray(at) };
}

/** Encodes notes; each note is a value. */
export function encodeDebris({ staged, replaced }: Debris): Uint8Array<ArrayBuffer>[] {
  const notes: Uint8Array<ArrayBuffer>[] = [];
  for (let from = 0; from < staged.length + replaced.length; from += DEBRIS_RUNS_MAX) {
    const to = from + DEBRIS_RUNS_MAX;
    const mine = staged.slice(from, to);
    const others = replaced.slice(Math.max(0, from - staged.length), Math.max(0, to - staged.length));
    const bytes = new Uint8Array(8 + (mine.length + others.length) * RUN_BYTES);
    const view = new DataView(bytes.buffer);
    putRuns(view, putRuns(view, 0, mine), others);
    notes.push(bytes);
  }
  return notes;
}

/** Decodes a note. */
export function decodeDebris(bytes: Uint8Array): Debris {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
  const staged: ChunkRun[] = [];
  const replaced: ChunkRun[] = [];
  takeRuns(view, takeRuns(view, 0, staged), replaced);
  return { staged, replaced };
}

function putRuns(view: DataView, start: number, runs: readonly ChunkRun[]): number {
  let at = start;
  view.setUint32(at, runs.length, true);
  at += 4;
  for (const { slot, index, count, generation } of runs) {
    view.setUint32(at, slot, true);
    view.setUint32(at + 4, index, true);
    view.setUint32(at + 8, count, true);
    view.setFloat64(at + 12, generation, true);
    at += RUN_BYTES;
  }
  return at;
}

function takeRuns(view: DataView, start: number, runs: ChunkRun[]): number {
  let at = start + 4;
  for (let left = view.getUint32(start, true); left > 0; left--) {
    const [slot, index, count] = [0, 4, 8].map((offset) => view.getUint32(at + offset, true)) as [
      number,
      number,
      number,
    ];
    runs.push({ slot, index, count, generation: view.getFloat64(at + 12, true) });
    at += RUN_BYTES;
  }
  return at;
}
