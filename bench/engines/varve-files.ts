/** The files of a closed store of Varve's, weighed from outside. */

/** Bytes of all files in the store's folder, as the file system counts them. */
export async function storeFileBytes(name: string): Promise<number> {
  const top = await navigator.storage.getDirectory();
  const stores = await top.getDirectoryHandle('varve');
  const folder = await stores.getDirectoryHandle(name);
  let bytes = 0;
  for await (const handle of folder.values()) {
    if (handle instanceof FileSystemFileHandle) bytes += (await handle.getFile()).size;
  }
  return bytes;
}
