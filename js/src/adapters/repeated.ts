/** Reads that are made again, because callers of adapters do not know `VARVE_RETRY`. */

import { hasCode } from '../errors.ts';

/** Reads, and reads again whenever the read point is gone. */
export async function repeated<T>(read: () => Promise<T>): Promise<T> {
  for (;;) {
    try {
      return await read();
    } catch (error) {
      if (!hasCode(error, 'VARVE_RETRY')) throw error;
    }
  }
}
