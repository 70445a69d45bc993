/**
 * `varve/yjs`. Tests of features that y-indexeddb has, too, run with both, over an IndexedDB in memory. Then several tabs, and failures.
 */

import 'fake-indexeddb/auto';
import { IDBFactory } from 'fake-indexeddb';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import * as original from 'y-indexeddb';
import * as Y from 'yjs';
import type { Change } from '../../js/src/changes/types.ts';
import { VarveError } from '../../js/src/errors.ts';
import { Batch } from '../../js/src/store/batch.ts';
import { openStore } from '../../js/src/store/open.ts';
import type { Store } from '../../js/src/store/store.ts';
import { View } from '../../js/src/store/view.ts';
import type { Key } from '../../js/src/types.ts';
import * as ours from '../../js/src/yjs.ts';
import { wasm } from './support/engine.ts';
import { tabs } from './support/two-tabs.ts';

let here: Store<Key, unknown>;
let there: Store<Key, unknown>;
const docs: Y.Doc[] = [];

beforeEach(async () => {
  vi.stubGlobal('indexedDB', new IDBFactory());
  const [a, b] = tabs(2) as [() => never, () => never];
  here = await openStore<Key, unknown>('test', { wasm, storage: 'memory', cache: false }, a);
  there = await openStore<Key, unknown>('test', { wasm, storage: 'memory', cache: false }, b);
});

afterEach(async () => {
  for (const doc of docs.splice(0)) doc.destroy();
  vi.restoreAllMocks();
  vi.unstubAllGlobals();
  // All writes are done then.
  await Promise.all([here.flush(), there.flush()]);
  await there.close();
  await here.close();
});

function newDoc(): Y.Doc {
  const doc = new Y.Doc();
  docs.push(doc);
  return doc;
}

/** Opens a document in a tab, and waits until it is loaded. */
async function load(store: Store<Key, unknown>, name = 'a'): Promise<[Y.Map<unknown>, ours.VarvePersistence]> {
  const doc = newDoc();
  const persistence = await new ours.VarvePersistence(name, doc, store).whenSynced;
  return [doc.getMap('map'), persistence];
}

/** Resolves when a document has changed so that it has a value. */
async function arrival(map: Y.Map<unknown>, key: string): Promise<unknown> {
  if (!map.has(key)) {
    await new Promise<void>((done) => {
      map.observe(() => map.has(key) && done());
    });
  }
  return map.get(key);
}

const countUpdates = (name = 'a'): Promise<number> => here.count({ prefix: ['update', name] });

const SIDES = {
  'y-indexeddb': {
    open: (name: string, doc: Y.Doc) => new original.IndexeddbPersistence(name, doc),
    storeState: original.storeState as (persistence: unknown, force?: boolean) => Promise<void>,
    clearDocument: original.clearDocument as (name: string) => Promise<void>,
  },
  'varve/yjs': {
    open: (name: string, doc: Y.Doc) => new ours.VarvePersistence(name, doc, here),
    storeState: ours.storeState as (persistence: unknown, force?: boolean) => Promise<void>,
    clearDocument: (name: string) => ours.clearDocument(name, here),
  },
};

