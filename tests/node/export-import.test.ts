/** Exports and imports: what is restored, what is refused, and what can be resumed. */

import { readFileSync, writeFileSync } from 'node:fs';
import { describe, expect, test, vi } from 'vitest';
import { Client } from '../../js/src/client/client.ts';
import { bytes as bytesCodec } from '../../js/src/codec/values.ts';
import type { Store } from '../../js/src/store/store.ts';
import type { Key } from '../../js/src/types.ts';
import { boundaries, bytesOf, chunks, contents, newStore } from './support/exports.ts';
import { KeptDevices } from './support/kept-devices.ts';
import { Random } from './support/random.ts';
import { closedAfterTest } from './support/stores.ts';

const PATIENT = { timeout: 30_000 };

async function store(...options: Parameters<typeof newStore>): Promise<Store<Key, unknown>> {
  return closedAfterTest(await newStore(...options));
}

/** A store of several blocks. */
async function large(count = 4000): Promise<Store<Key, unknown>> {
  const db = await store();
  await db.setMany(Array.from({ length: count }, (_, i): [Key, unknown] => [['n', i], `value ${i} `.repeat(30)]));
  return db;
}

describe('a round trip', () => {
  test.each([1, 2, 3, 4])('random stores come back as they were (seed %i)', async (seed) => {
    const random = new Random(seed);
    const db = await store();
    for (let i = 0; i < 1500; i++) {
      const key = random.key();
      const value = random.pick([
        random.text(50),
        random.bytes(2000),
        { n: random.number(), big: random.bigint() },
        [null],
      ]);
      const expiresIn = random.below(5) === 0 ? 60_000 + random.below(1e9) : undefined;
      await db.set(key, value, { expiresIn });
      if (random.below(10) === 0) await db.delete(random.key());
      if (i === 700) await db.compact();
    }
    const exported = await bytesOf(db.export());
    const other = await store();
    const seen: number[] = [];
    const report = await other.import(chunks(exported, 1 + random.below(5000)), {
      onProgress: ({ bytes }) => seen.push(bytes),
    });
    expect(report).toEqual({ entries: await db.count(), bytes: exported.length, resumedAt: 0 });
    expect(seen).toEqual(boundaries(exported).slice(1, -1));
    expect(await contents(other)).toStrictEqual(await contents(db));
    // A copy of the copy is equal except for its id and what follows from the id.
    expect((await bytesOf(other.export())).length).toBe(exported.length);
  });

  test('an empty store, an empty value, a large one, the longest key', async () => {
    const db = await store({ values: bytesCodec as never });
    const empty = await bytesOf(db.export());
    expect(await (await store()).import(chunks(empty, 7))).toEqual({ entries: 0, bytes: empty.length, resumedAt: 0 });
    await db.set('empty', new Uint8Array(0));
    await db.set('k'.repeat(65_536), new Uint8Array(1));
    await db.set(
      'large',
      Uint8Array.from({ length: 700_000 }, (_, i) => i * 7),
    );
    const other = await store();
    await other.import(db.export());
    expect(await contents(other)).toStrictEqual(await contents(db));
  });

  test('it has the read point of the call', async () => {
    const db = await large();
    const before = await contents(db);
    const stream = db.export();
    await db.clear();
    await db.set('later', 1);
    const other = await store();
    await other.import(stream);
    expect(await contents(other)).toStrictEqual(before);
    await expect.poll(async () => (await db.stats()).snapshots, PATIENT).toBe(0);
  });

  test('it has the range of the call, also if its options change later', async () => {
    const db = await large(100);
    const range = { prefix: ['n'], gte: ['n', 90] as [string, number] };
    const stream = db.export(range);
    range.gte[1] = 0;
    range.prefix[0] = 'x';
    expect((await (await store()).import(stream)).entries).toBe(10);
  });

  test('a range of keys can be exported alone, and imported over another', async () => {
    const db = await large(100);
    const part = await bytesOf(db.export({ gte: ['n', 90] }));
    const other = await store();
    await other.setMany([
      [['n', 95], 'old'],
      ['kept', 1],
    ]);
    await expect(other.import(chunks(part, 999))).rejects.toMatchObject({ code: 'VARVE_EXISTS' });
    expect(await other.count()).toBe(2);
    expect((await other.import(chunks(part, 999), { merge: true })).entries).toBe(10);
    expect(await other.count()).toBe(11);
    expect(await other.get(['n', 95])).toBe(await db.get(['n', 95]));
    expect((await bytesOf(db.export({ prefix: ['x'] }))).length).toBe((await bytesOf((await store()).export())).length);
    await expect(bytesOf(db.export({ gt: 1, gte: 2 }))).rejects.toMatchObject({ code: 'VARVE_INVALID_ARGUMENT' });
  });

  test('through gzip and back', async () => {
    const db = await large();
    const other = await store();
    const zip = new CompressionStream('gzip') as TransformStream<Uint8Array, Uint8Array>;
    const unzip = new DecompressionStream('gzip') as TransformStream<Uint8Array, Uint8Array>;
    await other.import(db.export().pipeThrough(zip).pipeThrough(unzip));
    expect(await contents(other)).toStrictEqual(await contents(db));
  });
});

