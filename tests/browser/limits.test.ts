// The limits of the API, in a real browser: refused calls and their codes, the largest and smallest values, and iterators that are left
// early. Other tests are about a closed store, a store in memory, and the strict policy of the page.

import type { Page, Worker } from 'playwright';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { newProfile, openWorker, type Profile } from './support/profile.ts';

const PATIENT = { timeout: 30_000 };

let profile: Profile;
let page: Page;
let errors: readonly string[];
let worker: Worker;

declare global {
  /** The store of a test, in its page or worker. */
  var store: import('varve').Store<import('varve').Key, unknown>;
  var syncStore: import('varve/synchronous').SyncStore<import('varve').Key, unknown>;
}

beforeAll(async () => {
  profile = await newProfile(['--js-flags=--expose-gc']);
  ({ page, errors } = await profile.openPage());
  ({ worker } = await openWorker(page));
});

afterAll(async () => {
  await profile?.close();
  // No test above may have violated the policy, or left an exception that nobody caught.
  expect(errors).toEqual([]);
});

/** Closes the global store of the page if there is one, and opens another. */
function openStore(name: string): Promise<string> {
  return page.evaluate(async (called) => {
    globalThis.store = await varve.open(called);
    return store.recovery.state;
  }, name);
}

function openSyncStore(name: string): Promise<string> {
  return worker.evaluate(async (called) => {
    globalThis.syncStore = await varveSync.open(called);
    return syncStore.recovery.state;
  }, name);
}

test('keys that have no place in the order are refused, by every call, and nothing is written', async () => {
  await openStore('bad keys');
  await openSyncStore('bad keys sync');
  const inPage = await page.evaluate(async () => {
    const bad: unknown[] = [Number.NaN, undefined, null, {}, '\ud800', ['a', '\udc00'], new Date(Number.NaN), () => 0];
    bad.push(Symbol('key'), [1, undefined], [Number.NaN], new Map(), new Float64Array(2), new ArrayBuffer(2));
    const codes = new Set<string>();
    for (const key of bad as import('varve').Key[]) {
      codes.add(await codeOf(() => store.set(key, 1)));
      codes.add(await codeOf(() => store.get(key)));
      codes.add(await codeOf(() => store.delete(key)));
      codes.add(await codeOf(() => store.has(key)));
      codes.add(await codeOf(() => store.getMany(['good', key])));
      codes.add(await codeOf(() => store.setMany([[key, 1]])));
      codes.add(await codeOf(() => store.batch().set('good', 1).set(key, 1)));
    }
    const keys: unknown[] = [];
    for await (const key of store.keys()) keys.push(key);
    await store.close();
    return { codes: [...codes], keys };
  });
  expect(inPage).toEqual({ codes: ['VARVE_INVALID_KEY'], keys: [] });
  const inWorker = await worker.evaluate(async () => {
    const bad: unknown[] = [Number.NaN, undefined, null, {}, '\ud800', ['a', '\udc00'], new Date(Number.NaN), () => 0];
    const codes = new Set<string>();
    for (const key of bad as import('varve').Key[]) {
      codes.add(await codeOf(() => syncStore.set(key, 1)));
      codes.add(await codeOf(() => syncStore.get(key)));
      codes.add(await codeOf(() => syncStore.delete(key)));
      codes.add(await codeOf(() => syncStore.batch().set('good', 1).set(key, 1)));
    }
    const keys = [...syncStore.keys()];
    await syncStore.close();
    return { codes: [...codes], keys };
  });
  expect(inWorker).toEqual({ codes: ['VARVE_INVALID_KEY'], keys: [] });
});

test('values that cannot be stored are refused, and the value before stays', async () => {
  await openStore('bad values');
  await openSyncStore('bad values sync');
  const inPage = await page.evaluate(async () => {
    class Stone {
      weight = 1;
    }
    const bad: unknown[] = [
      undefined,
      () => 0,
      Symbol('value'),
      new WeakMap(),
      new Stone(),
      Promise.resolve(),
      [() => 0],
    ];
    bad.push({ deep: { deeper: Symbol('value') } }, new Map([['stone', new Stone()]]), document.body, globalThis);
    await store.set('key', 'before');
    const codes = new Set<string>();
    for (const value of bad) {
      codes.add(await codeOf(() => store.set('key', value)));
      codes.add(await codeOf(() => store.setMany([['key', value]])));
      codes.add(await codeOf(() => store.batch().set('key', value)));
    }
    const value = await store.get('key');
    await store.close();
    return { codes: [...codes], value };
  });
  expect(inPage).toEqual({ codes: ['VARVE_INVALID_VALUE'], value: 'before' });
  const inWorker = await worker.evaluate(async () => {
    const codes = new Set<string>();
    syncStore.set('key', 'before');
    for (const value of [undefined, () => 0, Symbol('value'), new WeakMap(), { deep: () => 0 }, self]) {
      codes.add(await codeOf(() => syncStore.set('key', value)));
    }
    const value = syncStore.get('key');
    await syncStore.close();
    return { codes: [...codes], value };
  });
  expect(inWorker).toEqual({ codes: ['VARVE_INVALID_VALUE'], value: 'before' });
});

