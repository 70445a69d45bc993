/**
 * Every clause of the contract of storages can fail. Each storage here has one defect. The clause that names the defect must fail, and
 * every clause has such a storage.
 */

import { expect, test } from 'vitest';
import { ContractError, type LossyStorage, storageContract } from '../../js/src/testing.ts';
import { clauseNamed, expectCaught } from './support/caught.ts';
import { tools, wasm } from './support/engine.ts';
import { broken, Mutant } from './support/mutant.ts';
import { DEVICE_BREAKS } from './support/mutants-of-devices.ts';
import { LOSS_BREAKS } from './support/mutants-of-losses.ts';

const BREAKS = [...DEVICE_BREAKS, ...LOSS_BREAKS];

/** The clauses of the contract for a storage, by name. */
function clausesFor(create: () => LossyStorage): Map<string, () => Promise<void>> {
  const clauses = new Map<string, () => Promise<void>>();
  storageContract({
    test: (name, run) => clauses.set(name, run),
    create,
    losePower: (storage) => storage.losePower(),
    setRoom: (storage, bytes) => storage.setRoom(bytes),
    wasm,
    tools,
  });
  return clauses;
}

test.each(BREAKS)('%s: caught', async (_, create, starts) => {
  const clauses = clausesFor(create);
  for (const start of starts) await expectCaught(clauses, start);
});

test('an error of a clause names what it expected of the storage', async () => {
  const clauses = clausesFor(() => broken(() => ({ isOpen: () => false })));
  const caught = clauses.get(clauseNamed(clauses, 'a new store has'))?.();
  await expect(caught).rejects.toThrow(ContractError);
  await expect(clauses.get(clauseNamed(clauses, 'a new store has'))?.()).rejects.toThrow(
    'whether slot 0 of a new store is open: false instead of true.',
  );
});

test('every clause is failed by some storage, and none by a sound one', async () => {
  const clauses = clausesFor(() => new Mutant());
  const failed = new Set(BREAKS.flatMap(([, , starts]) => starts.map((start) => clauseNamed(clauses, start))));
  expect([...clauses.keys()].filter((name) => !failed.has(name))).toEqual([]);
  for (const run of clauses.values()) await run();
});