describe('versions', () => {
  test('the version of the data comes along', async () => {
    const db = await store({ version: 3, storage: new KeptDevices() } as never);
    await db.set('a', 1);
    const exported = await bytesOf(db.export());
    const storage = new KeptDevices();
    const plain = await newStore({ storage });
    await plain.import(chunks(exported, 50));
    await plain.close();
    let upgrades = 0;
    const upgrade = (): void => void upgrades++;
    await (await newStore({ storage, version: 3, upgrade } as never)).close();
    expect(upgrades).toBe(0);
    await expect(newStore({ storage, version: 2 } as never)).rejects.toMatchObject({ code: 'VARVE_VERSION' });
    const other = await store({ version: 4 } as never);
    await expect(other.import(chunks(exported, 50))).rejects.toMatchObject({ code: 'VARVE_VERSION' });
    expect(await other.count()).toBe(0);
    const same = await store({ version: 3 } as never);
    await same.import(chunks(exported, 50));
    expect(await same.get('a')).toBe(1);
  });
});

describe('damage', () => {
  test('a small export that is truncated anywhere is reported, with the offset', async () => {
    const db = await store();
    await db.setMany([
      ['a', 1],
      ['b', 'two'],
    ]);
    const exported = await bytesOf(db.export());
    const first = boundaries(exported)[1] as number;
    for (let length = 0; length < exported.length; length++) {
      const other = await newStore();
      await expect(other.import(chunks(exported.slice(0, length), 1000))).rejects.toMatchObject({
        code: 'VARVE_CORRUPT',
        message: expect.stringContaining(length === 0 ? 'This is no export' : ` at byte ${length},`),
      });
      expect(await other.count()).toBe(length < first ? 0 : 2);
      await other.close();
    }
  });

  test('a flipped bit anywhere is reported, and nothing of its block is there', async () => {
    const db = await store();
    await db.set('a', 'one', { expiresIn: 1e9 });
    await db.set('b', 'two');
    const exported = await bytesOf(db.export());
    const [header, first] = boundaries(exported) as [number, number];
    for (let at = 0; at < exported.length; at++) {
      const other = await newStore();
      exported[at]! ^= 1 << (at % 8);
      const place = at < header ? 0 : at < first ? header : first;
      await expect(other.import(chunks(exported, 1000))).rejects.toMatchObject({
        code: 'VARVE_CORRUPT',
        message: expect.stringContaining(at < 4 ? 'This is no export' : ` at byte ${place}:`),
      });
      expect(await other.count()).toBe(at < first ? 0 : 2);
      exported[at]! ^= 1 << (at % 8);
      await other.close();
    }
  });

  test('blocks that are left out, moved, doubled or of another export, and what follows the end', async () => {
    const exported = await bytesOf((await large()).export());
    const again = await bytesOf((await large()).export());
    const [a, b, c] = boundaries(exported) as [number, number, number];
    const cut = (bytes: Uint8Array, from: number, to = bytes.length) => bytes.subarray(from, to);
    const wrong: [Uint8Array[], number][] = [
      [[cut(exported, 0, a), cut(exported, b)], 0],
      [[cut(exported, 0, b), cut(exported, c)], 1],
      [[cut(exported, 0, b), cut(exported, a)], 1],
      [[cut(exported, 0, a), cut(exported, b, c), cut(exported, a, b), cut(exported, c)], 0],
      [[cut(again, 0, b), cut(exported, b)], 1],
      [[exported, Uint8Array.of(0)], -1],
    ];
    for (const [parts, blocks] of wrong) {
      const other = await store();
      let applied = 0;
      const joined = new Uint8Array(await new Blob(parts as BlobPart[]).arrayBuffer());
      const importing = other.import(chunks(joined, 70_000), { onProgress: () => applied++ });
      await expect(importing).rejects.toMatchObject({ code: 'VARVE_CORRUPT' });
      if (blocks >= 0) expect(applied).toBe(blocks);
      expect((await other.count()) > 0).toBe(blocks !== 0);
    }
  });

  test('an export of newer code, and bytes that are no export', async () => {
    const other = await store();
    for (const text of ['', 'V', '[]', 'VRV{', '{"notes":[]}', 'x'.repeat(1000)]) {
      const error = (await other.import(chunks(new TextEncoder().encode(text), 100)).catch((error) => error)) as Error;
      expect(error).toMatchObject({ code: 'VARVE_CORRUPT' });
      if (text === 'V') expect(error.message).toContain('ends at byte 1,');
      else expect(error.message).toMatch(/^This is no export/);
      expect(error.message.includes('intact')).toBe(text === 'V');
    }
    const newer = await bytesOf(other.export());
    newer[4] = 3;
    newer.set(new Uint8Array(await crypto.subtle.digest('SHA-256', newer.slice(0, 40))), 40);
    await expect(other.import(chunks(newer, 100))).rejects.toMatchObject({ code: 'VARVE_VERSION' });
  });
});

