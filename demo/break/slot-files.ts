// The files of a closed store in OPFS, only as far as needed to damage one: where its largest table lies.
//
// Invariant: only read here; the newest copy of a slot's header states what the slot contains.

import { filesOf as placesOf, TABLE } from '../../js/src/tools/slot-page.ts';

const PAGE_BYTES = 4096;
/** The first page of a slot has four copies of a header (FORMAT.md, "Slot files"). */
const COPY_BYTES = 1024;
/** The place of the generation in a copy. */
const GENERATION_AT = 32;

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
    for (const { start, end } of tablesOf(await file.slice(0, PAGE_BYTES).arrayBuffer(), file.size)) {
      if (largest === undefined || end - start > largest.size - largest.start) largest = { handle, start, size: end };
    }
  }
  if (largest === undefined) throw new Error(`The store "${store}" has no tables.`);
  return largest;
}

/** Where the tables of a slot of `bytes` bytes lie. */
function tablesOf(page: ArrayBuffer, bytes: number): { start: number; end: number }[] {
  if (page.byteLength < PAGE_BYTES) return [];
  let newest = 0;
  for (let at = COPY_BYTES; at < PAGE_BYTES; at += COPY_BYTES) {
    if (generationOf(page, at) > generationOf(page, newest)) newest = at;
  }
  return placesOf(new Uint8Array(page, newest, COPY_BYTES), bytes).filter(({ kind }) => kind === TABLE);
}

function generationOf(page: ArrayBuffer, copy: number): bigint {
  return new DataView(page).getBigUint64(copy + GENERATION_AT, true);
}
