/** The folder of the origin private file system in which the floors keep their files. */

const FOLDER = 'bench-floor';

/** The handle of a floor's file, created when it is not there. */
export async function floorFile(name: string): Promise<FileSystemFileHandle> {
  return (await folder()).getFileHandle(name, { create: true });
}

/** Removes a floor's file, if it is there. */
export async function removeFloorFile(name: string): Promise<void> {
  try {
    await (await folder()).removeEntry(name);
  } catch (error) {
    if (!(error instanceof DOMException && error.name === 'NotFoundError')) throw error;
  }
}

async function folder(): Promise<FileSystemDirectoryHandle> {
  const top = await navigator.storage.getDirectory();
  return top.getDirectoryHandle(FOLDER, { create: true });
}
