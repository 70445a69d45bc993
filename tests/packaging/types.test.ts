// TypeScript in fresh projects, strict and without skipLibCheck: every entry point, with the library of its kind and no other.

import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import manifest from '../../package.json' with { type: 'json' };
import { blocksOf, firstExample, pagesOf, readmeBlock } from '../support/readme.ts';
import { Project } from './support/project.ts';

/** Code that runs in a page, a worker or a service worker. */
const PAGE = {
  'page.ts': `${firstExample()}
    const seen: unknown = note;
    export const seenAndTold = [seen, db.storage.kind, db.recovery.state];`,
  'typed.ts': `
    import { bytes, open, repair, type Store, VarveError, type VarveErrorCode } from 'varve';
    const counts: Store<string, number> = await open<string, number>('counts', { durability: 'strict', worker: () => new Worker('/engine-worker.js') });
    const count: number | undefined = await counts.get('a');
    // @ts-expect-error: a value of another type
    await counts.set('a', 'one');
    await using raw = await open<[string, number], Uint8Array>('raw', { values: bytes });
    for await (const [key, value] of raw.entries({ prefix: ['a'] })) console.log(key[0].length, value.byteLength);
    try {
      await counts.transaction(async (tx) => tx.set('a', (count ?? 0) + 1));
    } catch (error) {
      const code: VarveErrorCode | undefined = error instanceof VarveError ? error.code : undefined;
      if (code === 'VARVE_CORRUPT') console.log((await repair('counts')).lost);
    }
    export {};`,
  'worker.ts': `
    import { open } from 'varve/synchronous';
    import { open as openInline } from 'varve/inline';
    import 'varve/engine-worker.js';
    const db = await open<number, Date>('times');
    const time: Date | undefined = db.get(1);
    for (const [key, value] of db.entries({ gt: 0, reverse: true })) console.log(key.toFixed(), value.getTime());
    const inline = await openInline('inbox', { storage: 'indexeddb' });
    export const all = [time, await inline.get('message')];`,
  'collections.ts': `${readmeBlock('ts', "uuid7 } from 'varve/collections'")}
    export const found: [Note[], Note | undefined] = [lakes, silt];
    // @ts-expect-error: a value of another type
    notes.find('edited', 'today');`,
  'adapters.ts': `
    import { open } from 'varve';
    import { asyncStorage } from 'varve/async-storage';
    import { VarveStorageAdapter } from 'varve/automerge';
    import { createStore, get } from 'varve/idb-keyval';
    import { varveDriver } from 'varve/unstorage';
    import { varveStoreProvider } from 'varve/zero';
    const storage = asyncStorage<{ dark: boolean }>(open('app'), { prefix: ['settings'] });
    export const dark: boolean | undefined = (await storage.getItem('theme'))?.dark;
    export const text: string | undefined = await get<string>('a', createStore('app', 'texts'));
    export const keys: string[] = await varveDriver({ store: open('app'), prefix: ['cache'] }).getKeys();
    export const chunk: Uint8Array | undefined = (await new VarveStorageAdapter(open('app')).loadRange(['id']))[0]?.data;
    export const isClosed: boolean = varveStoreProvider('app').create('rep:a').closed;`,
  'http.ts': `
    import { open } from 'varve';
    import { bearer, createHandler } from 'varve/http';
    const handler = createHandler(await open('shared'), { authorize: bearer('token') });
    export const answer: Response = await handler(new Request('https://example.com/kv/a'));`,
  'inspect.ts': `
    import { open } from 'varve';
    import { VarveInspector } from 'varve/inspector';
    const inspector: VarveInspector = document.createElement('varve-inspector');
    inspector.store = await open<[string, number], { title: string }>('notes');
    // @ts-expect-error: not a store
    inspector.store = 'notes';`,
};

/** A database of Level, whose types need those of Node's events and buffers. */
const LEVEL = {
  'level.ts': `
    import { open } from 'varve';
    import { VarveLevel } from 'varve/abstract-level';
    const db = new VarveLevel<string, { title: string }>(open('app'), { valueEncoding: 'json', durability: 'strict' });
    await db.put('silt', { title: 'Silt' }, { sync: true });
    // @ts-expect-error: a value of another type
    await db.put('silt', 'Silt');
    export const title: string | undefined = (await db.get('silt'))?.title;
    for await (const [key, note] of db.sublevel('a').iterator({ gte: 'a' })) console.log(key.length, note.length);`,
};

/** Code with React, and with Yjs. */
const PEERS = {
  'editor.ts': `
    import { migrate, VarvePersistence } from 'varve/yjs';
    import { Doc } from 'yjs';
    const { copied, state } = await migrate('note', { onProgress: ({ done, total }) => console.log(done / total) });
    export const moved: [number, 'copied' | 'before' | 'absent'] = [copied, state];
    const doc: Doc = (await new VarvePersistence('note', new Doc()).whenSynced).doc;
    doc.destroy();`,
  'notes.ts': `
    import { useLive, useStore } from 'varve/react';
    export function useNotes(tag: string): [[string, number], string][] {
      const db = useStore<[string, number], string>('notes');
      const count = useLive(db, { as: 'count' }, []);
      // @ts-expect-error: undefined until there is a result
      count.toFixed();
      return useLive(db, { prefix: [tag] as never, limit: count }, [tag, count], { initial: [] });
    }`,
};