test('a closed store refuses every call with VARVE_CLOSED, and closing it again does nothing', async () => {
  await openStore('closed');
  const inPage = await page.evaluate(async () => {
    await store.setMany([
      ['a', 1],
      ['b', 2],
    ]);
    const left = store.entries();
    await left.next();
    const batch = store.batch().set('c', 3);
    const last = store.set('d', 4);
    await store.close();
    await store.close();
    const codes = new Set<string>();
    const calls = [
      () => store.get('a'),
      () => store.getMany(['a']),
      () => store.getEntry('a'),
      () => store.has('a'),
      () => store.set('a', 1),
      () => store.setMany([['a', 1]]),
      () => store.delete('a'),
      () => store.deleteRange({ gte: 'a' }),
      () => store.clear(),
      () => batch.commit(),
      () => store.entries().next(),
      () => store.keys().next(),
      () => store.stats(),
      () => store.flush(),
      () => store.compact(),
    ];
    for (const call of calls) codes.add(await codeOf(call));
    return { codes: [...codes], last: (await last).durability };
  });
  expect(inPage).toEqual({ codes: ['VARVE_CLOSED'], last: 'relaxed' });
  await openSyncStore('closed');
  const inWorker = await worker.evaluate(async () => {
    const found = [...syncStore.keys()];
    const left = syncStore.entries();
    await syncStore.close();
    await syncStore.close();
    const codes = new Set<string>();
    const calls = [
      () => syncStore.get('a'),
      () => syncStore.set('a', 1),
      () => syncStore.delete('a'),
      () => syncStore.batch(),
      () => syncStore.entries(),
      () => syncStore.commit(),
      () => syncStore.stats(),
      () => syncStore.compact(),
    ];
    for (const call of calls) codes.add(await codeOf(call));
    left.return?.();
    return { codes: [...codes], found };
  });
  expect(inWorker).toEqual({ codes: ['VARVE_CLOSED'], found: ['a', 'b', 'd'] });
});

test('iterators release their scans when they are aborted, left or ended by an error', async () => {
  await openStore('iterators');
  const found = await page.evaluate(async () => {
    const rows = Array.from({ length: 20_000 }, (_, i) => [i, `value ${i} ${'.'.repeat(50)}`] as const);
    await store.setMany(rows);
    const aborting = new AbortController();
    const seen: unknown[] = [];
    const aborted = await codeOf(async () => {
      for await (const [key] of store.entries({ signal: aborting.signal })) {
        seen.push(key);
        if (seen.length === 1000) aborting.abort();
      }
    });
    const before = await codeOf(() => store.keys({ signal: aborting.signal }).next());
    for await (const key of store.keys()) if (key === 2000) break;
    const thrown = await codeOf(async () => {
      for await (const key of store.values({ reverse: true })) if (key !== undefined) throw new Error('left');
    });
    const returned = store.entries();
    await returned.next();
    await returned.return?.();
    const after = await returned.next();
    return { aborted, before, thrown, seen: seen.length, after: after.done };
  });
  expect(found).toEqual({
    aborted: expect.stringContaining('AbortError'),
    before: expect.stringContaining('AbortError'),
    thrown: 'Error: left',
    seen: 1000,
    after: true,
  });
  // A scan ends in the engine when the batch that was under way has arrived.
  await expect.poll(() => page.evaluate(async () => (await store.stats()).scans), PATIENT).toBe(0);
  await page.evaluate(() => store.close());
});

