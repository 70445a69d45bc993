/**
 * The chunks that stay in the journal when it is folded: those with the fewest bytes, such as the headers of slots and the manifest. The
 * next opening reads the journal in any case, and needs just these chunks before anything else.
 *
 * Invariant: the patches of a chunk make it whole, whatever the store has of it.
 */

import type { Chunk } from './chunk.ts';
import { ALL_ZEROS, PATCH_HEAD_BYTES, type Patch } from './journal-row.ts';

/** Most bytes of these chunks. Chromium keeps longer values in files, which take longer to read. */
const KEPT_BYTES_MAX = 48 * 1024;
/** Zeros that end a patch: another one takes fewer bytes. */
const GAP_BYTES_MIN = 32;

/** The chunks with the fewest bytes other than zero, at most `bytesMax` together, each as patches. */
export function keptInJournal(chunks: readonly Chunk[], bytesMax: number): Map<Chunk, Patch[]> {
  const whole = chunks
    .filter(({ known }) => known === undefined)
    .map((chunk) => ({ chunk, patches: patchesOf(chunk) }));
  const sized = whole.map(({ chunk, patches }) => {
    const bytes = patches.reduce((sum, patch) => sum + PATCH_HEAD_BYTES + patch.bytes.length, 0);
    return { chunk, patches, bytes };
  });
  sized.sort((a, b) => a.bytes - b.bytes);
  const kept = new Map<Chunk, Patch[]>();
  let left = Math.min(bytesMax, KEPT_BYTES_MAX);
  for (const { chunk, patches, bytes } of sized) {
    left -= bytes;
    if (left < 0) break;
    kept.set(chunk, patches);
  }
  return kept;
}

/** A whole chunk as patches. */
function patchesOf({ slot, index, bytes }: Chunk): Patch[] {
  const patches: Patch[] = [{ slot, index, from: ALL_ZEROS, bytes: new Uint8Array(0) }];
  let from = -1;
  let to = 0;
  for (let at = 0; at <= bytes.length; at++) {
    if (bytes[at] === 0) continue;
    // The end counts as a byte behind a long gap.
    if (from >= 0 && (at === bytes.length || at - to >= GAP_BYTES_MIN)) {
      patches.push({ slot, index, from, bytes: bytes.subarray(from, to) });
      from = -1;
    }
    if (from < 0) from = at;
    to = at + 1;
  }
  return patches;
}
