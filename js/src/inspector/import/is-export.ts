/**
 * Recognizes an export of Varve. Invariant: it looks only at the first four bytes; the import checks whether the rest is complete.
 */

const MAGIC = 'VRVX';

/** Whether these bytes begin like those of `db.export()`. */
export async function isExport(content: Blob): Promise<boolean> {
  const bytes = new Uint8Array(await content.slice(0, MAGIC.length).arrayBuffer());
  return String.fromCharCode(...bytes) === MAGIC;
}