/** Code that runs on a server. */
const SERVER = {
  'server.ts': `${readmeBlock('ts', "from 'varve/fs'")}
    export const value: unknown = await db.get('a');`,
  'storage.ts': `
    import { files } from 'varve/fs';
    import { createHandler } from 'varve/http';
    import { denoKv, type Kv } from 'varve/deno-kv';
    import type { ManagedDevice, StorageAdapter } from 'varve/storage-adapter';
    import { open } from 'varve/synchronous';
    import { storageContract } from 'varve/testing';
    const storage: StorageAdapter = files(new URL('./data', import.meta.url), { maxFiles: 100 });
    const db = await open<string, number>('notes', { storage });
    const n: number | undefined = db.get('n');
    storageContract({ test: (name, run) => void run().then(() => console.log(name, n)), create: () => storage });
    export const handler = createHandler(db);
    declare const kv: Kv;
    export const distributed: StorageAdapter = denoKv(kv);
    export const slots = (device: ManagedDevice): number => device.count();`,
};

/** A Worker with an object. */
const WORKER = {
  'index.ts': readmeBlock('ts', 'export class Notes extends VarveObject'),
  'shards.ts': `
    import { rebalance, shards } from 'varve/shards';
    import type { Notes } from './index.js';
    export async function grow(notes: DurableObjectNamespace<Notes>): Promise<number> {
      return (await rebalance(shards(notes, { count: 2 }), shards(notes, { count: 3 }))).copied;
    }`,
};

/** Code that exports what it gets from one entry point, without a type. A compiler that writes declarations needs a name for it. */
const INFERRED = {
  varve: `
    import { bytes, json, open, structured } from 'varve';
    const db = await open('notes');
    export const options = { values: structured, durability: 'strict' } as const;
    export const codecs = [bytes, json];
    export const batch = db.batch().at(['a']);
    export const live = db.live({ prefix: ['a'] }, { initial: [] });
    export const handle = await db.begin();`,
  'varve/synchronous': `
    import { json, open } from 'varve/synchronous';
    export const db = await open('notes', { values: json });
    export const codec = json;
    export const batch = db.batch().at<string>(['a']);
    export const snapshot = db.snapshot();
    export const view = snapshot.at(['a']);
    export const handle = db.begin();`,
  'varve/cloudflare': `
    import { VarveObject } from 'varve/cloudflare';
    export class Notes extends VarveObject {
      batch() { return this.store.batch(); }
      batchOfUsers() { return this.store.batch().at(['user']); }
      snapshot() { return this.store.snapshot(); }
      users() { return this.store.snapshot().at(['user']); }
      begin() { return this.store.begin(); }
    }`,
};

/** Code for a compiler with all checks. */
const STRICT = `
  import { type Conflict, open, VarveError } from 'varve';
  const db = await open<string, number>('counts');
  export function show(initial: number | undefined, conflict: Conflict | undefined) {
    const error = new VarveError('VARVE_CONFLICT', 'No.', { conflict });
    return [db.live('a', { initial }).value, error];
  }`;

/** All entry points that are imported for what they export. */
const ENTRIES = Object.keys(manifest.exports)
  .filter((entry) => !/\.\w+$/.test(entry))
  .map((entry) => entry.replace('.', 'varve'));

async function compile(files: Readonly<Record<string, string>>, tools: string[], options: object): Promise<string> {
  const project = Project.forTest(files, ['typescript', ...tools]);
  const compilerOptions = {
    strict: true,
    skipLibCheck: false,
    noEmit: true,
    target: 'es2022',
    module: 'esnext',
    ...options,
  };
  project.write({ 'tsconfig.json': JSON.stringify({ compilerOptions, include: ['*.ts', '*.tsx'] }) });
  return (await project.run('node', 'node_modules/typescript/bin/tsc').catch((error: Error) => error.message)).trim();
}

test('a page with a bundler: the library of the DOM', async () => {
  const options = { moduleResolution: 'bundler', lib: ['es2022', 'dom', 'dom.asynciterable'], types: [] };
  expect(await compile(PAGE, [], options)).toBe('');
});

/** For blocks of the documents that import nothing. They take other names from the text around them. */
const GIVEN = `
  import { deleteStore, json, type Key, listStores, open, preload, repair, structured } from 'varve';
  import { asyncStorage } from 'varve/async-storage';
  import { uuid7 } from 'varve/collections';
  declare const name: string;`;
const GLOBALS = `
  declare const db: import('varve').Store<any, any>;
  interface Event { data: any; request: any; respondWith: any; waitUntil: any }`;
/** Names, shorthand properties, modules and the type of Bun that are not there. */
const NOT_GIVEN = /error TS(2304|2552|18004|2307|2868): /;

