// `varve/automerge` in a page, over OPFS: two connected repos with a store each, and a repo whose data was moved from IndexedDB.

import type { Repo } from '@automerge/automerge-repo';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type {} from './fixtures/automerge.ts';
import { newProfile, type OpenPage, type Profile } from './support/profile.ts';

let profile: Profile;
let tab: OpenPage;

beforeAll(async () => {
  profile = await newProfile();
  tab = await profile.openPage('/automerge.html');
});

afterAll(async () => {
  await profile?.close();
});

test('two repos have the same document, and both have it after a reload', async () => {
  const url = await tab.page.evaluate(async () => {
    const { add, connected, read } = await globalThis.automerge;
    const [first, second] = (await connected()) as [Repo, Repo];
    const { url } = first.create({ entries: ['first'] });
    await add(second, url, 'second');
    while ((await read(first, url)).length < 2) await new Promise((done) => setTimeout(done));
    for (let i = 0; i < 50; i++) await add(first, url, `${i}`);
    while ((await read(second, url)).length < 52) await new Promise((done) => setTimeout(done));
    await Promise.all([first.flush(), second.flush()]);
    return url;
  });
  await tab.page.reload();
  const seen = await tab.page.evaluate(async (url) => {
    const { alone, read } = await globalThis.automerge;
    return Promise.all(alone().map((repo) => read(repo, url)));
  }, url);
  const wanted = ['first', 'second', ...Array.from({ length: 50 }, (_, i) => `${i}`)];
  expect(seen).toEqual([wanted, wanted]);
  expect(tab.errors).toEqual([]);
});

test('a repo has its documents and its identity after they were moved from IndexedDB', async () => {
  const { reports, moved, wanted } = await tab.page.evaluate(async () => {
    const { add, IndexedDBStorageAdapter, migrate, Repo, read, VarveStorageAdapter } = await globalThis.automerge;
    const old = new Repo({ storage: new IndexedDBStorageAdapter() });
    const { url } = old.create({ entries: [] });
    for (let i = 0; i < 50; i++) await add(old, url, `${i}`);
    await old.flush();
    const reports = [await migrate({}, 'moved'), await migrate({}, 'moved')];
    const repo = new Repo({ storage: new VarveStorageAdapter('moved') });
    const seen = async (repo: Repo) => [await repo.storageId(), await read(repo, url)];
    return { reports, moved: await seen(repo), wanted: await seen(old) };
  });
  expect(reports).toEqual([
    { copied: expect.any(Number), state: 'copied' },
    { copied: 0, state: 'before' },
  ]);
  expect(reports[0]?.copied).toBeGreaterThan(1);
  expect(moved).toEqual(wanted);
  expect(wanted).toEqual([expect.any(String), Array.from({ length: 50 }, (_, i) => `${i}`)]);
});
