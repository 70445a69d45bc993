/**
 * The places where the model fuzz runs histories in Node: files, IndexedDB and OPFS on their stand-ins, and files through the synchronous
 * API. On the stand-ins tabs share a store as in a browser, and their workers can be ended.
 *
 * Invariant: time is the real time plus the time that the test let pass; everything that a place set up is gone after `end`.
 */

import 'fake-indexeddb/auto';
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { IDBFactory } from 'fake-indexeddb';
import { vi } from 'vitest';
import type { Port } from '../../../js/src/client/client.ts';
import { files } from '../../../js/src/fs.ts';
import { deleteStore, listStores, open } from '../../../js/src/index.ts';
import { escapeName } from '../../../js/src/storage/names.ts';
import { openStore } from '../../../js/src/store/open.ts';
import { deleteNamed } from '../../../js/src/store/requests.ts';
import * as sync from '../../../js/src/synchronous.ts';
import type { Key, StorageKind } from '../../../js/src/types.ts';
import type { OpenSpec } from '../../support/api/history.ts';
import type { Place } from '../../support/api/run.ts';
import type { AnyStore } from '../../support/api/singles.ts';
import { spawnServer, tools, wasm } from './engine.ts';
import { FakeFileHandle, FakeLocks, FakeOpfs } from './fake-opfs.ts';

/** A place that is set up for one test. */
export interface NodePlace extends Place {
  end(): void;
}

const { now } = Date;

/** A clock that can be moved ahead. */
function clock() {
  let ahead = 0;
  vi.spyOn(Date, 'now').mockImplementation(() => now.call(Date) + ahead);
  const advance = (ms: number): void => {
    ahead += ms;
  };
  return { advance, tools };
}

function options({ memoryBytes, durability, cache }: OpenSpec, more: object = {}) {
  return { wasm, memoryBytes, durability, cache, ...more };
}

/** A folder of stores in files, and of foreign files in it. */
class Folder {
  readonly path = mkdtempSync(join(tmpdir(), 'varve-fuzz-'));
  readonly #littered = new Set<string>();

  end(): void {
    rmSync(this.path, { recursive: true, force: true });
  }

  litter(name: string): void {
    const store = join(this.path, escapeName(name));
    this.#littered.add(store);
    mkdirSync(join(this.path, 'photos'), { recursive: true });
    for (const path of [this.path, join(this.path, 'photos'), store]) writeFileSync(join(path, '.DS_Store'), 'foreign');
    writeFileSync(join(this.path, 'notes'), 'foreign');
    const link = join(store, 'backup');
    if (!existsSync(link)) symlinkSync(join(this.path, 'notes'), link);
  }

  /** Throws unless only stores are listed, and all of them. */
  check(name: string, listed: readonly string[]): void {
    const strangers = listed.filter((one) => one !== name && one !== `${name} copy`);
    if (!listed.includes(name) || strangers.length > 0) throw new Error(`these are listed as stores: ${listed}`);
  }

  /** Removes a store by `remove`, which must report what it leaves. */
  async remove(name: string, remove: () => unknown, list: () => unknown): Promise<void> {
    const store = join(this.path, escapeName(name));
    const wanted = this.#littered.delete(store) ? 'VARVE_IO' : 'true';
    const result = await Promise.resolve()
      .then(remove)
      .then(String, (error) => String(error.code ?? error));
    const left = existsSync(store) ? readdirSync(store).sort().join(', ') : '';
    const isListed = ((await list()) as string[]).includes(name);
    rmSync(store, { recursive: true, force: true });
    if (result !== wanted) throw new Error(`deleting the store gave ${result} instead of ${wanted}`);
    if (left !== (wanted === 'true' ? '' : '.DS_Store, backup') || isListed) {
      throw new Error(`a store that was deleted leaves ${left}${isListed ? ', and is listed' : ''}`);
    }
  }

  moveAway(name: string): () => void {
    const [store, away] = [join(this.path, escapeName(name)), join(this.path, 'taken.away')];
    const isLittered = this.#littered.delete(store);
    renameSync(store, away);
    return () => {
      if (isLittered) this.#littered.add(store);
      rmSync(store, { recursive: true, force: true });
      renameSync(away, store);
    };
  }
}

