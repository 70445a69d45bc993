// The package as it ships, loaded by a plain page: it finds workers and wasm beside it, and the strict policy is in force.

import { join } from 'node:path';
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import { serve } from '../../scripts/server.mjs';
import { root } from '../../scripts/tools.mjs';
import { newProfile, openWorker, type Profile } from './support/profile.ts';
import { PAGES } from './support/site.ts';

let profile: Profile;

beforeAll(async () => {
  profile = await newProfile();
});

afterAll(() => profile.close());

test('a page opens a store on OPFS, writes, reads and reopens it, without a complaint of the policy', async () => {
  const { page, errors } = await profile.openPage();
  const seen = await page.evaluate(async () => {
    const db = await varve.open('package');
    await db.set(['note', 42], { title: 'Silt' }, { durability: 'strict' });
    const kind = db.storage.kind;
    await db.close();
    const again = await varve.open('package');
    const value = await again.get(['note', 42]);
    await again.close();
    return { kind, value };
  });
  expect(seen).toEqual({ kind: 'opfs', value: { title: 'Silt' } });
  expect(errors).toEqual([]);
});

test('a worker opens the store that a page wrote, synchronously', async () => {
  const { page, errors } = await profile.openPage();
  await page.evaluate(async () => {
    const db = await varve.open('shared');
    await db.set('from', 'page');
    await db.close();
  });
  const { worker } = await openWorker(page);
  const value = await worker.evaluate(async () => {
    const db = await varveSync.open('shared');
    const read = db.get('from');
    await db.close();
    return read;
  });
  expect(value).toBe('page');
  expect(errors).toEqual([]);
});

// Story: browsers refuse to start a worker script of another origin, so the package did not work from a CDN.
test('a page uses the package, or its worker, from another origin', async () => {
  const cors = { 'Access-Control-Allow-Origin': '*' };
  const cdn = await serve({ mounts: [{ path: '/', folder: join(root, 'dist'), headers: cors }] });
  onTestFinished(() => cdn.close());
  const site = await serve({
    mounts: [
      { path: '/', folder: PAGES },
      { path: '/varve/', folder: join(root, 'dist') },
    ],
  });
  onTestFinished(() => site.close());
  const page = await profile.context.newPage();
  await page.goto(`${site.origin}/blank.html`);
  const visit = async (module: string, options: { worker?: string }): Promise<unknown[]> => {
    await page.evaluate(`import('${module}').then((loaded) => { globalThis.varve = loaded; })`);
    return page.evaluate(async (given) => {
      const db = await varve.open('foreign', given);
      const found = [db.storage.kind, await db.get('key')];
      await db.set('key', 'value');
      // The compactor is a worker that the engine's worker starts.
      await db.compact();
      await db.close();
      return found;
    }, options);
  };
  expect(await visit(`${cdn.origin}/index.js`, {})).toEqual(['opfs', undefined]);
  expect(await visit('/varve/index.js', { worker: `${cdn.origin}/engine-worker.js` })).toEqual(['opfs', 'value']);
});
