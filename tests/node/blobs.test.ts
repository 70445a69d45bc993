/** Blobs and Files in values: their bytes are read after the call, and nothing overtakes the write meanwhile. */

import { afterEach, expect, test, vi } from 'vitest';
import { serve } from '../../js/src/cloudflare/serve.ts';
import { structured } from '../../js/src/codec/values.ts';
import { createHandler } from '../../js/src/http.ts';
import { type Key, open, type Store } from '../../js/src/index.ts';
import { connect } from '../../js/src/shards/remote-store.ts';
import { open as openSync } from '../../js/src/synchronous.ts';
import { wasm } from './support/engine.ts';

let db: Store<Key, unknown> | undefined;

async function opened(): Promise<Store<Key, unknown>> {
  db = await open<Key, unknown>('blobs', { storage: 'memory', wasm });
  return db;
}

afterEach(async () => {
  vi.useRealTimers();
  reads = 0;
  await db?.close();
});

/** A Blob whose bytes come when `release` is called. */
function slowBlob(text: string): { blob: Blob; release: () => void; fail: () => void } {
  const blob = new Blob([text], { type: 'text/plain' });
  let [release, fail] = [(): void => undefined, (): void => undefined];
  const gate = new Promise<void>((resolve, reject) => {
    release = resolve;
    fail = () => reject(new DOMException('changed', 'NotReadableError'));
  });
  gate.catch(() => undefined);
  waits.set(blob, gate);
  return { blob, release, fail };
}

const waits = new WeakMap<Blob, Promise<void>>();
/** How many slow Blobs are being read. */
let reads = 0;
const { arrayBuffer } = Blob.prototype;
Blob.prototype.arrayBuffer = async function (): Promise<ArrayBuffer> {
  const wait = waits.get(this);
  if (wait !== undefined) reads++;
  await wait;
  return arrayBuffer.call(this);
};

const tick = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

/** Enough turns for a whole call of a store in memory. */
async function turns(): Promise<void> {
  const other = await open('other', { storage: 'memory', wasm });
  await other.set('a', 1);
  await other.close();
}

const text = async (blob: unknown): Promise<string> => (blob as Blob).text();

test('Blobs and Files come back with their bytes, type, name and time', async () => {
  const store = await opened();
  const file = new File(['file'], 'ä.txt', { type: 'text/plain', lastModified: 1_700_000_000_123 });
  const blob = new Blob([Uint8Array.of(0, 255)], { type: 'image/png' });
  await store.set('file', file);
  const found = (await store.get('file')) as File;
  expect([found instanceof File, found.name, found.type, found.lastModified]).toEqual([
    true,
    'ä.txt',
    'text/plain',
    1_700_000_000_123,
  ]);
  expect(await text(found)).toBe('file');
  const shared = { id: 1 };
  await store.set('many', {
    before: shared,
    list: [blob, shared, new Blob(), blob],
    map: new Map([[1, file]]),
    shared,
  });
  const many = (await store.get('many')) as { list: Blob[]; before: object; shared: object; map: Map<number, File> };
  expect(many.list[0]).toBe(many.list[3]);
  expect(many.before).toBe(many.shared);
  expect([many.list[0]?.type, many.list[2]?.size]).toEqual(['image/png', 0]);
  expect(new Uint8Array((await many.list[0]?.arrayBuffer()) as ArrayBuffer)).toEqual(Uint8Array.of(0, 255));
  expect(await text(many.map.get(1))).toBe('file');
});

test('calls that are made while a Blob is read take effect in their order', async () => {
  const store = await opened();
  const [first, second] = [slowBlob('first'), slowBlob('second')];
  let isRead = false;
  const writes = [
    store.set('a', first.blob),
    store.batch().set('a', { in: second.blob }).set('b', 2).commit(),
    store.delete('b', { existed: true }),
    store.set('a', 'last', { durability: 'strict' }),
  ];
  const reads = [
    store.get('a'),
    store.has('b'),
    store.stats(),
    store.entries()[Symbol.asyncIterator]().next(),
  ] as const;
  void store.get('b').then(() => {
    isRead = true;
  });
  second.release();
  await turns();
  expect(isRead).toBe(false);
  first.release();
  expect((await Promise.all(writes)).map(({ sequence }) => sequence)).toEqual([1, 3, 4, 5]);
  expect(await writes[2]).toMatchObject({ existed: true });
  const [last, isThere, { sequence }, entry] = await Promise.all(reads);
  expect([last, isThere, sequence, entry]).toEqual(['last', false, 5, { value: ['a', 'last'], done: false }]);
});

