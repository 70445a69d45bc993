/** Which kind of `SlotError` a call throws. */

import { SlotError, type SlotErrorKind } from '../../../js/src/storage/device.ts';

/** The kind, or `none` where nothing is thrown; any other error is passed on. */
export function kindOf(call: () => unknown): SlotErrorKind | 'none' {
  try {
    call();
  } catch (error) {
    if (error instanceof SlotError) return error.kind;
    throw error;
  }
  return 'none';
}