test('a source that is no stream of bytes is refused with what to pass', async () => {
  const other = await store();
  const strings = (async function* () {
    yield 'text';
  })();
  const sources: unknown[] = [undefined, null, 'text', 7, new Response('text'), strings, () => null];
  for (const source of sources) {
    await expect(other.import(source as AsyncIterable<Uint8Array>)).rejects.toMatchObject({
      code: 'VARVE_INVALID_ARGUMENT',
      message: expect.stringContaining('Pass response.body for a Response'),
    });
  }
  await other.set('after', 1);
});

describe('continuing an import', () => {
  const failing = async function* (bytes: Uint8Array, length: number): AsyncGenerator<Uint8Array, void, undefined> {
    yield* chunks(bytes.subarray(0, length), 10_000);
    throw new Error('the line is dead');
  };

  test('after a failure, by an offset or from the start', async () => {
    const db = await large();
    const exported = await bytesOf(db.export());
    const ends = boundaries(exported);
    for (const seeks of [true, false]) {
      const other = await store();
      const cut = (ends[3] as number) + 100;
      await expect(other.import(failing(exported, cut))).rejects.toThrow('the line is dead');
      const offsets: number[] = [];
      const seen: number[] = [];
      const source = (offset: number) => {
        offsets.push(offset);
        return chunks(exported.subarray(offset), 10_000);
      };
      const onProgress = ({ bytes }: { bytes: number }) => seen.push(bytes);
      const report = await other.import(seeks ? source : chunks(exported, 10_000), { onProgress });
      expect(report).toEqual({ entries: 4000, bytes: exported.length, resumedAt: ends[3] });
      expect(offsets).toEqual(seeks ? [ends[3]] : []);
      expect(seen).toEqual(ends.slice(4, -1));
      expect(await contents(other)).toStrictEqual(await contents(db));
      // The import is complete: the same stream once more is another import.
      await expect(other.import(source)).rejects.toMatchObject({ code: 'VARVE_EXISTS' });
    }
  });

  test('after the store was closed, whatever block it was at', async () => {
    const exported = await bytesOf((await large()).export());
    const storage = new KeptDevices();
    const ends = boundaries(exported).slice(1);
    for (const [i, end] of ends.slice(0, -1).entries()) {
      const db = await newStore({ storage });
      const seen: number[] = [];
      const importing = db.import((offset) => failing(exported.subarray(offset), end + 20 - offset), {
        onProgress: ({ bytes }) => seen.push(bytes),
      });
      await expect(importing).rejects.toThrow('the line is dead');
      expect(seen).toEqual([end]);
      expect(await db.count()).toBeGreaterThan(i * 10);
      await db.close();
    }
    const db = closedAfterTest(await newStore({ storage }));
    expect((await db.import((offset) => chunks(exported.subarray(offset), 5000))).resumedAt).toBe(ends.at(-2));
    expect(await db.count()).toBe(4000);
  });

  // An import was cut, the store was emptied and got one key: the second import went on at the old offset, and half of the data was missing.
  test('after a deletion it does not continue: it is refused, or begins again with merge', async () => {
    const db = await large();
    const exported = await bytesOf(db.export());
    const cut = (boundaries(exported)[3] as number) + 100;
    const source = (offset: number) => chunks(exported.subarray(offset), 10_000);
    for (const seeks of [true, false]) {
      const other = await store();
      await expect(other.import(failing(exported, cut))).rejects.toThrow('the line is dead');
      await other.clear();
      await other.set('settings', 1);
      const again = () => (seeks ? source : chunks(exported, 10_000));
      const refused = { code: 'VARVE_EXISTS' };
      await expect(other.import(again())).rejects.toMatchObject(refused);
      await expect(other.import(again())).rejects.toMatchObject(refused);
      expect(await other.count()).toBe(1);
      expect(await other.import(again(), { merge: true })).toMatchObject({ entries: 4000, resumedAt: 0 });
      expect(await other.count()).toBe(4001);
    }
  });

  // Story: the second import deleted the record and wrote it anew. A tab that ended between the two left a store that no import continued.
  test('an import that ends at any of its first calls leaves its place', async () => {
    const exported = await bytesOf((await large()).export());
    const ends = boundaries(exported);
    const source = (offset: number) => chunks(exported.subarray(offset), 10_000);
    const other = await store();
    await expect(other.import(failing(exported, (ends[2] as number) + 100))).rejects.toThrow('the line is dead');
    const { submit } = Client.prototype;
    for (let calls = 0; calls < 5; calls++) {
      let left = calls;
      const spy = vi.spyOn(Client.prototype, 'submit').mockImplementation(function (this: Client, ...call) {
        if (left-- > 0) return submit.apply(this, call);
        return Promise.reject(new Error('the tab is gone')) as never;
      });
      await expect(other.import(() => failing(exported, 0))).rejects.toThrow(/the tab is gone|the line is dead/);
      spy.mockRestore();
    }
    expect(await other.import(source)).toMatchObject({ entries: 4000, resumedAt: ends[2] });
  });

  // The same with merge: as many entries as before do not show that those of the import are still there.
  test('with merge it continues only if nothing was written since, whatever the number of entries', async () => {
    const db = await large();
    const exported = await bytesOf(db.export());
    const ends = boundaries(exported);
    const other = await store();
    await other.setMany([
      ['own', 1],
      [['n', 3999], 'old'],
    ]);
    const merge = true;
    const cut = other.import(failing(exported, (ends[3] as number) + 100), { merge });
    await expect(cut).rejects.toThrow('the line is dead');
    await other.batch().delete(['n', 0]).set('in its place', 1).commit();
    const next = other.import(failing(exported, (ends[2] as number) + 100), { merge });
    await expect(next).rejects.toThrow('the line is dead');
    expect(await other.has(['n', 0])).toBe(true);
    // Attempts that come no further leave the record as it is.
    for (let attempt = 0; attempt < 2; attempt++) {
      await expect(other.import(() => failing(exported, 0), { merge })).rejects.toThrow('the line is dead');
    }
    const source = (offset: number) => chunks(exported.subarray(offset), 10_000);
    expect(await other.import(source, { merge })).toMatchObject({ entries: 4000, resumedAt: ends[2] });
    expect(await other.count()).toBe(4002);
    expect(await other.get(['n', 3999])).toBe(await db.get(['n', 3999]));
  });

  test('with another export it does not continue, unless the store was emptied', async () => {
    const exported = await bytesOf((await large()).export());
    const small = await bytesOf((await large(10)).export());
    const other = await store();
    await expect(other.import(failing(exported, 400_000))).rejects.toThrow('the line is dead');
    const source = (offset: number) => chunks(small.subarray(offset), 5000);
    await expect(other.import(source)).rejects.toMatchObject({ code: 'VARVE_EXISTS' });
    await other.clear();
    expect(await other.import(source)).toEqual({ entries: 10, bytes: small.length, resumedAt: 0 });
    expect(await other.count()).toBe(10);
  });

  test('with bytes from another offset than requested, it is damage', async () => {
    const exported = await bytesOf((await large()).export());
    const other = await store();
    await expect(other.import(failing(exported, 400_000))).rejects.toThrow('the line is dead');
    const importing = other.import((offset) => chunks(exported.subarray(offset === 0 ? 1 : offset + 1), 5000));
    await expect(importing).rejects.toMatchObject({ code: 'VARVE_CORRUPT' });
  });

  test('a signal ends it at once, also while it waits for bytes', async () => {
    const exported = await bytesOf((await large()).export());
    const other = await store();
    const abort = new AbortController();
    let isCancelled = false;
    const source: UnderlyingDefaultSource<Uint8Array> = {
      start: (controller) => controller.enqueue(exported.slice(0, 400_000)),
      // Called when a read waits for more.
      pull: () => queueMicrotask(() => abort.abort()),
      cancel: () => {
        isCancelled = true;
      },
    };
    const stuck = new ReadableStream(source, { highWaterMark: 0 });
    const importing = other.import(stuck, { signal: abort.signal });
    await expect(importing).rejects.toMatchObject({ name: 'AbortError' });
    expect(isCancelled).toBe(true);
    const again = await other.import(chunks(exported, 50_000));
    expect(again.resumedAt).toBe(boundaries(exported)[1]);
    await expect(other.import(stuck, { signal: abort.signal })).rejects.toMatchObject({ name: 'AbortError' });
  });

  // Story: a function that opens the export may wait for a server. The signal did not end that wait.
  test('a signal ends it also while the export is being opened, and a stream that comes later is closed', async () => {
    const other = await store();
    const abort = new AbortController();
    let found = (_: ReadableStream<Uint8Array>): void => undefined;
    const source = vi.fn(
      () =>
        new Promise<ReadableStream<Uint8Array>>((resolve) => {
          found = resolve;
        }),
    );
    const importing = other.import(source, { signal: abort.signal });
    await vi.waitFor(() => expect(source).toHaveBeenCalled());
    abort.abort();
    await expect(importing).rejects.toMatchObject({ name: 'AbortError' });
    await new Promise<void>((cancel) => found(new ReadableStream({ cancel: () => cancel() })));
  });
});