test('empty values and values of 16 MB come back whole, also after reopening', async () => {
  await openStore('sizes');
  await page.evaluate(async () => {
    const large = new Uint8Array(16 << 20).map((_, i) => (i * 31 + (i >> 13)) & 0xff);
    await store.set('no bytes', new Uint8Array(0));
    await store.set('no text', '');
    await store.set('large bytes', large, { durability: 'strict' });
    await store.set('large text', 'silt'.repeat(4 << 20));
    await store.batch().set('large in a batch', large).set('small in it', 1).commit();
    await store.close();
  });
  await openStore('sizes');
  const found = await page.evaluate(async () => {
    const isLarge = (value: unknown): boolean =>
      value instanceof Uint8Array &&
      value.length === 16 << 20 &&
      value.every((byte, i) => byte === ((i * 31 + (i >> 13)) & 0xff));
    const bytes = await store.get('no bytes');
    const scanned: unknown[] = [];
    for await (const [key, value] of store.entries()) scanned.push([key, (value as string).length ?? value]);
    const result = {
      bytes: bytes instanceof Uint8Array && bytes.length === 0,
      text: await store.get('no text'),
      large: isLarge(await store.get('large bytes')),
      largeText: (await store.get('large text')) === 'silt'.repeat(4 << 20),
      batch: isLarge(await store.get('large in a batch')),
      small: await store.get('small in it'),
      scanned,
    };
    await store.compact();
    const compacted = isLarge(await store.get('large bytes'));
    await store.close();
    return { ...result, compacted };
  });
  expect(found).toEqual({
    bytes: true,
    text: '',
    large: true,
    largeText: true,
    batch: true,
    small: 1,
    scanned: [
      ['large bytes', 16 << 20],
      ['large in a batch', 16 << 20],
      ['large text', 16 << 20],
      ['no bytes', 0],
      ['no text', 0],
      ['small in it', 1],
    ],
    compacted: true,
  });
});

test('a key of 65,536 bytes is stored, one more is refused', async () => {
  await openStore('long keys');
  const codes = await page.evaluate(async () => {
    const text = 'k'.repeat(65_536);
    const bytes = new Uint8Array(65_536).fill(7);
    const results = [];
    for (const key of [text, bytes, 'ü'.repeat(32_768)]) results.push(await codeOf(() => store.set(key, 'long')));
    const longer = [`${text}k`, new Uint8Array(65_537), `${'ü'.repeat(32_768)}k`, [text]];
    for (const key of longer) results.push(await codeOf(() => store.set(key, 'longer')));
    await store.close();
    return results;
  });
  expect(codes).toEqual(['ok', 'ok', 'ok', ...Array(4).fill('VARVE_INVALID_KEY')]);
  await openStore('long keys');
  const found = await page.evaluate(async () => {
    await store.compact();
    const keys: unknown[] = [];
    for await (const key of store.keys()) keys.push((key as string).length);
    const values = await store.getMany([
      'k'.repeat(65_536),
      new Uint8Array(65_536).fill(7),
      'ü'.repeat(32_768),
      'k'.repeat(65_535),
    ]);
    await store.close();
    return { keys, values: values.map((value) => value ?? 'none') };
  });
  expect(found).toEqual({ keys: [65_536, 65_536, 32_768], values: ['long', 'long', 'long', 'none'] });
});

test('a scan past 100,000 deletes finds the remaining entries', async () => {
  await openStore('deletes');
  const scan = (): Promise<unknown[]> =>
    page.evaluate(async () => {
      const keys: unknown[] = [];
      for await (const key of store.keys()) keys.push(key);
      for await (const key of store.keys({ reverse: true, limit: 1 })) keys.push(key);
      for await (const key of store.keys({ gt: 10, lt: 100_000 })) keys.push(key);
      return keys;
    });
  await page.evaluate(async () => {
    const all = Array.from({ length: 100_000 }, (_, i) => i + 1);
    for (let at = 0; at < all.length; at += 10_000) {
      await store.setMany(all.slice(at, at + 10_000).map((key) => [key, `value ${key}`] as const));
    }
    await store.setMany([
      [0, 'first'],
      [100_001, 'last'],
    ]);
    await Promise.all(all.map((key) => store.delete(key)));
  });
  expect(await scan()).toEqual([0, 100_001, 100_001]);
  await page.evaluate(() => store.close());
  await openStore('deletes');
  expect(await scan()).toEqual([0, 100_001, 100_001]);
  await page.evaluate(() => store.close());
});

