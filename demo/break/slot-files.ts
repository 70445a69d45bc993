// The files of a closed store in OPFS, as far as it takes to damage one: which of them hold tables.
//
//     page of 4 KiB, two copies of a header at 0 and 2048 (FORMAT.md, "Slot files"):
//     "VRVP" | u16 version | u8 role, 3 for a table | u8 0 | store id 16 B | u64 file number | u64 generation | u64 hash
//
// Invariant: only read here; the newer of the two copies says what a file is.

const HEADER_BYTES = 4096;
const COPIES = [0, 2048];
const MAGIC = 0x56_52_56_50;
const ROLE_AT = 6;
const GENERATION_AT = 32;
const TABLE = 3;

/** A file of a store. */
export interface SlotFile {
  readonly handle: FileSystemFileHandle;
  /** Where its content begins. */
  readonly start: number;
  readonly size: number;
}

/** The largest table of a store that nobody has open. */
export async function largestTable(store: string): Promise<SlotFile> {
  const origin = await navigator.storage.getDirectory();
  const folder = await (await origin.getDirectoryHandle('varve')).getDirectoryHandle(store);
  let largest: SlotFile | undefined;
  for await (const handle of folder.values()) {
    if (!(handle instanceof FileSystemFileHandle)) continue;
    const file = await handle.getFile();
    if (largest !== undefined && file.size <= largest.size) continue;
    if (isTable(await file.slice(0, HEADER_BYTES).arrayBuffer())) {
      largest = { handle, start: HEADER_BYTES, size: file.size };
    }
  }
  if (largest === undefined) throw new Error(`The store "${store}" has no tables.`);
  return largest;
}

function isTable(page: ArrayBuffer): boolean {
  if (page.byteLength < HEADER_BYTES) return false;
  const view = new DataView(page);
  let role = 0;
  let newest = -1n;
  for (const at of COPIES) {
    const generation = view.getBigUint64(at + GENERATION_AT, true);
    if (view.getUint32(at) !== MAGIC || generation <= newest) continue;
    newest = generation;
    role = view.getUint8(at + ROLE_AT);
  }
  return role === TABLE;
}
