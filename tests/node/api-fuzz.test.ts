/**
 * Random histories of the whole API, compared with models (tests/support/api): in files, in IndexedDB and OPFS, and through `varve/synchronous`.
 * The seeds are fresh for a while, or given by the environment.
 */

import { afterEach, beforeEach, test, vi } from 'vitest';
import { runHistory } from '../support/api/run.ts';
import { type FuzzedPlace, fuzz } from '../support/api/settings.ts';
import { filePlace, indexedDbPlace, type NodePlace, opfsPlace, syncPlace } from './support/places.ts';

const PLAIN = { isSync: false, hasTabs: false, isKilled: false, hasFolders: false, steps: 40 };
/** Each place with its share of the time, in hundredths. The rest is the browser's. */
const PLACES: readonly (FuzzedPlace & { readonly make: () => NodePlace })[] = [
  { ...PLAIN, name: 'files', make: filePlace, hundredths: 25, hasFolders: true },
  { ...PLAIN, name: 'indexeddb', make: indexedDbPlace, hundredths: 20, hasTabs: true },
  { ...PLAIN, name: 'opfs', make: opfsPlace, hundredths: 20, hasTabs: true, isKilled: true },
  { ...PLAIN, name: 'sync', make: syncPlace, hundredths: 15, isSync: true, hasFolders: true },
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

test.each(PLACES)('all answers are those of a model: $name', FOR_AS_LONG_AS_ASKED, async (fuzzed) => {
  const here = fuzzed.make();
  place = here;
  let count = 0;
  await fuzz(fuzzed, async (history) => {
    await runHistory(here, `history ${count++}`, history);
    const [unheard] = rejections.splice(0);
    if (unheard !== undefined) throw new Error(`Nobody hears of a rejection: ${unheard}`, { cause: unheard });
  });
});