test('keys and values of every type come back as they were, in the order of keys, after reopening', async () => {
  await openStore('types');
  await page.evaluate(async () => {
    await store.setMany(everyType());
    await store.close();
  });
  await openStore('types');
  const inPage = await page.evaluate(async () => {
    const wrong: string[] = [];
    const expected = everyType();
    let at = 0;
    for await (const [key, value] of store.entries()) {
      const [expectedKey, expectedValue] = expected[at++] ?? [];
      if (!isSame(key, expectedKey)) wrong.push(`key ${at - 1} is ${String(key)}, not ${String(expectedKey)}`);
      if (!isSame(value, expectedValue)) wrong.push(`value ${at - 1} is ${String(value)}`);
    }
    if (at !== expected.length) wrong.push(`${at} entries`);
    for (const [key, value] of expected) {
      if (!isSame(await store.get(key), value)) wrong.push(`the value of ${String(key)}`);
    }
    await store.close();
    return wrong;
  });
  expect(inPage).toEqual([]);
  await openSyncStore('types');
  const inWorker = await worker.evaluate(async () => {
    const expected = everyType();
    const wrong = [...syncStore.entries()].filter((entry, i) => !isSame(entry, expected[i])).map(String);
    for (const [key, value] of expected) if (!isSame(syncStore.get(key), value)) wrong.push(String(key));
    await syncStore.close();
    return wrong;
  });
  expect(inWorker).toEqual([]);
});

test('a store in memory reports that, and is gone when it closes', async () => {
  const found = await page.evaluate(async () => {
    const memory = await varve.open('in memory', { storage: 'memory' });
    const report = { ...memory.storage, state: memory.recovery.state };
    const { durability } = await memory.set('key', 'value', { durability: 'strict' });
    const value = await memory.get('key');
    // No other opener sees this store, so none is refused.
    const other = await varve.open('in memory', { storage: 'memory', lockTimeout: 0 });
    const elsewhere = (await other.get('key')) === undefined;
    await other.close();
    await memory.close();
    const again = await varve.open('in memory', { storage: 'memory' });
    const left = (await again.get('key')) !== undefined;
    await again.close();
    const kept = await varve.open('on disk');
    const { kind } = kept.storage;
    await kept.close();
    return { report, durability, value, elsewhere, left, kind, names: await varve.listStores() };
  });
  expect(found).toMatchObject({
    report: { kind: 'memory', state: 'new' },
    value: 'value',
    elsewhere: true,
    left: false,
  });
  expect(found.report).not.toHaveProperty('reason');
  expect(found.kind).toBe('opfs');
  expect(found.names).toContain('on disk');
  expect(found.names).not.toContain('in memory');
});

test('everything works under a strict policy: WebAssembly, but no eval and no inline code', async () => {
  const strict = await profile.openPage();
  const found = await strict.page.evaluate(async () => {
    // `setTimeout` with a text is an eval that only the policy stops.
    let policy = '';
    document.addEventListener('securitypolicyviolation', (event) => {
      policy = event.effectiveDirective;
    });
    const db = await varve.open<number, string>('strict', { memoryBytes: 2 << 20 });
    for (let at = 0; at < 40_000; at += 1000) {
      await db.setMany(Array.from({ length: 1000 }, (_, i) => [at + i, `value ${at + i}`.repeat(5)] as const));
    }
    await db.compact();
    const {
      flush: { count: flushes },
      levels,
    } = await db.stats();
    const value = await db.get(39_999);
    await db.close();
    return { policy, flushed: flushes > 0, merged: levels.slice(1).some((level) => level.tables > 0), value };
  });
  expect(found).toEqual({ policy: '', flushed: true, merged: true, value: 'value 39999'.repeat(5) });
  expect(strict.errors).toEqual([]);
  // And the policy was in force all the time.
  await strict.page.evaluate(() => {
    const script = document.createElement('script');
    script.textContent = 'globalThis.ran = true';
    document.head.append(script);
  });
  await expect.poll(() => strict.errors.join(), PATIENT).toContain('Content Security Policy');
});

// Chromium never answers `createSyncAccessHandle` of a file handle that is garbage meanwhile. If an opening drops its reference to such a
// handle, it waits for ever.
test('a store opens while the garbage collector runs', PATIENT, async () => {
  const opened = await worker.evaluate(async () => {
    const collect = (globalThis as { gc?: (how: { type: 'major'; execution: 'async' }) => Promise<void> }).gc;
    if (!collect) throw new Error('the browser was started without gc');
    let ended = false;
    const collecting = (async () => {
      while (!ended) await collect({ type: 'major', execution: 'async' });
    })();
    let times = 0;
    for (; times < 20; times++) {
      const store = await varveSync.open<number, number>('collected');
      store.set(times, times);
      await store.close();
    }
    ended = true;
    await collecting;
    return times;
  });
  expect(opened).toBe(20);
});
