// `varve/react` in a page, in React's strict mode, over real stores.

import type { Page } from 'playwright';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type {} from './fixtures/react.ts';
import { newProfile, type OpenPage, type Profile } from './support/profile.ts';

let profile: Profile;
let page: Page;
let errors: OpenPage['errors'];

beforeAll(async () => {
  profile = await newProfile();
  ({ page, errors } = await profile.openPage('/react.html'));
});

afterAll(async () => {
  await profile?.close();
});

test('two components have one store, which stays open; after its close it is opened again', async () => {
  const seen = await page.evaluate(async () => {
    const { createElement: h, Fragment, rootOf, useLive, useStore } = globalThis.page;
    let workers = 0;
    const worker = () => {
      workers++;
      return new Worker('/varve/engine-worker.js', { type: 'module' });
    };
    const stores = new Set<unknown>();
    const Part = () => {
      const db = useStore<string, number>('one', { worker });
      if (db !== undefined) stores.add(db);
      const count = useLive(db, { as: 'count' }, []);
      return h('p', undefined, `${count}`);
    };
    const both = h(Fragment, undefined, h(Part), h(Part));
    const root = rootOf(both);
    await root.text('0\n\n0');
    const [db] = [...stores] as Awaited<ReturnType<typeof globalThis.page.open<string, number>>>[];
    root.render(null);
    await root.text('');
    await db?.set('a', 1);
    root.render(both);
    await root.text('1\n\n1');
    const counts = [[stores.size, workers]];
    root.render(null);
    await root.text('');
    await db?.close();
    root.render(both);
    await root.text('1\n\n1');
    counts.push([stores.size, workers]);
    root.unmount();
    return counts;
  });
  expect(seen).toEqual([
    [1, 1],
    [2, 2],
  ]);
});

test('a result follows the store; the last one stays until that of the next query is there; then another store begins anew', async () => {
  const seen = await page.evaluate(async () => {
    const { createElement: h, open, rootOf, useLive } = globalThis.page;
    const opening = open<[string, number], string>('tags');
    const db = await opening;
    await db.setMany([
      [['red', 1], 'rose'],
      [['blue', 1], 'sky'],
    ]);
    // How many subscriptions there are, and how many queries have been made.
    const counts = { live: 0, made: 0 };
    const live = db.live;
    db.live = ((...query: [never]) => {
      counts.made++;
      const made = live.apply(db, query);
      const { subscribe } = made;
      return Object.assign(Object.create(made), {
        update: made.update,
        subscribe(...heard: Parameters<typeof subscribe>) {
          counts.live++;
          const end = subscribe(...heard);
          return () => {
            counts.live--;
            end();
          };
        },
      });
    }) as typeof db.live;
    const Tag = ({ tag, store }: { tag: string; store: typeof db | typeof opening }) => {
      const found = useLive(store, { prefix: [tag] as never, as: 'values' }, [tag], { initial: [] });
      return h('p', undefined, `[${found}]`);
    };
    const root = rootOf(h(Tag, { tag: 'red', store: opening }));
    await root.text('[rose]');
    await db.set(['red', 2], 'rust');
    await root.text('[rose,rust]');
    root.render(h(Tag, { tag: 'blue', store: opening }));
    await root.text('[sky]');
    await db.set(['red', 3], 'wine');
    await db.set(['blue', 2], 'sea');
    await root.text('[sky,sea]');
    const during = { ...counts };
    const other = await open<[string, number], string>('others');
    await other.set(['blue', 1], 'jeans');
    root.render(h(Tag, { tag: 'blue', store: other }));
    await root.text('[jeans]');
    const after = counts.live;
    const shown = [...root.shown];
    root.render(h(Tag, { tag: 'blue', store: db }));
    await root.text('[sky,sea]');
    root.unmount();
    await root.text('');
    await db.close();
    await other.close();
    return { shown, during, after, end: counts.live };
  });
  expect(seen.shown).toEqual(['', '[]', '[rose]', '[rose,rust]', '[sky]', '[sky,sea]', '[]', '[jeans]']);
  expect(seen).toMatchObject({ during: { live: 1, made: 1 }, after: 0, end: 0 });
});

