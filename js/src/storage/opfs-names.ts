/**
 * Makes new names in the origin private file system survive a kill of the browser.
 *
 * Chromium keeps the names of an origin's files in a LevelDB. A kill while it adds one can leave half a record at the end of
 * its log. The next start appends behind that half, and the start after that one skips from there to the end of the
 * block of 32 KiB. The names in between are lost without an error, and with them the bytes of files that were flushed long ago.
 *
 *     | names ... | half a record | new names ... lost      | long name, made and removed | new names ... kept
 *     |<---------------------- a block ------------------------------->|<---------------- the next ---->
 *
 * So before the first new name, this module makes and removes a name that fills the rest of the block, wherever in it the log ends.
 * Found by `tests/engines/kill.test.ts`; `tests/engines/torn-logs.test.ts` has the half record. The log's format is LevelDB's
 * (https://github.com/google/leveldb/blob/main/doc/log_format.md).
 */

const BLOCK_BYTES = 32 * 1024;
/** Making a name logs it twice; removing it logs it once more. */
const NAME = 'varve-fills-a-block'.padEnd(Math.ceil(BLOCK_BYTES / 3), '-');

/** Call it once in each worker, before it creates names whose loss would matter. It never fails, because the problem is rare. */
export async function outrunTornNames(): Promise<void> {
  // Other browsers keep the names elsewhere.
  if (!('userAgentData' in navigator)) return;
  try {
    const root = await navigator.storage.getDirectory();
    // If a kill has left the name behind, making it again would write no record.
    await root.removeEntry(NAME).catch(() => undefined);
    await root.getDirectoryHandle(NAME, { create: true });
    await root.removeEntry(NAME);
  } catch {
    // No room, or another worker was faster: then its records fill the block.
  }
}