describe.each(Object.entries(SIDES))('%s', (_, { open, storeState, clearDocument }) => {
  test('a document comes back with what it had before, and what it got after it was loaded', async () => {
    const doc = newDoc();
    doc.getText('text').insert(0, 'before ');
    const first = open('a', doc);
    expect(first.doc).toBe(doc);
    expect([first.name, first.synced]).toEqual(['a', false]);
    doc.getText('text').insert(7, 'open, ');
    const event = new Promise((synced) => first.on('synced', synced as never));
    expect(await first.whenSynced).toBe(first);
    expect(await event).toBe(first);
    expect(first.synced).toBe(true);
    doc.getText('text').insert(13, 'after');
    await first.destroy();

    const again = newDoc();
    const seen: unknown[] = [];
    again.on('update', (_update, origin, _doc, { local }) => seen.push(origin, local));
    const second = open('a', again);
    await second.whenSynced;
    expect(again.getText('text').toString()).toBe('before open, after');
    expect(seen).toEqual([second, false]);
  });

  test('listeners can be removed; what is destroyed before it is loaded is never synced', async () => {
    const doc = newDoc();
    const listener = vi.fn();
    const first = open('a', doc);
    first.on('synced', listener as never);
    first.off('synced', listener as never);
    await first.whenSynced;
    const second = open('b', newDoc());
    second.once('synced', listener as never);
    await second.destroy();
    await open('b', newDoc()).whenSynced;
    expect(second.synced).toBe(false);
    expect(listener).not.toHaveBeenCalled();
  });

  test('updates become one state, from 500 on or on demand', async () => {
    const doc = newDoc();
    const first = open('a', doc);
    await first.whenSynced;
    for (let i = 0; i < 10; i++) doc.getMap('map').set(`${i}`, i);
    await storeState(first, false);
    await storeState(first);
    doc.getMap('map').set('last', 1);
    await storeState(first);
    await first.destroy();
    const again = newDoc();
    await open('a', again).whenSynced;
    expect(again.getMap('map').size).toBe(11);
  });

  test('after destroy nothing is stored; the document may be destroyed instead, and both twice', async () => {
    const doc = newDoc();
    const first = open('a', doc);
    await first.whenSynced;
    doc.getMap('map').set('a', 1);
    await first.destroy();
    doc.getMap('map').set('b', 2);
    await first.destroy();
    const again = newDoc();
    const second = open('a', again);
    await second.whenSynced;
    expect(again.getMap('map').toJSON()).toEqual({ a: 1 });
    again.destroy();
    again.getMap('map').set('c', 3);
    for (const call of [() => second.get('x'), () => second.set('x', 1), () => second.del('x')]) {
      await expect((async () => call())()).rejects.toMatchObject({ name: 'InvalidStateError' });
    }
    const third = newDoc();
    await open('a', third).whenSynced;
    expect(third.getMap('map').toJSON()).toEqual({ a: 1 });
  });

  test('custom properties have keys of IndexedDB, and values of any type', async () => {
    const first = open('a', newDoc());
    const date = new Date(5);
    expect(await first.set('a', 'text')).toBe('a');
    expect(await first.set(1, { deep: [new Map([[1, date]])] } as never)).toBe(1);
    expect(await first.set(date, date)).toEqual(date);
    expect(await first.get('a')).toBe('text');
    expect(await first.get(1)).toEqual({ deep: [new Map([[1, date]])] });
    expect(await first.get(date)).toEqual(date);
    expect(await first.get('1')).toBeUndefined();
    expect(await first.del('a')).toBeUndefined();
    expect(await first.get('a')).toBeUndefined();
    await expect(first.set(Number.NaN, 1)).rejects.toMatchObject({ name: 'DataError' });
    const other = open('b', newDoc());
    expect(await other.get(1)).toBeUndefined();
  });

  test('clearData and clearDocument delete the document and its properties, and no other', async () => {
    for (const clear of [(p: { clearData(): Promise<void> }) => p.clearData(), () => clearDocument('a')]) {
      const [doc, other] = [newDoc(), newDoc()];
      const [first, second] = [open('a', doc), open('b', other)];
      await Promise.all([first.whenSynced, second.whenSynced]);
      doc.getMap('map').set('a', 1);
      other.getMap('map').set('b', 1);
      await first.set('a', 1);
      await clear(first);
      await first.destroy();
      const again = newDoc();
      const third = open('a', again);
      await third.whenSynced;
      expect(again.getMap('map').size).toBe(0);
      expect(await third.get('a')).toBeUndefined();
      await second.destroy();
      const otherAgain = newDoc();
      await open('b', otherAgain).whenSynced;
      expect(otherAgain.getMap('map').size).toBe(1);
      await third.destroy();
    }
  });
});

test('it has the functions of the original, and a document without content stores nothing', async () => {
  const { IndexeddbPersistence: _, fetchUpdates: __, ...rest } = original;
  expect(Object.keys(ours)).toEqual(expect.arrayContaining(Object.keys(rest)));
  expect(ours.PREFERRED_TRIM_SIZE).toBe(original.PREFERRED_TRIM_SIZE);
  await load(here);
  expect(await here.count()).toBe(0);
});

test('tabs see each other’s updates, also those from before they are loaded, and store each once', async () => {
  const [a, first] = await load(here);
  const [b, second] = await load(there);
  const origins: unknown[] = [];
  b.doc?.on('update', (_update, origin) => origins.push(origin));
  a.set('x', 1);
  expect(await arrival(b, 'x')).toBe(1);
  b.set('y', 2);
  expect(await arrival(a, 'y')).toBe(2);
  expect(origins).toEqual([second, null]);
  const late = newDoc();
  const loading = new ours.VarvePersistence('a', late, there).whenSynced;
  a.set('z', 3);
  await loading;
  expect(await arrival(late.getMap('map'), 'z')).toBe(3);
  await first.destroy();
  expect(await countUpdates()).toBe(3);
});

