/** The options of a repair, checked, and in the form that is sent to the worker. */

import { invalid } from '../errors.ts';
import type { RepairRequest } from '../protocol/messages.ts';
import type { RepairOptions } from '../tools/types.ts';

import { checkName, lockTimeoutOf, wasmPlace } from './options.ts';

/** The request of a repair. Throws unless its name and its options are valid. */
export function repairRequest(name: string, options: RepairOptions): RepairRequest {
  const { into = `${name}-repaired`, strict = false, tools } = options;
  checkName(name);
  checkName(into);
  const lockTimeout = lockTimeoutOf(options);
  if (into === name) throw invalid('A store is not repaired in place: name another one as into.');
  return { into, strict, lockTimeout, tools: tools === undefined ? undefined : wasmPlace(tools) };
}