test('a Blob that cannot be read refuses its own write only, and close waits for the others', async () => {
  const store = await opened();
  const [broken, late] = [slowBlob('broken'), slowBlob('late')];
  const refused = store.set('a', [broken.blob]);
  const alone = store.set('b', 1);
  const slow = store.set('c', late.blob);
  const closing = store.close();
  broken.fail();
  late.release();
  await expect(refused).rejects.toMatchObject({ code: 'VARVE_INVALID_VALUE', message: /cannot be read/ });
  expect([(await alone).sequence, (await slow).sequence]).toEqual([1, 2]);
  await closing;
});

test('an aborted write of a Blob is not waited for', async () => {
  const store = await opened();
  const abort = new AbortController();
  const slow = slowBlob('x');
  const written = store.set('a', slow.blob, { signal: abort.signal });
  abort.abort(new Error('enough'));
  await expect(written).rejects.toThrow('enough');
  expect(await store.has('a')).toBe(false);
});

test('an aborted write frees the calls that wait for its Blob', async () => {
  const store = await opened();
  const abort = new AbortController();
  const written = store.set('a', [slowBlob('x').blob, slowBlob('y').blob], { signal: abort.signal });
  const [other, later] = [store.set('b', 1), store.has('a')];
  await vi.waitFor(() => expect(reads).toBe(1));
  abort.abort(new Error('enough'));
  await expect(written).rejects.toThrow('enough');
  expect([await other, await later, await store.get('b')]).toMatchObject([{ sequence: 1 }, false, 1]);
});

// A write that has not been sent is not done once it is aborted. These were done when the Blob before them was there.
test('an aborted write that waits behind a Blob is not done', async () => {
  const store = await opened();
  const abort = new AbortController();
  const { signal } = abort;
  const slow = slowBlob('x');
  const [written, beside] = [store.set('a', slow.blob), store.set('b', 1, { signal })];
  await vi.waitFor(() => expect(reads).toBe(1));
  const behind = store.set('c', 1, { signal });
  await tick();
  abort.abort(new Error('enough'));
  await expect(beside).rejects.toThrow('enough');
  await expect(behind).rejects.toThrow('enough');
  slow.release();
  expect(await written).toMatchObject({ sequence: 1 });
  expect([await store.has('a'), await store.has('b'), await store.has('c')]).toEqual([true, false, false]);
  expect(await store.set('d', 1)).toMatchObject({ sequence: 2 });
});

test('an aborted update or transaction does not wait for its Blob, and an update that waits for one lets others go first', async () => {
  const store = await opened();
  const abort = new AbortController();
  const { signal } = abort;
  const updated = store.update('a', () => slowBlob('x').blob, { signal });
  const committed = store.transaction((tx) => tx.set('b', slowBlob('y').blob), { signal });
  const next = store.update('a', () => 'next');
  await vi.waitFor(() => expect(reads).toBe(2));
  expect(await next).toMatchObject({ sequence: 1 });
  abort.abort(new Error('enough'));
  await expect(updated).rejects.toThrow('enough');
  await expect(committed).rejects.toThrow('enough');
  expect([await store.get('a'), await store.has('b')]).toEqual(['next', false]);
});

test('close waits 5 seconds for a Blob; then it refuses the write, and makes those after it', async () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
  const store = await opened();
  const never = store.set('a', [slowBlob('x').blob, slowBlob('y').blob]);
  const other = store.set('b', 1);
  let isRefused = false;
  never.catch(() => {
    isRefused = true;
  });
  while (reads === 0) await tick();
  const closing = store.close();
  await tick();
  await vi.advanceTimersByTimeAsync(4999);
  expect(isRefused).toBe(false);
  await vi.advanceTimersByTimeAsync(1);
  await expect(never).rejects.toMatchObject({ code: 'VARVE_CLOSED', message: /before the bytes of a Blob/ });
  expect(await other).toMatchObject({ sequence: 1 });
  await closing;
});

