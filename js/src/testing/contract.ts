/**
 * The contract of storages, as tests: the guarantees that the engine relies on, one sentence each.
 *
 * Invariant: a storage that passes keeps stores as safely as its own guarantees allow. A storage that breaks a clause fails the
 * test of that name. The suite itself is tested with storages that are broken in one place each (tests/node/contract-mutants.test.ts).
 */

import { checkOptions, type Known } from '../options.ts';
import type { StorageAdapter } from '../storage/adapter.ts';
import { deferredClauses, deferredPowerClauses, deferredRoomClauses } from './deferred.ts';
import { adapterClauses, deviceClauses } from './lifecycle.ts';
import { powerClauses, roomClauses } from './losses.ts';
import { slotClauses } from './slots.ts';
import { storeClauses, strictClauses } from './stores.ts';
import { type Clause, type ContractOptions, Subject } from './subject.ts';

const CONTRACT: Known<ContractOptions> = {
  test: 1,
  create: 1,
  end: 1,
  other: 1,
  losePower: 1,
  setRoom: 1,
  deferred: 1,
  farBytes: 1,
  wasm: 1,
  tools: 1,
};

/**
 * Defines the tests of a storage, in the framework that `test` belongs to. They need no other setup than the options, and run
 * in any order, one at a time.
 *
 * The options decide which tests there are: `losePower` adds the tests of power cuts, and `setRoom` those of a full storage. A
 * storage is not fully tested without them, so pass them if at all possible. If the devices of a storage commit later, set
 * `deferred`; this is then tested too.
 *
 * @example
 * import { test } from 'node:test';
 * import { storageContract } from 'varve/testing';
 *
 * storageContract({
 *   test,
 *   create: () => new MyStorage(mkdtempSync('/tmp/test-')),
 *   end: (storage) => storage.remove(),
 * });
 */
export function storageContract<S extends StorageAdapter>(options: ContractOptions<S>): void {
  checkOptions(options, CONTRACT);
  const clauses: Clause[] = [...slotClauses, ...deviceClauses, ...adapterClauses];
  if (options.deferred) clauses.push(...deferredClauses);
  if (options.losePower !== undefined) clauses.push(...powerClauses);
  if (options.deferred && options.losePower !== undefined) clauses.push(...deferredPowerClauses);
  if (options.setRoom !== undefined) clauses.push(...(options.deferred ? deferredRoomClauses : roomClauses));
  clauses.push(...storeClauses);
  if (options.losePower !== undefined) clauses.push(...strictClauses);
  for (const { name, run } of clauses) {
    // Passed on without parameters, because frameworks pass their own arguments to functions that have some.
    options.test(name, () => runClause(options, run));
  }
}

async function runClause<S extends StorageAdapter>(options: ContractOptions<S>, run: Clause['run']): Promise<void> {
  const storage = await options.create();
  const subject = new Subject(options as unknown as ContractOptions, storage);
  try {
    await run(subject);
  } finally {
    await subject.end().finally(() => options.end?.(storage));
  }
}
