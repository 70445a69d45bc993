/** The options of a repair, or of a check of a store that is not open: checked, and in the form that is sent to the worker. */

import { invalid } from '../errors.ts';
import type { RepairRequest } from '../protocol/messages.ts';
import type { ClosedStoreOptions, RepairOptions } from '../tools/types.ts';

import { checkName, lockTimeoutOf, wasmPlace } from './options.ts';

/** The request of a check. Throws unless its name and its options are valid. */
export function checkRequest(name: string, options: ClosedStoreOptions): RepairRequest {
  checkName(name);
  const { tools } = options;
  const lockTimeout = lockTimeoutOf(options);
  return { into: undefined, dropOlder: false, lockTimeout, tools: tools === undefined ? undefined : wasmPlace(tools) };
}

/** The request of a repair. Throws unless its name and its options are valid. */
export function repairRequest(name: string, options: RepairOptions): RepairRequest {
  const { into = `${name}-repaired`, dropOlder = false } = options;
  const request = checkRequest(name, options);
  checkName(into);
  if (into === name) throw invalid('A store is not repaired in place: name another one as into.');
  return { ...request, into, dropOlder };
}
