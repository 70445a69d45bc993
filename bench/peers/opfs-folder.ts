/** Folders of the origin private file system in which stores are kept, one below the other. */

import type { DiskUse } from '../core/engine.ts';

/** Removes the folder `name` below the folder `top`, with what is in it, if it is there. */
export async function removeFolder(top: string, name: string): Promise<void> {
  const root = await navigator.storage.getDirectory();
  try {
    const folder = await root.getDirectoryHandle(top);
    await folder.removeEntry(name, { recursive: true });
  } catch (error) {
    if (!(error instanceof DOMException && error.name === 'NotFoundError')) throw error;
  }
}

/** The files of the folder `name` below the folder `top`, and of the folders in it. */
export async function folderUse(top: string, name: string): Promise<DiskUse> {
  const root = await navigator.storage.getDirectory();
  return useOf(await (await root.getDirectoryHandle(top)).getDirectoryHandle(name));
}

async function useOf(folder: FileSystemDirectoryHandle): Promise<DiskUse> {
  let [files, bytes] = [0, 0];
  for await (const handle of folder.values()) {
    const use =
      handle instanceof FileSystemFileHandle
        ? { files: 1, bytes: await sizeOf(handle) }
        : await useOf(handle as FileSystemDirectoryHandle);
    files += use.files;
    bytes += use.bytes;
  }
  return { files, bytes };
}

/** 0 of a file that is gone meanwhile: the stores that are weighed work on. */
async function sizeOf(file: FileSystemFileHandle): Promise<number> {
  try {
    return (await file.getFile()).size;
  } catch (error) {
    if (error instanceof DOMException && error.name === 'NotFoundError') return 0;
    throw error;
  }
}
