/**
 * Chooses the storage of a store, and reports the reason when it is not the best one.
 *
 *     OPFS  ->  IndexedDB  ->  memory
 *
 * Invariant: never silent, and never a second store beside one of the same name: a store that is in one storage is opened there,
 * or not at all. Memory replaces the others only where the browser provides neither. A locked store, a full origin or a storage that
 * fails is an error instead, because memory would look like an empty store. A server is an error, too: its requests would share the
 * memory.
 */

import { invalid, VarveError } from '../errors.ts';
import type { StorageKind, StorageReport } from '../types.ts';
import type { BufferedDevice } from './buffered/device.ts';
import type { ManagedDevice } from './device.ts';
import { findInOpfs, insist, isInIndexedDb, isLasting } from './find.ts';
import { MemoryDevice } from './memory.ts';
import { OpfsDevice, type OpfsDeviceOptions } from './opfs.ts';
import { hasSyncHandles, outOfReach } from './opfs-realm.ts';
import { Unavailable } from './unavailable.ts';

/** The device of an open store, and the report about its storage. */
export interface OpenedDevice {
  readonly device: ManagedDevice;
  readonly report: StorageReport;
}

/** How a store in IndexedDB is opened. A caller that needs every read at once cannot open one. */
export type OpenIndexedDb = (name: string) => Promise<BufferedDevice>;

/** Stores in IndexedDB, whose code may be loaded at the first one. */
export interface IndexedDbStores {
  readonly open: OpenIndexedDb;
  /** Loads the code now, so that a later opening does not need the network. */
  readonly load?: () => Promise<unknown>;
}

/**
 * Opens the requested storage; without a `kind`, the one that the store is in, or the best one for a new store.
 * @throws `VARVE_INVALID_ARGUMENT` for an unknown storage; `VARVE_UNSUPPORTED` when the requested storage, or the one that has the
 * store, is unavailable here; `VARVE_UNAVAILABLE` while one that may have the store does not answer.
 */
export async function openDevice(
  name: string,
  kind: StorageKind | undefined,
  options: OpfsDeviceOptions,
  openIndexedDb: OpenIndexedDb = noIndexedDb,
): Promise<OpenedDevice> {
  if (kind === 'memory') return { device: new MemoryDevice(), report: { kind } };
  if (kind !== undefined && kind !== 'opfs' && kind !== 'indexeddb') {
    throw invalid(`storage is 'opfs', 'indexeddb', 'memory' or an adapter, not '${kind}'.`);
  }
  if (isServer()) throw onServer(name);
  if (kind === undefined) return openWhereItIs(name, options, openIndexedDb);
  try {
    const device = await (kind === 'opfs' ? OpfsDevice.open(name, options) : openIndexedDb(name));
    return { device, report: { kind } };
  } catch (error) {
    if (!(error instanceof Unavailable)) throw error;
    throw new VarveError('VARVE_UNSUPPORTED', error.message, { cause: error });
  }
}

/** Whether this is not a browser. Every realm of a browser has IndexedDB or `navigator.storage`, though it may refuse access. */
function isServer(): boolean {
  return !('indexedDB' in globalThis) && globalThis.navigator?.storage === undefined;
}

function onServer(name: string): VarveError {
  return new VarveError(
    'VARVE_UNSUPPORTED',
    `This is a server, or at least no browser (it has neither IndexedDB nor navigator.storage), so the store "${name}" has no place here. Open it in the browser, in an effect or an event handler and not while a page is rendered, or give it a storage, such as files() of varve/fs. A store that lives as long as the process has storage: 'memory'.`,
  );
}

async function openWhereItIs(
  name: string,
  options: OpfsDeviceOptions,
  openIndexedDb: OpenIndexedDb,
): Promise<OpenedDevice> {
  const directory = await findInOpfs(name);
  if (directory !== undefined) {
    if (!hasSyncHandles()) throw outOfReach(name);
    return orNowhere(name, 'the origin private file system', async () => ({
      device: await OpfsDevice.open(name, { ...options, directory }),
      report: { kind: 'opfs' },
    }));
  }
  if (await isInIndexedDb(name)) {
    return orNowhere(name, 'IndexedDB', async () => ({
      device: await openIndexedDb(name),
      report: { kind: 'indexeddb', reason: 'The store was made in IndexedDB, and stays there.' },
    }));
  }
  const reasons: string[] = [];
  const rungs = [
    ['opfs', () => OpfsDevice.open(name, options)],
    ['indexeddb', () => openIndexedDb(name)],
  ] as const;
  for (const [kind, open] of rungs) {
    const device = await insist<ManagedDevice>(open, (error) => {
      if (!(error instanceof Unavailable)) throw error;
      if (kind === 'indexeddb' && !isLasting(error.cause)) return false;
      reasons.push(error.message);
      return true;
    });
    if (device !== undefined)
      return { device, report: reasons.length === 0 ? { kind } : { kind, reason: reasons.join(' ') } };
  }
  return { device: new MemoryDevice(), report: { kind: 'memory', reason: reasons.join(' ') } };
}

async function noIndexedDb(): Promise<never> {
  throw new Unavailable('IndexedDB answers later, which a synchronous store cannot wait for: use open() of "varve".');
}

async function orNowhere(name: string, where: string, open: () => Promise<OpenedDevice>): Promise<OpenedDevice> {
  try {
    return await open();
  } catch (error) {
    if (!(error instanceof Unavailable)) throw error;
    throw new VarveError('VARVE_UNSUPPORTED', `The store "${name}" is in ${where}. ${error.message}`, { cause: error });
  }
}
