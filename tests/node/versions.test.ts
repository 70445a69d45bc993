/** Tabs that run different versions of an app: newer code upgrades the store, and older code in other tabs writes no more. */

import 'fake-indexeddb/auto';
import { IDBFactory } from 'fake-indexeddb';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import type { Port } from '../../js/src/client/client.ts';
import { EngineHost } from '../../js/src/engine/engine-host.ts';
import { Connection } from '../../js/src/server/connection.ts';
import { EngineServer } from '../../js/src/server/engine-server.ts';
import { codeHere } from '../../js/src/server/later-code.ts';
import { PROTOCOL } from '../../js/src/share/names.ts';
import { openStore } from '../../js/src/store/open.ts';
import type { OpenOptions } from '../../js/src/store/open-options.ts';
import type { Store } from '../../js/src/store/store.ts';
import type { Key } from '../../js/src/types.ts';
import { spawnServer, wasm } from './support/engine.ts';
import { stubOpfs } from './support/fake-opfs.ts';
import { code, collect } from './support/stores.ts';

type Db = Store<Key, unknown>;

const opened: Db[] = [];

beforeEach(() => {
  stubOpfs();
  vi.stubGlobal('indexedDB', new IDBFactory());
});

afterEach(async () => {
  for (const db of opened.splice(0).reverse()) await db.close().catch(() => undefined);
  vi.unstubAllGlobals();
});

async function openTab(options: OpenOptions<Key, unknown> = {}, spawn: () => Port = spawnServer): Promise<Db> {
  const db = await openStore<Key, unknown>('versions', { wasm, memoryBytes: 2 ** 20, ...options }, spawn, {});
  opened.push(db);
  return db;
}

const refused = (write: Promise<unknown>): Promise<void> => expect(write).rejects.toThrow(code('VARVE_VERSION'));

describe.each(['opfs', 'indexeddb'] as const)('in %s', (storage) => {
  test('newer code upgrades behind the last write of older code, which hears of it and writes no more', async () => {
    const heard: unknown[] = [];
    const older = { storage, version: 1, onVersionChange: (versions: unknown) => void heard.push(versions) };
    const [leader, other] = [await openTab(older), await openTab(older)];
    const tool = await openTab({ storage });
    await leader.set('a', 1);
    const last = other.set('b', 2);
    const newer = await openTab({
      storage,
      version: 2,
      upgrade: async (tx) => {
        for (const [key, value] of await collect(tx.entries())) tx.set(key, [value]);
        // The upgrade is under way.
        await refused(leader.set('c', 3));
        await refused(other.set('c', 3));
      },
    });
    await last;
    expect(heard).toStrictEqual([
      { oldVersion: 1, newVersion: 2 },
      { oldVersion: 1, newVersion: 2 },
    ]);
    for (const db of [leader, other]) {
      // A read of the same turn is answered.
      const [read] = await Promise.all([
        db.get('a'),
        refused(db.set('a', 3)),
        refused(db.batch().set('d', 4).commit()),
      ]);
      expect(read).toStrictEqual([1]);
      await refused(db.delete('a', { existed: true }));
      await refused(db.deleteRange({ gte: 'a' }));
      await refused(db.clear());
      await refused(db.update('a', () => 5));
      await refused(db.transaction((tx) => tx.set('a', 6)));
      expect(await db.transaction((tx) => tx.count())).toBe(2);
      await db.flush();
    }
    await expect(other.set('a', 3)).rejects.toThrow('This tab has version 1. Reload it.');
    await tool.set('tool', 1);
    await newer.set('e', 7);
    expect(await collect(leader.entries())).toStrictEqual([
      ['a', [1]],
      ['b', [2]],
      ['e', 7],
      ['tool', 1],
    ]);
    expect(heard).toHaveLength(2);
  });

  test('older code stays out when it leads, and when no newer code is left', async () => {
    const heard: unknown[] = [];
    const first = await openTab({ storage, version: 1 });
    const older = await openTab({ storage, version: 1, onVersionChange: (versions) => void heard.push(versions) });
    const newer = await openTab({ storage, version: 2 });
    await refused(older.set('a', 1));
    await newer.set('a', 2);
    // The next in line leads: it runs older code.
    await first.close();
    await refused(older.set('a', 1));
    await newer.close();
    await refused(older.set('a', 1));
    expect(await older.get('a')).toBe(2);
    expect((await older.stats()).sharing).toMatchObject({ leads: true, clients: 1 });
    expect(heard).toStrictEqual([{ oldVersion: 1, newVersion: 2 }]);
    await refused(openTab({ storage, version: 1 }));
    const reloaded = await openTab({ storage, version: 3 });
    await reloaded.set('a', 3);
    expect(heard).toStrictEqual([
      { oldVersion: 1, newVersion: 2 },
      { oldVersion: 1, newVersion: 3 },
    ]);
  });

  test('older code goes on when the upgrade fails, and hears of the next attempt', async () => {
    const heard: unknown[] = [];
    const onVersionChange = (versions: unknown): void => void heard.push(versions);
    const older = await openTab({ storage, version: 1, onVersionChange });
    const other = await openTab({ storage, version: 1, onVersionChange });
    const failing = openTab({
      storage,
      version: 2,
      upgrade: async (tx) => {
        tx.set('half', 1);
        await refused(other.set('a', 1));
        throw new Error('no such field');
      },
    });
    await expect(failing).rejects.toThrow('no such field');
    await Promise.all([older.set('a', 1), other.set('b', 2)]);
    expect(await collect(older.keys())).toStrictEqual(['a', 'b']);
    expect(heard).toHaveLength(2);
    await openTab({ storage, version: 2 });
    await refused(older.set('a', 1));
    await refused(other.set('a', 1));
    expect(heard).toStrictEqual(Array(4).fill({ oldVersion: 1, newVersion: 2 }));
  });
});

