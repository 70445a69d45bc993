// One synchronous turn of any size over OPFS: a worker loads, or overwrites, without yielding, and the browser is killed in the middle of
// it. `VARVE_TURN_MEGABYTES` sets how much it writes (`npm run test:turn` 2,000), `VARVE_SEED` with which data.

import { afterAll, beforeAll, test } from 'vitest';
import { numberFrom, runSeed } from '../support/seed.ts';
import type { TurnTold } from '../support/turn.ts';
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
      const told: TurnTold[] = [];
      const written = new Promise<void>((resolve, reject) => {
        page.on('console', (message) => {
          if (message.type() === 'error') reject(new Error(message.text()));
          if (message.type() !== 'debug') return;
          const last = JSON.parse(message.text()) as TurnTold;
          told.push(last);
          if (isEnough(last)) resolve();
        });
        page.on('pageerror', reject);
      });
      await worker.evaluate(([store, what]) => turn.write(store, what), [name, plan] as const);
      await written;
      await profile.kill();
      if (errors.length > 0) throw new Error(errors.join('; '));
      return told;
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
