/** Reads of a view whose read point is gone once. */

import { vi } from 'vitest';
import { VarveError } from '../../../js/src/errors.ts';
import { ReadView } from '../../../js/src/store/read-view.ts';

const READS = ['get', 'has', 'getMany', 'keys', 'values', 'entries'] as const;

/** Makes the next call of each kind of read fail with `VARVE_RETRY`. Returns how many of them have failed. */
export function goneOnce(): () => number {
  let failed = 0;
  for (const read of READS) {
    vi.spyOn(ReadView.prototype, read).mockImplementationOnce((): never => {
      failed++;
      throw new VarveError('VARVE_RETRY', 'The read point is gone.');
    });
  }
  return () => failed;
}
