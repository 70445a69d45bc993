/**
 * A check of an open store, on the side that has its files.
 *
 *     one turn     a snapshot keeps the tables' files; the first page of every slot, manifests and log are copied
 *     after it     another worker, or slices here, verifies; tables are read 1 MiB at a time, where the handles are
 *
 * Invariant: whatever is copied in that one turn is of one moment; tables never change. The snapshot is closed however the
 * check ends.
 */

import { abortError } from '../errors.ts';
import { type ManagedDevice, SLOT_DATA_OFFSET } from '../storage/device.ts';
import { nextTurn } from '../worker/turn.ts';
import { Tools } from './instance.ts';
import type { CheckReport, ToolsProgress } from './types.ts';

/** How long a slice may take on a thread that has other things to do. */
const SLICE_MS = 4;
/** Where a page says what its slot is for, in each of its copies, and that it is for a table. */
const ROLE_OFFSETS = [6, 2054] as const;
const ROLE_TABLE = 3;

/** A slot as it was in the one turn: its first page, or all of it where it is no table's. */
export interface SlotImage {
  readonly slot: number;
  /** Bytes in the slot. */
  readonly bytes: number;
  readonly image: Uint8Array<ArrayBuffer>;
}

/** What a check needs to know. */
export interface CheckInput {
  readonly images: readonly SlotImage[];
  /** Bytes written to the newest WAL segment. Without one of this session: 0 if the log is known to be torn, else -1. */
  readonly logEnd: number;
}

/** Serves bytes of a slot. */
export type ReadSlot = (slot: number, offset: number, length: number) => Uint8Array | Promise<Uint8Array>;

/** Copies what changes while the store is used. To be called in the turn in which the snapshot is taken. */
export function survey(device: ManagedDevice, logEnd: number): CheckInput {
  const images: SlotImage[] = [];
  for (let slot = 0; slot < device.count(); slot++) {
    if (!device.isOpen(slot)) continue;
    const bytes = device.size(slot);
    let image = readSlot(device, slot, 0, SLOT_DATA_OFFSET);
    const isTable = ROLE_OFFSETS.every((at) => image[at] === ROLE_TABLE || image[at] === 0);
    if (!isTable && bytes > SLOT_DATA_OFFSET) image = readSlot(device, slot, 0, bytes);
    images.push({ slot, bytes, image });
  }
  return { images, logEnd };
}

/** Reads from a slot; fewer bytes where it ends before. */
export function readSlot(device: ManagedDevice, slot: number, at: number, length: number): Uint8Array<ArrayBuffer> {
  const bytes = new Uint8Array(length);
  const read = device.read(slot, bytes, at);
  return read === length ? bytes : bytes.slice(0, read);
}

/** Verifies a store from what was copied and from what `read` gives of its tables. */
export async function runCheck(
  module: WebAssembly.Module,
  { images, logEnd }: CheckInput,
  read: ReadSlot,
  options: { onProgress?: ((progress: ToolsProgress) => void) | undefined; signal?: AbortSignal | undefined } = {},
): Promise<CheckReport> {
  const tools = new Tools(module);
  const copied = new Map<number, Uint8Array>();
  for (const { slot, bytes, image } of images) {
    tools.put(image.subarray(0, SLOT_DATA_OFFSET));
    tools.exports.check_page(slot, bytes);
    if (image.length > SLOT_DATA_OFFSET) copied.set(slot, image);
  }
  tools.run((exports) => exports.check_begin(logEnd));
  let sliceEnd = performance.now() + SLICE_MS;
  for (;;) {
    const step = tools.run((exports) => exports.check_step());
    if (step === 2) break;
    if (step === 1) {
      const { exports } = tools;
      const [slot, offset, length] = [exports.need_slot(), exports.need_offset(), exports.need_length()];
      const copy = copied.get(slot)?.subarray(offset, offset + length);
      tools.put(copy ?? (await read(slot, offset, length)));
      exports.check_feed();
    }
    if (performance.now() < sliceEnd) continue;
    options.onProgress?.(tools.progress);
    await nextTurn();
    if (options.signal?.aborted) throw abortError(options.signal);
    sliceEnd = performance.now() + SLICE_MS;
  }
  options.onProgress?.(tools.progress);
  const report = tools.report<Omit<CheckReport, 'ok'>>();
  return { ok: report.problems.length === 0, ...report };
}
