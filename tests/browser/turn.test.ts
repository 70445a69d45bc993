// One synchronous turn of any size over OPFS. A worker loads, or overwrites, without a pause. The browser is killed in the middle of it.
// `VARVE_TURN_MEGABYTES` sets the size (2,000 with `npm run test:turn`), `VARVE_SEED` the data.

import { afterAll, beforeAll, test } from 'vitest';
import { numberFrom, runSeed } from '../support/seed.ts';
import type { TurnReport } from '../support/turn.ts';
import { liveTurn, type TurnDriver, turnsOf } from '../support/turn-judge.ts';
import { newProfile, openWorker, type Profile } from './support/profile.ts';

const MEGABYTES = numberFrom('VARVE_TURN_MEGABYTES', 500);
const TIMEOUT = 120_000 + 1000 * MEGABYTES;

const seed = runSeed('browser', 'turn');
let profile: Profile;

beforeAll(async () => {
  profile = await newProfile();
});

afterAll(() => profile?.close());

/** A store of this name. */
function driverOf(name: string): TurnDriver {
  return {
    async write(plan, isEnough) {
      const { page, errors } = await profile.openPage();
      const { worker } = await openWorker(page, '/turn-worker.js');
      const reports: TurnReport[] = [];
      const written = new Promise<void>((resolve, reject) => {
        page.on('console', (message) => {
          if (message.type() === 'error') reject(new Error(message.text()));
          if (message.type() !== 'debug') return;
          const last = JSON.parse(message.text()) as TurnReport;
          reports.push(last);
          if (isEnough(last)) resolve();
        });
        page.on('pageerror', reject);
      });
      await worker.evaluate(([store, what]) => turn.write(store, what), [name, plan] as const);
      await written;
      await profile.kill();
      if (errors.length > 0) throw new Error(errors.join('; '));
      return reports;
    },
    async read(plan) {
      const { page } = await profile.openPage();
      const { worker } = await openWorker(page, '/turn-worker.js');
      const found = await worker.evaluate(([store, what]) => turn.read(store, what), [name, plan] as const);
      await page.evaluate((store) => varve.deleteStore(store), name);
      await page.close();
      return found;
    },
  };
}

test.for(turnsOf(seed, MEGABYTES))(
  '%s in one turn, killed in the middle, is there again',
  {
    timeout: TIMEOUT,
  },
  async ([name, plan]) => {
    await liveTurn(driverOf(name), `OPFS, ${name}`, plan);
  },
);