describe('streaming', () => {
  test('only requested bytes are read, and a cancelled reader releases the snapshot', async () => {
    const db = await large(20_000);
    const seen: number[] = [];
    const stream = db.export({ onProgress: ({ entries }) => seen.push(entries) });
    const reader = stream.getReader();
    await reader.read();
    await reader.read();
    await expect.poll(async () => (await db.stats()).scans, PATIENT).toBe(1);
    expect(seen.length).toBeLessThan(3);
    await reader.cancel();
    await expect.poll(async () => (await db.stats()).snapshots, PATIENT).toBe(0);
    expect((await db.stats()).scans).toBe(0);
    expect(seen.length).toBeLessThan(4);
  });

  test('an import keeps a block and a chunk in memory, however long the export is', async () => {
    const exported = await bytesOf((await large(20_000)).export());
    const longest = Math.max(...boundaries(exported).map((end, i, ends) => end - (ends[i - 1] ?? 0)));
    const other = await store();
    let taken = 0;
    let most = 0;
    const counted = async function* () {
      for await (const chunk of chunks(exported, 8000)) {
        taken += chunk.length;
        yield chunk;
      }
    };
    await other.import(counted(), {
      onProgress: ({ bytes }) => {
        most = Math.max(most, taken - bytes);
      },
    });
    expect(taken).toBe(exported.length);
    expect(exported.length).toBeGreaterThan(10 * longest);
    expect(most).toBeLessThan(longest);
  });

  test('a signal, and a store that is closed, end the stream with an error', async () => {
    const db = await large();
    const abort = new AbortController();
    const reader = db.export({ signal: abort.signal }).getReader();
    await reader.read();
    abort.abort();
    const drained = (async () => {
      while (!(await reader.read()).done);
    })();
    await expect(drained).rejects.toMatchObject({ name: 'AbortError' });
    await expect.poll(async () => (await db.stats()).snapshots, PATIENT).toBe(0);
    await expect(bytesOf(db.export({ signal: abort.signal }))).rejects.toMatchObject({ name: 'AbortError' });
    await db.close();
    await expect(bytesOf(db.export())).rejects.toMatchObject({ code: 'VARVE_CLOSED' });
  });

  test('where there is no SHA-256 the error names it', async () => {
    const db = await large(1);
    vi.spyOn(globalThis.crypto, 'subtle', 'get').mockReturnValue(undefined as never);
    await expect(bytesOf(db.export())).rejects.toMatchObject({ code: 'VARVE_UNSUPPORTED' });
  });
});

