/**
 * The contract of storages, as tests: what the engine counts on, one sentence each.
 *
 * Invariant: a storage that passes keeps stores as safely as its own promises go; one that breaks a clause fails the test
 * of that name. The suite is itself tested with storages that are broken in one place each (tests/node/contract-mutants.test.ts).
 */

import { checkOptions, type Known } from '../options.ts';
import type { StorageAdapter } from '../storage/adapter.ts';
import { adapterClauses, deviceClauses } from './lifecycle.ts';
import { powerClauses, roomClauses } from './losses.ts';
import { settlingClauses, settlingPowerClauses, settlingRoomClauses } from './settling.ts';
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
  settles: 1,
  farBytes: 1,
  wasm: 1,
  tools: 1,
};

/**
 * Defines the tests of a storage, in whatever framework `test` is of. They need no other setting up than what the options
 * do, and run in any order, one at a time.
 *
 * Of what a storage can be made to do depends which tests there are: with `losePower` those of power cuts, with `setRoom`
 * those of a full storage. A storage is not tested without them; give them where at all possible. A storage whose devices
 * settle later has to say so with `settles`, and is tested for that too.
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
  if (options.settles) clauses.push(...settlingClauses);
  if (options.losePower !== undefined) clauses.push(...powerClauses);
  if (options.settles && options.losePower !== undefined) clauses.push(...settlingPowerClauses);
  if (options.setRoom !== undefined) clauses.push(...(options.settles ? settlingRoomClauses : roomClauses));
  clauses.push(...storeClauses);
  if (options.losePower !== undefined) clauses.push(...strictClauses);
  for (const { name, run } of clauses) {
    // Given on without its parameters: frameworks hand theirs to functions that take any.
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