test('update and transactions take Blobs, and a transaction reads its own', async () => {
  const store = await opened();
  await store.update('n', () => new Blob(['updated']));
  expect(await text(await store.get('n'))).toBe('updated');
  const slow = slowBlob('own');
  void turns().then(slow.release);
  await store.transaction(async (tx) => {
    tx.set('t', slow.blob);
    const [found, scanned] = await Promise.all([tx.get('t'), tx.values({ gte: 't' }).next()]);
    expect([await text(found), await text(scanned.value)]).toEqual(['own', 'own']);
    await tx.update('t', async (value) => new Blob([`${await text(value)} and more`]));
    tx.set('u', { at: new Blob(['second']) });
  });
  expect(await text(await store.get('t'))).toBe('own and more');
  expect(await text(((await store.get('u')) as { at: Blob }).at)).toBe('second');
  const broken = slowBlob('x');
  broken.fail();
  const failed = store.transaction((tx) => tx.set('v', broken.blob));
  await expect(failed).rejects.toMatchObject({ code: 'VARVE_INVALID_VALUE' });
  expect(await store.has('v')).toBe(false);
});

test('a value that was kept is not served with the room of a Blob', async () => {
  const store = await opened();
  await store.set('k', 1);
  expect([await store.get('k'), await store.get('k')]).toEqual([1, 1]);
  const slow = slowBlob('kept');
  const written = store.set('k', slow.blob);
  expect(store.peek('k')).toBe(undefined);
  slow.release();
  await written;
  expect(await text(await store.get('k'))).toBe('kept');
});

test('calls that do not wait refuse a Blob by name, and say what to store', async () => {
  const sync = await openSync<Key, unknown>('sync', { storage: 'memory', wasm });
  const file = new File(['x'], 'x');
  const message =
    'value.photo is a File. This call cannot wait for its bytes. Store { bytes: await blob.arrayBuffer(), type:';
  const refused = expect.objectContaining({ code: 'VARVE_INVALID_VALUE', message: expect.stringContaining(message) });
  expect(() => sync.set('a', { photo: file })).toThrow(refused);
  expect(() => sync.batch().set('a', { photo: file })).toThrow(refused);
  expect(() => sync.transaction((tx) => tx.set('a', { photo: file }))).toThrow(refused);
  expect(() => structured.encode({ photo: file })).toThrow(refused);
  const object = connect({ varve: async (request: never) => serve(sync, request) });
  await expect(object.set('a', { photo: file })).rejects.toThrow(refused);
  expect(sync.count()).toBe(0);
  await sync.close();
});

test('over HTTP a value with a Blob is CBOR, in both directions', async () => {
  const store = await opened();
  const handler = createHandler(store);
  const send = (method: string, path: string, init: RequestInit = {}) =>
    handler(new Request(`http://localhost${path}`, { method, ...init }));
  await store.set('k', { photo: new File(['x'], 'x.png', { type: 'image/png', lastModified: 5 }) });
  const got = await send('GET', '/kv/k');
  expect([got.status, got.headers.get('content-type')]).toEqual([200, 'application/cbor']);
  const body = await got.arrayBuffer();
  await send('PUT', '/kv/copy', { body, headers: { 'content-type': 'application/cbor' } });
  const { photo } = (await store.get('copy')) as { photo: File };
  expect([photo.name, photo.type, photo.lastModified, await photo.text()]).toEqual(['x.png', 'image/png', 5, 'x']);
  const page = (await (await send('GET', '/range?prefix="k"')).json()) as { entries: { cbor: string }[] };
  expect(Buffer.from(page.entries[0]?.cbor ?? '', 'base64')).toEqual(Buffer.from(body));
});

test('every other platform object is refused by name', async () => {
  const store = await opened();
  const { publicKey } = (await crypto.subtle.generateKey('Ed25519', false, ['sign', 'verify'])) as CryptoKeyPair;
  const objects = { CryptoKey: publicKey, URL: new URL('http://a'), Headers: new Headers(), Event: new Event('x') };
  for (const [name, object] of Object.entries(objects)) {
    const message = expect.stringContaining(`value[0] is an instance of ${name}. Store plain data`);
    await expect(store.set('k', [object])).rejects.toMatchObject({ code: 'VARVE_INVALID_VALUE', message });
  }
});
