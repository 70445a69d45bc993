/** The error for stored bytes of a form that this code does not know. */

import { VarveError } from '../errors.ts';

/** `what` is the part that is unknown here, such as 'a key'. */
export function newer(what: string): VarveError {
  return new VarveError(
    'VARVE_VERSION',
    `A newer version of varve, or another program, wrote ${what}. Reload, or update varve.`,
  );
}
