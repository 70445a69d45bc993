/** The mark of an export. */

/** The first bytes of an export: `VRVX`. */
export const MAGIC: Uint8Array = Uint8Array.of(0x56, 0x52, 0x56, 0x58);

/** Whether bytes can be the beginning of an export. */
export function isExport(bytes: Uint8Array): boolean {
  return bytes.length > 0 && MAGIC.every((byte, i) => i >= bytes.length || byte === bytes[i]);
}
