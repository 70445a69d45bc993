// The files of a closed store in OPFS, only as far as needed to damage one: where its largest table lies.
//
//     page of 4 KiB, four copies of a header, 1 KiB each (FORMAT.md, "Slot files"):
//     "VRVP" | u16 version 2 | .. | u64 number of claims, at 24 | u64 generation, at 32 | .. | claim * number, from 48 on
//     claim of 24 B: u64 file number, its highest byte 3 for a table | u64 generation | u32 first page | u32 pages, 0: to the end
//
// Invariant: only read here; the newest of the copies states what a slot contains.

const PAGE_BYTES = 4096;
const COPY_BYTES = 1024;
const MAGIC = 0x56_52_56_50;
const NUMBER_AT = 24;
const GENERATION_AT = 32;
const CLAIMS_AT = 48;
const CLAIM_BYTES = 24;
const TABLE = 3;

/** A table of a store. */
export interface SlotFile {
  readonly handle: FileSystemFileHandle;
  /** Where its content begins. */
  readonly start: number;
  /** Where it ends, from the start of the slot. */
  readonly size: number;
}

/** The handles of all files of a store. */
async function handlesOf(store: string): Promise<FileSystemFileHandle[]> {
  const origin = await navigator.storage.getDirectory();
  const folder = await (await origin.getDirectoryHandle('varve')).getDirectoryHandle(store);
  const handles: FileSystemFileHandle[] = [];
  for await (const handle of folder.values()) if (handle instanceof FileSystemFileHandle) handles.push(handle);
  return handles;
}

/** All files of a store that nobody has open. */
export async function filesOf(store: string): Promise<File[]> {
  return Promise.all((await handlesOf(store)).map((handle) => handle.getFile()));
}

/** The largest table of a store that nobody has open. */
export async function largestTable(store: string): Promise<SlotFile> {
  let largest: SlotFile | undefined;
  for (const handle of await handlesOf(store)) {
    const file = await handle.getFile();
    for (const { start, end } of tablesOf(await file.slice(0, PAGE_BYTES).arrayBuffer())) {
      const size = Math.min(end, file.size);
      if (largest === undefined || size - start > largest.size - largest.start) largest = { handle, start, size };
    }
  }
  if (largest === undefined) throw new Error(`The store "${store}" has no tables.`);
  return largest;
}

/** Where the tables of a slot lie. */
function tablesOf(page: ArrayBuffer): { start: number; end: number }[] {
  if (page.byteLength < PAGE_BYTES) return [];
  const view = new DataView(page);
  let newest: number | undefined;
  for (let at = 0; at < PAGE_BYTES; at += COPY_BYTES) {
    const isNewer = newest === undefined || generationOf(view, at) > generationOf(view, newest);
    if (view.getUint32(at) === MAGIC && isNewer) newest = at;
  }
  if (newest === undefined) return [];
  const first = newest + CLAIMS_AT;
  const claims = Array.from({ length: view.getUint32(newest + NUMBER_AT, true) }, (_, i) => first + i * CLAIM_BYTES);
  return claims
    .filter((claim) => view.getUint8(claim + 7) === TABLE)
    .map((claim) => {
      const start = view.getUint32(claim + 16, true) * PAGE_BYTES;
      const pages = view.getUint32(claim + 20, true);
      return { start, end: pages === 0 ? Number.POSITIVE_INFINITY : start + pages * PAGE_BYTES };
    });
}

function generationOf(view: DataView, copy: number): bigint {
  return view.getBigUint64(copy + GENERATION_AT, true);
}