/** Stores in files, in a temporary folder. */
export function filePlace(): NodePlace {
  const folder = new Folder();
  const storage = files(folder.path);
  const list = () => listStores({ storage });
  return {
    ...clock(),
    open: (name, spec, more) => open(name, { storage, ...options(spec, more) }),
    remove: (name) => folder.remove(name, () => deleteStore(name, { storage }), list),
    litter: async (name) => {
      folder.litter(name);
      folder.check(name, await list());
    },
    moveAway: (name) => folder.moveAway(name),
    end: () => folder.end(),
  };
}

/** The same through `varve/synchronous`. */
export function syncPlace(): NodePlace {
  const folder = new Folder();
  const storage = files(folder.path);
  const list = () => sync.listStores({ storage });
  return {
    ...clock(),
    open: (name, { memoryBytes, durability }, more) =>
      sync.open(name, { storage, wasm, memoryBytes, durability, ...more }),
    remove: (name) => folder.remove(name, () => sync.deleteStore(name, { storage }), list),
    litter: async (name) => {
      folder.litter(name);
      folder.check(name, await list());
    },
    moveAway: (name) => folder.moveAway(name),
    end: () => folder.end(),
  };
}

/** A tab, and its worker. */
interface Tab {
  worker: Port | undefined;
  isDead: boolean;
  /** Bytes of the frames that it sent. */
  sent: number;
}

/** Stores that tabs share, on a stand-in of a browser's storage; `onDeath` closes everything that a dead worker had open. */
function tabsOf(storage: StorageKind, putUp: () => object, onDeath?: () => void): NodePlace {
  const tabs = new Map<AnyStore, Tab>();
  const channels = new Set<BroadcastChannel>();
  vi.stubGlobal(
    'BroadcastChannel',
    class extends BroadcastChannel {
      constructor(name: string) {
        super(name);
        channels.add(this);
      }

      override postMessage(message: unknown): void {
        // A dead tab sends nothing.
        if (channels.has(this)) super.postMessage(message);
      }

      override close(): void {
        channels.delete(this);
        super.close();
      }
    },
  );
  const begin = (): unknown => vi.stubGlobal('navigator', { ...putUp(), locks: new FakeLocks() });
  const silent: () => Port = () => ({ onmessage: null, postMessage: () => undefined });
  begin();
  return {
    ...clock(),
    async open(name, spec, more) {
      const tab: Tab = { worker: undefined, isDead: false, sent: 0 };
      const spawn = (): Port => {
        if (tab.isDead) return silent();
        const worker = spawnServer();
        const { postMessage } = worker;
        worker.postMessage = (message, transfer) => {
          if (message instanceof ArrayBuffer) tab.sent += message.byteLength;
          postMessage(message, transfer);
        };
        tab.worker = worker;
        return worker;
      };
      const db = await openStore<Key, unknown>(name, { storage, ...options(spec, more) }, spawn, {});
      tabs.set(db, tab);
      return db;
    },
    remove: (name) => deleteNamed(name, {}, spawnServer),
    sent: (db) => tabs.get(db)?.sent ?? 0,
    endWorker(db) {
      tabs.get(db)?.worker?.terminate?.();
      onDeath?.();
    },
    ...(onDeath === undefined
      ? {}
      : {
          kill() {
            for (const channel of [...channels]) channel.close();
            for (const [db, tab] of tabs) {
              tab.isDead = true;
              tab.worker?.terminate?.();
              // It only ends its timers.
              db.close()?.catch(() => undefined);
            }
            tabs.clear();
            onDeath();
            begin();
          },
        }),
    end: () => undefined,
  };
}

/** Stores in IndexedDB, whose device commits later. */
export function indexedDbPlace(): NodePlace {
  vi.stubGlobal('indexedDB', new IDBFactory());
  return tabsOf('indexeddb', () => ({}));
}

/** Stores in OPFS, with a compactor beside the engine. */
export function opfsPlace(): NodePlace {
  const opfs = new FakeOpfs();
  vi.stubGlobal('FileSystemFileHandle', FakeFileHandle);
  vi.stubGlobal('indexedDB', new IDBFactory());
  return tabsOf(
    'opfs',
    () => ({ storage: opfs.storage }),
    () => opfs.killWorkers(),
  );
}