test('tabs that store a state at the same time lose nothing, whatever the others write meanwhile', async () => {
  const [a, first] = await load(here);
  const [b, second] = await load(there);
  for (let round = 0; round < 5; round++) {
    for (let i = 0; i < 20; i++) (i % 2 ? a : b).set(`${round} ${i}`, i);
    const storing = [ours.storeState(first), ours.storeState(second), ours.storeState(first)];
    a.set(`${round} a`, 1);
    b.set(`${round} b`, 1);
    await Promise.all(storing);
  }
  await Promise.all([first.destroy(), second.destroy()]);
  const [c, third] = await load(here);
  expect(c.size).toBe(110);
  await ours.storeState(third);
  expect(await countUpdates()).toBe(1);
});

test('a second after the last of 500 updates they are one state', async () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
  const [a] = await load(here);
  for (let i = 0; i < 499; i++) a.set('n', i);
  vi.advanceTimersByTime(2000);
  expect(await countUpdates()).toBe(499);
  a.set('n', 499);
  vi.advanceTimersByTime(900);
  a.set('n', 500);
  vi.advanceTimersByTime(900);
  expect(await countUpdates()).toBe(501);
  const trimmed = here.changes();
  vi.advanceTimersByTime(100);
  vi.useRealTimers();
  await trimmed.next();
  expect(await countUpdates()).toBe(1);
  const [b] = await load(there);
  expect(b.get('n')).toBe(500);
});

test('when a document is deleted, providers of other tabs end, and what they stored meanwhile is gone', async () => {
  const [, first] = await load(here);
  const [b, second] = await load(there);
  b.set('x', 1);
  await first.clearData();
  // The other tab does not know of it yet.
  b.set('y', 2);
  await expect.poll(() => second.get('any').catch(({ name }) => name)).toBe('InvalidStateError');
  await second.destroy();
  b.set('z', 3);
  await expect.poll(() => here.count()).toBe(0);
});

test('an observer that throws does not keep later updates out', async () => {
  const thrown = new Error('of the observer');
  const reported = rejections('uncaughtException');
  const [a] = await load(here);
  const [b] = await load(there);
  b.observe(() => {
    if (b.size === 1) throw thrown;
  });
  a.set('x', 1);
  expect(await reported).toBe(thrown);
  a.set('y', 2);
  expect(await arrival(b, 'y')).toBe(2);
});

// Story: an editor could not show what was stored, and threw. `whenSynced` rejected, and the tab saw nothing of other tabs any more.
test('an observer that throws does not end the loading, and other tabs are followed', async () => {
  const [a] = await load(here);
  a.set('x', 1);
  await here.flush();
  const doc = newDoc();
  const b = doc.getMap('map');
  const thrown = new Error('of the observer');
  b.observe(() => {
    if (b.size === 1) throw thrown;
  });
  const reported = rejections('uncaughtException');
  const persistence = await new ours.VarvePersistence('a', doc, there).whenSynced;
  expect(await reported).toBe(thrown);
  expect(persistence.synced).toBe(true);
  a.set('y', 2);
  expect(await arrival(b, 'y')).toBe(2);
});

test('an update that cannot be written is reported, and the next one has it, too', async () => {
  const [a, first] = await load(here);
  a.set('x', 1);
  const full = new Error('The storage is full.');
  const reported = rejections('unhandledRejection');
  vi.spyOn(View.prototype, 'set').mockRejectedValueOnce(full);
  a.set('y', 2);
  expect(await reported).toBe(full);
  a.set('z', 3);
  await first.destroy();
  const [b] = await load(there);
  expect(b.toJSON()).toEqual({ x: 1, y: 2, z: 3 });
});

test('a state that cannot be stored replaces the same updates at the next attempt', async () => {
  const [, first] = await load(here);
  const [b, second] = await load(there);
  for (let i = 0; i < 3; i++) b.set('n', i);
  await second.destroy();
  await expect.poll(() => first.doc.getMap('map').get('n')).toBe(2);
  const full = new Error('The storage is full.');
  vi.spyOn(Batch.prototype, 'commit').mockRejectedValueOnce(full);
  await expect(ours.storeState(first)).rejects.toBe(full);
  await ours.storeState(first);
  expect(await countUpdates()).toBe(1);
});