test('every block of TypeScript in the README and the documents fits the types', async () => {
  const pages = ['README.md', ...pagesOf('guide', 'coming-from', 'recipes')];
  const files: Record<string, string> = { 'global.d.ts': GLOBALS };
  for (const [name, code] of pages.flatMap(blocksOf)) {
    const given = /^import /m.test(code) ? '' : GIVEN;
    // `...` is a body that is left out.
    files[name] = `${given}\n${code.replaceAll("'npm:", "'").replaceAll(/\) \.\.\.(?=\s)/g, ') {}')}\nexport {};`;
  }
  expect(Object.keys(files).length).toBeGreaterThan(60);
  const types = ['@types/node', 'undici-types', '@types/react', '@cloudflare/workers-types'];
  const libraries = [
    ...['abstract-level', 'dexie', 'browser-level', 'idb-keyval', 'unstorage', 'yjs'],
    ...['@automerge/automerge', '@automerge/automerge-repo', 'eventemitter3', 'replicache'],
  ];
  const said = await compile(files, [...types, ...libraries], {
    moduleResolution: 'bundler',
    lib: ['es2023', 'esnext.array', 'esnext.disposable', 'dom', 'dom.asynciterable', 'dom.iterable'],
    types: ['node', '@cloudflare/workers-types'],
    jsx: 'react-jsx',
    noImplicitAny: false,
    skipLibCheck: true,
  });
  expect(said.split('\n').filter((line) => line.includes('error TS') && !NOT_GIVEN.test(line))).toEqual([]);
  expect(said).toContain("Cannot find name 'render'");
});

test('code with React, and with Yjs', async () => {
  const options = { moduleResolution: 'bundler', lib: ['es2022', 'dom', 'dom.asynciterable'], types: [] };
  expect(await compile(PEERS, ['@types/react', 'yjs'], options)).toBe('');
});

test('a database of Level', async () => {
  const options = { moduleResolution: 'bundler', lib: ['es2022', 'dom', 'dom.asynciterable'], types: ['node'] };
  const libraries = ['abstract-level', 'level-supports', 'level-transcoder', '@types/node', 'undici-types'];
  expect(await compile(LEVEL, libraries, options)).toBe('');
});

test('a page with nodenext', async () => {
  const options = { module: 'nodenext', lib: ['es2022', 'dom', 'dom.asynciterable'], types: [] };
  expect(await compile(PAGE, [], options)).toBe('');
});

test.for(['nodenext', 'bundler'])('a server with %s: the types of Node, no DOM', async (moduleResolution) => {
  const module = moduleResolution === 'nodenext' ? 'nodenext' : 'esnext';
  const options = { module, moduleResolution, lib: ['es2022'], types: ['node'] };
  expect(await compile(SERVER, ['@types/node', 'undici-types'], options)).toBe('');
});

test('a Durable Object: the types of Workers, no DOM', async () => {
  const lib = ['es2022', 'esnext.array'];
  const options = { moduleResolution: 'bundler', lib, types: ['@cloudflare/workers-types'] };
  expect(await compile(WORKER, ['@cloudflare/workers-types'], options)).toBe('');
});

test.for(Object.entries(INFERRED))('declarations of types inferred from %s', async ([entry, code]) => {
  const isObject = entry === 'varve/cloudflare';
  const types = isObject ? ['@cloudflare/workers-types'] : [];
  const lib = isObject ? ['es2022', 'esnext.array'] : ['es2022', 'dom', 'dom.asynciterable'];
  const written = { noEmit: false, declaration: true, emitDeclarationOnly: true, outDir: 'out' };
  expect(await compile({ 'index.ts': code }, types, { moduleResolution: 'bundler', lib, types, ...written })).toBe('');
});

test('a compiler with all checks', async () => {
  const checks = { exactOptionalPropertyTypes: true, noUncheckedIndexedAccess: true, verbatimModuleSyntax: true };
  const options = { moduleResolution: 'bundler', lib: ['es2022', 'dom', 'dom.asynciterable'], types: [], ...checks };
  expect(await compile({ 'index.ts': STRICT }, [], options)).toBe('');
});

test('declarations fit TypeScript 5.4', () => {
  // The first has one parameter before 5.6, the second none before 5.7.
  const isNewer = /IterableIterator<\w+, |Uint8Array</;
  const project = Project.forTest();
  const folder = ['node_modules', 'varve', 'dist'];
  const files = project.list(...folder).filter((name) => name.endsWith('.d.ts'));
  expect(files.length).toBeGreaterThan(20);
  expect(files.filter((name) => isNewer.test(readFileSync(project.path(...folder, name), 'utf8')))).toEqual([]);
});

test('every entry point is among them', () => {
  const used = Object.values({ ...PAGE, ...LEVEL, ...PEERS, ...SERVER, ...WORKER }).join('\n');
  expect(ENTRIES.length).toBeGreaterThan(7);
  for (const entry of ENTRIES) expect(used).toContain(`from '${entry}'`);
});
