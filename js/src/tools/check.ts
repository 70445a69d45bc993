/**
 * Checks a store, on the side that has its files: an open one, or one that nobody else writes to.
 *
 *     one turn     a snapshot keeps the tables' files; the first page of every slot, manifests and log are copied
 *     after it     another worker, or slices here, verifies; tables are read 1 MiB at a time, where the handles are
 *
 * Invariants:
 * - Everything that is copied in that one turn belongs to one read point; tables never change. The snapshot is closed however the check
 *   ends.
 * - After that turn only tables that the snapshot keeps are read: any other slot may be lent, or used again. A slot that is lent in
 *   that turn contains nothing that a manifest names.
 * - Unreadable bytes are listed as a problem.
 */

import { nextTurn } from '../runtime/turn.ts';
import { type ManagedDevice, SLOT_DATA_OFFSET, SlotError } from '../storage/device.ts';
import type { Progress } from '../types.ts';
import { Tools } from './instance.ts';
import { filesOf, TABLE } from './slot-page.ts';
import type { CheckReport } from './types.ts';

/** How long a slice may take on a thread that has other work to do. */
const SLICE_MS = 4;

/** A part of a slot as it was in the one turn. */
interface Piece {
  readonly at: number;
  readonly image: Uint8Array<ArrayBuffer>;
}

/** A slot as it was in the one turn: its first page, and its files except tables. */
interface SlotImage {
  readonly slot: number;
  /** Bytes in the slot. */
  readonly bytes: number;
  readonly page: Uint8Array<ArrayBuffer>;
  readonly pieces: readonly Piece[];
}

/** The input of a check. */
export interface CheckInput {
  readonly images: readonly SlotImage[];
  /** Bytes written to the newest WAL segment. If this session has none: 0 if the log is torn, else -1. -2: the store is not open. */
  readonly logEnd: number;
  /** The data keys of an encrypted store (wasm/data-keys.ts). */
  readonly keys?: Uint8Array | undefined;
}

/** Returns bytes of a slot. */
export type ReadSlot = (slot: number, offset: number, length: number) => Uint8Array | Promise<Uint8Array>;

/**
 * Copies the parts that change while the store is used. To be called in the turn in which the snapshot is taken. If bytes still have to be
 * fetched, it asks for all of them before it throws.
 */
export function survey(device: ManagedDevice, logEnd: number): CheckInput {
  const open = Array.from({ length: device.count() }, (_, slot) => slot).filter((slot) => device.isOpen(slot));
  return { images: each(open, (slot) => imageOf(device, slot)), logEnd };
}

function imageOf(device: ManagedDevice, slot: number): SlotImage {
  const bytes = device.size(slot);
  const page = readSlot(device, slot, 0, SLOT_DATA_OFFSET);
  const places = filesOf(page, bytes).filter(({ kind, start }) => kind !== TABLE && start < bytes);
  const pieces = each(places, ({ start, end }) => ({ at: start, image: readSlot(device, slot, start, end - start) }));
  return { slot, bytes, page, pieces };
}

/** Makes all calls, even if some need bytes that still have to be fetched; then it throws the error of the last of those. */
function each<T, R>(list: readonly T[], call: (one: T) => R): R[] {
  const results: R[] = [];
  let pending: SlotError | undefined;
  for (const one of list) {
    try {
      results.push(call(one));
    } catch (error) {
      if (!isSlotError(error, 'pending')) throw error;
      pending = error;
    }
  }
  if (pending !== undefined) throw pending;
  return results;
}

/** Reads from a slot. Returns fewer bytes if the slot ends earlier, and none if they cannot be read. */
export function readSlot(device: ManagedDevice, slot: number, at: number, length: number): Uint8Array<ArrayBuffer> {
  const bytes = new Uint8Array(length);
  let read = 0;
  try {
    read = device.read(slot, bytes, at);
  } catch (error) {
    if (!isSlotError(error, 'io')) throw error;
  }
  return read === length ? bytes : bytes.slice(0, read);
}

function isSlotError(error: unknown, kind: SlotError['kind']): error is SlotError {
  return error instanceof SlotError && error.kind === kind;
}

/** Verifies a store, from the copied parts and from the bytes of tables that `read` returns. */
export async function runCheck(
  module: WebAssembly.Module,
  { images, logEnd, keys = new Uint8Array() }: CheckInput,
  read: ReadSlot,
  options: { onProgress?: ((progress: Progress) => void) | undefined; signal?: AbortSignal | undefined } = {},
): Promise<CheckReport> {
  const tools = new Tools(module);
  const copied = new Map<number, readonly Piece[]>();
  for (const { slot, bytes, page, pieces } of images) {
    tools.put(page);
    tools.exports.check_page(slot, bytes);
    copied.set(slot, pieces);
  }
  tools.put(keys);
  keys.fill(0);
  tools.run((exports) => exports.check_begin(logEnd));
  let sliceEnd = performance.now() + SLICE_MS;
  for (;;) {
    const step = tools.run((exports) => exports.check_step());
    if (step === 2) break;
    if (step === 1) {
      const { exports } = tools;
      const [slot, offset, length] = [exports.need_slot(), exports.need_offset(), exports.need_length()];
      const contains = ({ at, image }: Piece): boolean => at <= offset && offset + length <= at + image.length;
      const piece = copied.get(slot)?.find(contains);
      const copy = piece?.image.subarray(offset - piece.at, offset - piece.at + length);
      // An empty file was not copied, and its slot may be lent by now.
      tools.put(copy ?? (length === 0 ? new Uint8Array() : await read(slot, offset, length)));
      exports.check_feed();
    }
    if (performance.now() < sliceEnd) continue;
    options.onProgress?.(tools.progress);
    await nextTurn();
    options.signal?.throwIfAborted();
    sliceEnd = performance.now() + SLICE_MS;
  }
  options.onProgress?.(tools.progress);
  const report = tools.report<Omit<CheckReport, 'ok'>>();
  return { ok: report.problems.length === 0, ...report };
}
