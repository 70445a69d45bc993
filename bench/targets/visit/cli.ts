/**
 * `npm run bench -- visit`: a small notes app over Varve and over others, as a browser's user meets it: from the navigation on.
 *
 * Invariant: a store that gives something else than was written fails the run.
 */

import { inBrowser } from '../browser/session.ts';
import { namesOf, numberOf, runTarget, versionOf } from '../command.ts';
import { STORES, startSites } from './site.ts';
import { SUITES, Visits } from './visits.ts';

await runTarget({
  name: 'visit',
  place: 'from the navigation on',
  flags: {
    suite: ['--suite <list>', `of ${SUITES.join(', ')} (default: all)`],
    stores: ['--stores <list>', `of ${STORES.join(', ')} (default: all)`],
    rounds: ['--rounds <number>', 'interleaved rounds (default 10; with --quick 3)'],
    quick: ['--quick', 'three rounds'],
  },
  async run({ suite, stores, quick, rounds = quick ? '3' : '10' }, folder, emit) {
    const suites = namesOf('suite', suite, SUITES);
    const named = namesOf('stores', stores, STORES);
    const count = Math.ceil(numberOf('rounds', rounds));
    const site = await startSites(named, folder);
    try {
      return await inBrowser({}, async (page) => {
        const devtools = await page.context().newCDPSession(page);
        await devtools.send('Network.enable');
        const visits = new Visits(page, devtools, site, named);
        for (let round = 0; round < count; round++) {
          emit({ type: 'progress', done: round, total: count, text: `round ${round + 1} of ${count}` });
          if (suites.includes('open-first-visit')) await visits.first(round);
          if (suites.includes('notes-app')) await visits.use(round);
        }
        visits.conclude(emit);
        return { versions: { node: process.versions.node, varve: versionOf('..'), vite: versionOf('vite') } };
      });
    } finally {
      await site.close();
    }
  },
});
