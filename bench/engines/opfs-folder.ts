/** Folders of the origin private file system in which peers keep their stores, one below the other. */

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
