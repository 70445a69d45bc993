/**
 * Histories of the whole API at random, compared with models (tests/support/api): in files, in IndexedDB, and through `varve/sync`. Fresh
 * seeds for a while, or those that are asked for.
 */

import { afterEach, beforeEach, test, vi } from 'vitest';
import { runHistory } from '../support/api/run.ts';
import { fuzz } from '../support/api/settings.ts';
import { filePlace, indexedDbPlace, type NodePlace, syncPlace } from './support/places.ts';

/** Each with its share of the time, in hundredths; the rest is the browser's. */
const PLACES: readonly (readonly [name: string, make: () => NodePlace, hundredths: number])[] = [
  ['files', filePlace, 35],
  ['indexeddb', indexedDbPlace, 25],
  ['sync', syncPlace, 20],
];

let place: NodePlace | undefined;
const rejections: unknown[] = [];
const unheard = (error: unknown): void => void rejections.push(error);

beforeEach(() => void process.on('unhandledRejection', unheard));

afterEach(() => {
  process.off('unhandledRejection', unheard);
  place?.end();
  vi.restoreAllMocks();
  vi.unstubAllGlobals();
});

const FOR_AS_LONG_AS_ASKED = { timeout: 2 ** 31 - 1 };

test.each(PLACES)('all answers are those of a model: %s', FOR_AS_LONG_AS_ASKED, async (name, make, hundredths) => {
  const here = make();
  place = here;
  let count = 0;
  const limits = { isSync: name === 'sync', steps: 40 };
  await fuzz({ name, hundredths, ...limits }, async (history) => {
    await runHistory(here, `history ${count++}`, history);
    const [unheard] = rejections.splice(0);
    if (unheard !== undefined) throw new Error(`Nobody hears of a rejection: ${unheard}`, { cause: unheard });
  });
});
