/**
 * The suite `page-cached`: reads that a tab answers from its cache; alone, and beside a second tab that has the store open, or writes to the
 * keys that are read all the time.
 *
 * Invariant: the second tab sets each key to the value that it has, so that all answers can be checked as without it.
 */

import { type Beside, type Loop, registerLoops } from '../../core/loops.ts';
import { count } from '../../core/suite.ts';
import { inMemory, points } from '../fixtures.ts';
import { House } from './house.ts';
import { SHARED } from './protocol.ts';

/** So few keys that after the rehearsal all reads are answered in the tab; ranges begin at 101 of 200 keys. */
const cached = { ...inMemory, accesses: ['page'], entries: count(1000, 1000), cache: true } as const;
const get: Loop = { ...cached, phase: 'get' };
const range: Loop = {
  ...cached,
  ...{ phase: 'range of 100', entries: count(200, 200), calls: count(2000, 10_000) },
  work: { kind: 'ranges', size: 100 },
};

const secondTab = (writes: boolean): Beside => ({
  can: ({ name }) => globalThis.varveBenchTabs !== undefined && SHARED.includes(name),
  begin: async ({ engine: { name: engine }, name: store, dataset }) => {
    const house = new House();
    const tab = await house.open();
    await tab.call.open({ engine, store, entries: dataset.keys.length, isFirst: false });
    if (writes) await tab.call.rewrite(engine);
    return async () => {
      const written = writes ? await tab.call.stop() : undefined;
      await tab.call.close({ engine, store, remove: false });
      await house.close();
      if (written?.errors[0] !== undefined) throw new Error(`The second tab: ${written.errors[0]}`);
      if (written?.writes.length === 0) throw new Error('The second tab wrote nothing.');
    };
  },
});

registerLoops(
  { name: 'page-cached', title: 'reads that the tab answers', quick: true },
  ...[get, range].flatMap((loop) => [
    loop,
    { ...loop, phase: `${loop.phase}, a second tab is idle`, beside: secondTab(false) },
    { ...loop, phase: `${loop.phase}, a second tab writes`, beside: secondTab(true) },
  ]),
  { ...cached, phase: '90% reads', work: points({ reads: 0.9 }) },
);
