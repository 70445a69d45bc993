/** Files and folders in the origin private file system: those of the floors, and of the stores that can be weighed. */

import type { DiskUse } from '../core/engine.ts';

const FLOORS = 'bench-floor';

const folderOf = async (top: string, create = false): Promise<FileSystemDirectoryHandle> =>
  (await navigator.storage.getDirectory()).getDirectoryHandle(top, { create });

export async function floorFile(name: string): Promise<FileSystemFileHandle> {
  return (await folderOf(FLOORS, true)).getFileHandle(name, { create: true });
}

export const removeFloorFile = (name: string): Promise<void> => removeEntry(FLOORS, name);

/** Removes a file, or a folder with its content, from the folder `top`, if it is there. */
export async function removeEntry(top: string, name: string): Promise<void> {
  const removed = folderOf(top).then((folder) => folder.removeEntry(name, { recursive: true }));
  await removed.catch(unlessGone);
}

export async function folderUse(top: string, name: string): Promise<DiskUse> {
  return useOf(await (await folderOf(top)).getDirectoryHandle(name));
}

export const storeFiles = (name: string): Promise<DiskUse> => folderUse('varve', name);

async function useOf(folder: FileSystemDirectoryHandle): Promise<DiskUse> {
  let [files, bytes] = [0, 0];
  for await (const handle of folder.values()) {
    const isFile = handle instanceof FileSystemFileHandle;
    const use = isFile ? { files: 1, bytes: await sizeOf(handle) } : await useOf(handle as FileSystemDirectoryHandle);
    files += use.files;
    bytes += use.bytes;
  }
  return { files, bytes };
}

/** 0 if the file is gone: stores continue to work while they are weighed. */
async function sizeOf(file: FileSystemFileHandle): Promise<number> {
  return (await file.getFile().catch(unlessGone))?.size ?? 0;
}

function unlessGone(error: unknown): undefined {
  if (!(error instanceof DOMException && error.name === 'NotFoundError')) throw error;
  return undefined;
}
