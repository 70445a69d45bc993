/**
 * New names in the origin private file system that are there after the browser was killed.
 *
 * Chromium keeps the names of an origin's files in a LevelDB. A kill while it adds one can leave half a record at the end of
 * its log. The next start appends behind that half, and the start after that one skips from there to the end of the
 * block of 32 KiB: the names in between are gone, silently, and with them the bytes of files that were flushed long ago.
 *
 *     | names ... | half a record | new names ... lost      | long name, made and removed | new names ... kept
 *     |<---------------------- a block ------------------------------->|<---------------- the next ---->
 *
 * So before the first new name a name is made and removed that fills the rest of the block, wherever in it the log is. Found by
 * `tests/engines/kill.test.ts`; `tests/engines/torn-logs.test.ts` has the half record. The log's format is LevelDB's
 * (https://github.com/google/leveldb/blob/main/doc/log_format.md).
 */

const BLOCK_BYTES = 32 * 1024;
/** Making a name logs it twice, removing it once more. */
const NAME = 'varve-fills-a-block'.padEnd(Math.ceil(BLOCK_BYTES / 3), '-');

/** Call it before names are created whose loss would matter, once for each worker. It never fails: what it guards against is rare. */
export async function outrunTornNames(): Promise<void> {
  // Other engines keep names elsewhere.
  if (!('userAgentData' in navigator)) return;
  try {
    const root = await navigator.storage.getDirectory();
    // One that a kill has left would be made without a record.
    await root.removeEntry(NAME).catch(() => undefined);
    await root.getDirectoryHandle(NAME, { create: true });
    await root.removeEntry(NAME);
  } catch {
    // No room, or another worker was faster: then its records fill the block.
  }
}
