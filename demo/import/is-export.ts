// Tells an export of Varve from everything else.
// Invariant: a look at the first four bytes; whether the rest is whole, importing it says.

const MAGIC = 'VRVX';

/** Whether these bytes begin as `db.export()` does. */
export async function isExport(content: Blob): Promise<boolean> {
  const bytes = new Uint8Array(await content.slice(0, MAGIC.length).arrayBuffer());
  return String.fromCharCode(...bytes) === MAGIC;
}