describe('the golden file', () => {
  const file = new URL('golden/export-v1.varve', import.meta.url);
  const golden = new Uint8Array(readFileSync(file));
  const entries: [Key, unknown, number | undefined][] = [
    [Uint8Array.of(0, 255), Uint8Array.of(1, 2, 3), undefined],
    ['text', 'Silt', undefined],
    ['gone in 2100', { title: 'Silt', tags: ['lake', 1n] }, 4_102_444_800_000],
    [-1.5, null, undefined],
    [['note', 42, new Date(0)], new Map([['a', 1]]), undefined],
  ];

  // `VARVE_BLESS=1 npx vitest run export-import`, for a new format version only.
  test.runIf(process.env['VARVE_BLESS'] !== undefined)('is written anew', async () => {
    vi.useFakeTimers({ toFake: ['Date'], now: 1_700_000_000_000 });
    const db = await store({ version: 7 } as never);
    for (const [key, value, expires] of entries) {
      await db.set(key, value, expires === undefined ? {} : { expiresIn: expires - Date.now() });
    }
    writeFileSync(file, await bytesOf(db.export()));
  });

  test('has the entries that it was made of', async () => {
    const db = await store({ version: 7 } as never);
    await db.import(chunks(golden, 1));
    expect(await db.count()).toBe(entries.length);
    for (const [key, value, expires] of entries) {
      const entry = await db.getEntry(key);
      expect([entry?.value, entry?.expiresAt?.getTime()]).toStrictEqual([value, expires]);
    }
  });

  test('is written again, byte for byte', async () => {
    const db = await store({ version: 7 } as never);
    await db.import(chunks(golden, 1000));
    vi.spyOn(crypto, 'getRandomValues').mockImplementation((id) => {
      (id as unknown as Uint8Array).set(golden.subarray(8, 24));
      return id;
    });
    const again = await bytesOf(db.export());
    // Except for the sequence, which is the other store's, and the digests that follow from it.
    expect(again.length).toBe(golden.length);
    const [header, first, end] = boundaries(golden) as [number, number, number];
    const unhashed = (bytes: Uint8Array) => [
      bytes.slice(0, 24),
      bytes.slice(32, 40),
      bytes.slice(header, header + 8),
      bytes.slice(header + 16, first - 32),
      bytes.slice(first, first + 8),
      bytes.slice(first + 16, end - 32),
    ];
    expect(unhashed(again)).toStrictEqual(unhashed(golden));
  });
});