test('after a gap in the changes everything is read again; if nothing is there, the document was deleted', async () => {
  const gaps: (() => void)[] = [];
  vi.spyOn(View.prototype, 'changes').mockImplementationOnce(async function* () {
    for (;;) {
      await new Promise<void>((next) => gaps.push(next));
      yield { type: 'gap', since: 0, sequence: 1 } satisfies Change<never, never>;
    }
  } as never);
  const [a, first] = await load(here);
  a.set('x', 1);
  const [b] = await load(there);
  b.set('y', 2);
  await expect.poll(() => countUpdates()).toBe(2);
  gaps.shift()?.();
  expect(await arrival(a, 'y')).toBe(2);
  await ours.clearDocument('a', there);
  await expect.poll(() => gaps.length).toBe(1);
  gaps.shift()?.();
  await expect.poll(() => first.get('any').catch(({ name }) => name)).toBe('InvalidStateError');
});

// A provider that was destroyed before it was loaded once stored nothing.
test('what was written before destroy is stored, also if the document was not loaded', async () => {
  const [early, late] = [newDoc(), newDoc()];
  early.getMap('map').set('a', 1);
  const first = new ours.VarvePersistence('a', early, here);
  early.getMap('map').set('b', 2);
  await first.destroy();
  new ours.VarvePersistence('a', late, here);
  late.getMap('map').set('c', 3);
  late.destroy();
  const [again] = await load(there);
  expect(again.toJSON()).toEqual({ a: 1, b: 2, c: 3 });
});

test('destroy waits for a store that is being opened, and stores the document; clearData stores nothing', async () => {
  const set = vi.spyOn(View.prototype, 'set');
  for (const end of ['destroy', 'clearData'] as const) {
    let opened = (_: Store<Key, unknown>): void => undefined;
    const doc = newDoc();
    const persistence = new ours.VarvePersistence('a', doc, new Promise((resolve) => (opened = resolve)));
    doc.getMap('map').set('a', 1);
    const ended = persistence[end]();
    opened(here);
    await ended;
    expect(await countUpdates()).toBe(end === 'destroy' ? 1 : 0);
  }
  expect(set).toHaveBeenCalledTimes(1);
});

// Story: another tab led the store from then on. A property was VARVE_RETRY, a code that callers of y-indexeddb do not know.
test('reads whose read point is gone are made again', async () => {
  const [a, persistence] = await load(here);
  await persistence.set('cursor', 7);
  a.set('x', 1);
  a.set('y', 2);
  const retry = new VarveError('VARVE_RETRY', 'The read point is gone.');
  vi.spyOn(View.prototype, 'get').mockRejectedValueOnce(retry);
  vi.spyOn(View.prototype, 'count').mockRejectedValueOnce(retry);
  expect(await persistence.get('cursor')).toBe(7);
  await ours.storeState(persistence);
  expect(await countUpdates()).toBe(1);
});

test('if the store cannot be opened, whenSynced and properties reject; destroy does not', async () => {
  const failure = new Error('locked');
  const persistence = new ours.VarvePersistence('a', newDoc(), Promise.reject(failure));
  await expect(persistence.whenSynced).rejects.toBe(failure);
  await expect(persistence.get('x')).rejects.toBe(failure);
  await expect(persistence.destroy()).resolves.toBeUndefined();
});

test('updates that arrive in the wrong order are kept until the rest is there', async () => {
  const source = newDoc();
  const updates: Uint8Array[] = [];
  source.on('update', (update) => updates.push(update));
  source.getMap('map').set('x', 1);
  source.getMap('map').set('y', 2);
  const [a, first] = await load(here);
  Y.applyUpdate(a.doc as Y.Doc, updates[1] as Uint8Array);
  await ours.storeState(first);
  await first.destroy();
  const [b] = await load(there);
  Y.applyUpdate(b.doc as Y.Doc, updates[0] as Uint8Array);
  expect(b.toJSON()).toEqual({ x: 1, y: 2 });
});

/** The next error that nobody handles, which then is no failure of the test. */
function rejections(event: 'unhandledRejection' | 'uncaughtException'): Promise<unknown> {
  const listeners = process.listeners(event as never);
  process.removeAllListeners(event);
  return new Promise((resolve) => {
    process.once(event, (error) => {
      for (const listener of listeners) process.on(event, listener);
      resolve(error);
    });
  });
}
