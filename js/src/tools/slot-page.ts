/**
 * Finds where the files of a slot are, from any of the copies in its first page (crates/varve/src/storage/slot_header.rs).
 *
 * Invariant: nothing is verified here. A caller that copies these places copies at most too much. The check itself decides by
 * its checksums which copy is valid.
 */

/** The file kind of a table. */
export const TABLE = 3;

const COPY_BYTES = 1024;
/** "VRVP". */
const MAGIC = 0x50565256;
const CLAIMS_OFFSET = 48;
const CLAIM_BYTES = 24;
const CLAIMS_MAX = 40;
const PAGE_BYTES = 4096;

/** A file in a slot, from its first byte to the byte after its last. */
interface FilePlace {
  readonly kind: number;
  readonly start: number;
  readonly end: number;
}

/** The files that the copies in `page`, the first page of a slot of `bytes` bytes, name: each file once for each of its lengths. */
export function filesOf(page: Uint8Array, bytes: number): FilePlace[] {
  const view = new DataView(page.buffer, page.byteOffset, page.byteLength);
  const found = new Map<string, FilePlace>();
  for (let at = 0; at + COPY_BYTES <= page.length; at += COPY_BYTES) {
    if (view.getUint32(at, true) !== MAGIC) continue;
    for (const place of claims(view, at)) {
      const end = Math.min(place.end, bytes);
      found.set(`${place.kind} ${place.start} ${end}`, { ...place, end });
    }
  }
  return [...found.values()];
}

function claims(view: DataView, at: number): FilePlace[] {
  const count = Math.min(view.getUint32(at + 24, true), CLAIMS_MAX);
  return Array.from({ length: count }, (_, index) => {
    const claim = at + CLAIMS_OFFSET + index * CLAIM_BYTES;
    const start = view.getUint32(claim + 16, true) * PAGE_BYTES;
    const pages = view.getUint32(claim + 20, true);
    return {
      kind: view.getUint8(claim + 7),
      start,
      end: pages === 0 ? Number.POSITIVE_INFINITY : start + pages * PAGE_BYTES,
    };
  });
}
