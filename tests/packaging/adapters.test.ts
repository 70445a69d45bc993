// Adapters under their clients, in a page that Vite has built: Zustand, TanStack Query, Yjs, the functions of idb-keyval, and the
// datastore of libp2p and Helia over Level. The page is loaded twice, and finds its state.

import { expect, test } from 'vitest';
import { Browser, pageWith } from './support/page.ts';
import { Project } from './support/project.ts';
import { POLICY, withSite } from './support/site.ts';

const PAGE = `
  import { QueryClient } from '@tanstack/query-core';
  import { experimental_createQueryPersister } from '@tanstack/query-persist-client-core';
  import { LevelDatastore } from 'datastore-level';
  import { Key } from 'interface-datastore';
  import { open } from 'varve';
  import { VarveLevel } from 'varve/abstract-level';
  import { asyncStorage } from 'varve/async-storage';
  import { entries, update } from 'varve/idb-keyval';
  import { VarvePersistence } from 'varve/yjs';
  import { Doc } from 'yjs';
  import { persist } from 'zustand/middleware';
  import { createStore } from 'zustand/vanilla';

  const db = open('app');
  const bears = createStore(persist(() => ({ loads: 0 }), { name: 'bears', storage: asyncStorage(db, { prefix: ['state'] }) }));
  await new Promise((done) => (bears.persist.hasHydrated() ? done() : bears.persist.onFinishHydration(done)));
  bears.setState(({ loads }) => ({ loads: loads + 1 }));

  let fetches = 0;
  const queries = asyncStorage(db, { prefix: ['query'] });
  const { persisterFn } = experimental_createQueryPersister({ storage: queries });
  const queryFn = async () => 'fetched ' + ++fetches;
  const data = await new QueryClient().fetchQuery({ queryKey: ['note'], queryFn, persister: persisterFn });
  // Both libraries write without a result to wait for.
  while ((await queries.entries()).length === 0) await new Promise((done) => setTimeout(done));
  await (await db).flush();

  const doc = new Doc();
  const persistence = await new VarvePersistence('note', doc, db).whenSynced;
  const text = doc.getText('text');
  text.insert(text.length, 'x');
  await persistence.destroy();

  await update([1, new Date(0)], (loads = 0) => loads + 1);
  const level = new VarveLevel(db.then((store) => store.at(['p2p'])), { valueEncoding: 'view' });
  const datastore = new LevelDatastore(level);
  await datastore.open();
  const batch = datastore.batch();
  batch.put(new Key('/peers/' + bears.getState().loads), Uint8Array.of(bears.getState().loads));
  batch.put(new Key('/self'), Uint8Array.of(0));
  await batch.commit();
  const peers = [];
  for await (const { key, value } of datastore.query({ prefix: '/peers' })) peers.push(key.toString() + value);
  await datastore.close();

  const kept = JSON.stringify(await entries());
  report({ seen: { peers, loads: bears.getState().loads, data, fetches, kept, text: text.toString() } });
`;

const browser = Browser.forFile();
const project = Project.forFile({ 'index.html': pageWith('/main.js'), 'main.js': PAGE }, [
  ...['vite', 'zustand', '@tanstack/query-core', '@tanstack/query-persist-client-core'],
  ...['abstract-level', 'datastore-level', 'interface-datastore', 'yjs'],
]);

test('a page has its state again after a reload', async () => {
  await project.run('node', 'node_modules/vite/bin/vite.js', 'build');
  await withSite(project.path('dist'), POLICY, async ({ origin, violations }) => {
    for (const loads of [1, 2]) {
      const { seen, failure, complaints } = await browser.load(`${origin}/`);
      expect([failure, complaints]).toEqual([undefined, []]);
      const kept = JSON.stringify([[[1, new Date(0)], loads]]);
      const peers = ['/peers/11', '/peers/22'].slice(0, loads);
      const text = 'x'.repeat(loads);
      expect(seen).toEqual({ peers, loads, data: 'fetched 1', fetches: loads === 1 ? 1 : 0, kept, text });
    }
    expect(violations).toEqual([]);
  });
});