test('a write that is under way when the leader ends is refused by the next one, which runs newer code', async () => {
  let worker: Port | undefined;
  const spawn = (): Port => {
    worker = spawnServer();
    return worker;
  };
  const leader = await openTab({ version: 1 }, spawn);
  const older = await openTab({ version: 1 });
  const newer = await openTab({ version: 2 });
  worker?.terminate?.();
  await refused(older.set('a', 1));
  await refused(leader.set('a', 1));
  await newer.set('a', 2);
  expect(await leader.get('a')).toBe(2);
});

// A tab got VARVE_VERSION for writes that were in the store: the leader before had done them, and their answers were lost with it.
test.each(['opfs', 'indexeddb'] as const)(
  'writes of older code that the former leader did are answered, not refused (%s)',
  async (storage) => {
    let release = (): void => undefined;
    const isReleased = new Promise<void>((resolve) => {
      release = resolve;
    });
    const workers: Port[] = [];
    const spawn = (): Port => {
      const worker = spawnServer();
      const post = worker.postMessage.bind(worker);
      // The second worker of the tab stands in line behind newer code.
      if (workers.push(worker) > 1) worker.postMessage = (...args) => void isReleased.then(() => post(...args));
      return worker;
    };
    const older = await openTab({ storage, version: 1 }, spawn);
    await older.set('b', 2);
    const [worker] = workers as [Port];
    const isLost = new Promise<void>((resolve) => {
      worker.onmessage = ({ data }) => {
        if (!(data instanceof ArrayBuffer)) return;
        worker.terminate?.();
        resolve();
      };
    });
    const writes = [older.set('a', 1), older.delete('b', { existed: true }), older.batch().set('c', 3).commit()];
    await isLost;
    const later = refused(older.set('d', 4));
    const newer = await openTab({ storage, version: 2 }, () => {
      const worker = spawnServer();
      const post = worker.postMessage.bind(worker);
      worker.postMessage = (...args) => {
        post(...args);
        release();
      };
      return worker;
    });
    expect(await Promise.all(writes)).toMatchObject([{ sequence: 3 }, { sequence: 4, existed: true }, { sequence: 5 }]);
    await later;
    expect(await collect(newer.keys())).toStrictEqual(['a', 'c']);
  },
);

test('a tab that the leader refuses does not count as one with newer code', async () => {
  const sent: unknown[][] = [[], [], []];
  const [own, refused, older] = [1, 2, 1].map((version, i) => {
    return new Connection(i + 1, (message) => void sent[i]?.push(message), version);
  }) as [Connection, Connection, Connection];
  const server = new EngineServer(own, undefined, undefined, codeHere);
  const options = { wasm: wasm.href, storage: 'memory', durability: 'memory' } as const;
  server.receive({ type: 'open', id: 1, name: 'versions', options });
  const join = { type: 'join', id: 2, protocol: PROTOCOL, attempt: 1, storage: undefined } as const;
  server.receive({ ...join, client: 2, isLogged: true, version: 2 }, refused);
  server.receive({ ...join, client: 3, isLogged: false, version: 1 }, older);
  await expect.poll(() => sent[2]).toMatchObject([{ type: 'opened' }, { type: 'versionchange', version: 0 }]);
  expect(sent[1]).toMatchObject([{ type: 'failed', error: { code: 'VARVE_LOCKED' } }]);
  server.receive({ type: 'call', id: 3, method: 'stats', args: [] }, older);
  await expect.poll(() => sent[2]?.at(-1)).toMatchObject({ type: 'result', value: { sharing: { clients: 2 } } });
  await server.retire();
});

// The story: a passphrase takes a second to verify, and meanwhile the tab was closed. Then it was let in, and nobody saw it leave: the
// writes of all other tabs were refused, because its code was newer.
test('a tab that is gone before its key is verified does not count', async () => {
  const sent: unknown[][] = [[], [], []];
  const [own, gone, older] = [1, 2, 1].map((version, i) => {
    return new Connection(i + 1, (message) => void sent[i]?.push(message), version);
  }) as [Connection, Connection, Connection];
  let verified = (): void => undefined;
  const verify = vi.spyOn(EngineHost.prototype, 'verifyKey').mockReturnValueOnce(
    new Promise((resolve) => {
      verified = resolve;
    }),
  );
  const server = new EngineServer(own, undefined, undefined, codeHere);
  const options = { wasm: wasm.href, storage: 'memory', durability: 'memory' } as const;
  server.receive({ type: 'open', id: 1, name: 'versions', options });
  const join = { type: 'join', id: 2, protocol: PROTOCOL, attempt: 1, storage: undefined, isLogged: false } as const;
  server.receive({ ...join, client: 2, version: 2 }, gone);
  await expect.poll(() => verify.mock.calls.length).toBe(1);
  await server.leave(gone, true);
  verified();
  server.receive({ ...join, client: 3, version: 1 }, older);
  await expect.poll(() => sent[2]).toMatchObject([{ type: 'opened' }, { type: 'versionchange', version: 0 }]);
  server.receive({ type: 'call', id: 3, method: 'stats', args: [] }, older);
  await expect.poll(() => sent[2]?.at(-1)).toMatchObject({ type: 'result', value: { sharing: { clients: 2 } } });
  await server.retire();
  verify.mockRestore();
});

test.each([{ onVersionChange: () => undefined }, { version: 1, onVersionChange: 1 }])('refuses %o', async (options) => {
  await expect(openTab(options as OpenOptions<Key, unknown>)).rejects.toThrow(code('VARVE_INVALID_ARGUMENT'));
});