test('an error boundary catches errors of the opening, of a query and of an invalid query, and what follows works', async () => {
  const shown = await page.evaluate(async () => {
    const { Boundary, createElement: h, open, rootOf, useLive, useStore } = globalThis.page;
    const db = await open<string, number>('errors');
    let isReady = false;
    const worker = () => {
      if (!isReady) throw new Error('not ready');
      return new Worker('/varve/engine-worker.js', { type: 'module' });
    };
    const Named = ({ name }: { name: string }) => `open ${useStore(name, { worker })?.name}`;
    const Read = ({ query }: { query: unknown }) => `read ${useLive(db, query as { as: 'count' }, [query])}`;
    const inside = (key: string, child: React.ReactNode) => h(Boundary, { key }, child);
    const root = rootOf(inside('1', h(Named, { name: '' })));
    await root.text('caught VARVE_INVALID_ARGUMENT');
    root.render(inside('2', h(Named, { name: 'retried' })));
    await root.text('caught VARVE_UNSUPPORTED');
    isReady = true;
    root.render(inside('3', h(Named, { name: 'retried' })));
    await root.text('open retried');
    const failing = async (): Promise<never> => {
      throw new Error('of the query');
    };
    root.render(inside('4', h(Read, { query: failing })));
    await root.text('caught Error: of the query');
    root.render(inside('5', h(Read, { query: { as: 'count' } })));
    await root.text('read 0');
    root.render(inside('5', h(Read, { query: { gte: 'a', gt: 'b' } })));
    await root.text('caught VARVE_INVALID_ARGUMENT');
    root.render(inside('6', h(Read, { query: () => 7 })));
    await root.text('read 7');
    await db.close();
    await root.text('caught VARVE_CLOSED');
    root.unmount();
    return root.shown;
  });
  expect(shown.filter((text) => text.startsWith('caught'))).toEqual([
    'caught VARVE_INVALID_ARGUMENT',
    'caught VARVE_UNSUPPORTED',
    'caught Error: of the query',
    'caught VARVE_INVALID_ARGUMENT',
    'caught VARVE_CLOSED',
  ]);
});

test('a component that is hidden while another one loads shows the newest result after that', async () => {
  const shown = await page.evaluate(async () => {
    const { createElement: h, Fragment, open, rootOf, Suspense, use, useLive } = globalThis.page;
    const db = await open<string, number>('suspense');
    await db.set('a', 1);
    const Value = () => h('b', undefined, `${useLive(db, 'a', [])}`);
    const Load = ({ what }: { what: Promise<string> }) => h('i', undefined, use(what));
    const pageOf = (what: Promise<string>) =>
      h(Suspense, { fallback: 'wait' }, h(Fragment, undefined, h(Value), h(Load, { what })));
    let loaded = (_: string): void => undefined;
    const root = rootOf(pageOf(Promise.resolve('!')));
    await root.text('1!');
    root.render(pageOf(new Promise((resolve) => (loaded = resolve))));
    await root.text('wait');
    await db.set('a', 2);
    loaded('?');
    await root.text('2?');
    root.unmount();
    await db.close();
    return root.shown.slice(0, -1);
  });
  expect(shown.slice(-3)).toEqual(['1!', 'wait', '2?']);
});

test('a page takes over the HTML of a server, which has the initial values, without a mismatch', async () => {
  const seen = await page.evaluate(async () => {
    const { createElement: h, renderToString, rootOf, useLive, useStore } = globalThis.page;
    const Title = () => {
      const db = useStore<string, string>('hydrated');
      const title = useLive(db, 'title', [], { initial: 'none' });
      return h('h1', undefined, db === undefined ? `closed: ${title}` : `open: ${title}`);
    };
    const html = renderToString(h(Title));
    const root = rootOf(h(Title), html);
    await root.text('open: undefined');
    // The store is open now; another hydration still begins with what the server has.
    const again = rootOf(h(Title), renderToString(h(Title)));
    await again.text('open: undefined');
    return { html, problems: [...root.problems, ...again.problems] };
  });
  expect(seen).toEqual({ html: '<h1>closed: none</h1>', problems: [] });
  expect(errors).toEqual([]);
});
