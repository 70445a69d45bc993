/**
 * Repairs a store that is not open: salvages the files of one name into a new store with another name. Or only checks it.
 *
 * Order: the damaged store opened, only ever read -> the new one -> salvage -> both closed. Invariant: a repair that fails
 * removes the new store, and if the browser crashes during it, the new store does not open (its manifest is written last). In
 * neither case does an incomplete store look like a complete one.
 */

import { decodeKey } from '../codec/key-reader.ts';
import { erase } from '../encryption/data-keys.ts';
import { unlock } from '../encryption/slots.ts';
import type { UserKey } from '../encryption/user-key.ts';
import { VarveError } from '../errors.ts';
import type { RepairRequest } from '../protocol/messages.ts';
import { nextTurn } from '../runtime/turn.ts';
import type { StorageAdapter } from '../storage/adapter.ts';
import { commitFailure } from '../storage/commit-failure.ts';
import { commitsOf } from '../storage/commits.ts';
import { isDeferred, type ManagedDevice, SLOT_DATA_OFFSET } from '../storage/device.ts';
import { findInOpfs, isInIndexedDb } from '../storage/find.ts';
import { MemoryDevice } from '../storage/memory.ts';
import { OpfsUnavailable } from '../storage/opfs-directory.ts';
import { opfsStorage } from '../storage/opfs-storage.ts';
import { listStores } from '../storage/stores.ts';
import type { Key, Progress } from '../types.ts';
import { encodeKeys } from '../wasm/data-keys.ts';
import { readSlot, runCheck, survey } from './check.ts';
import { loadTools, Tools } from './instance.ts';
import { fill, readable } from './memory-copy.ts';
import type { CheckReport, LostPart, RepairReport } from './types.ts';

/** How long the removal of a failed new store may wait. All devices that the repair opened are closed by then. */
const REMOVE_WAIT_MS = 5000;
const SLICE_MS = 8;
/** See `CheckInput.logEnd`. */
const NOT_OPEN = -2;

/** The callback and the signal of a running repair. */
export interface RepairWatch {
  onProgress?: ((progress: Progress) => void) | undefined;
  signal?: AbortSignal | undefined;
}

/** Repairs a store: see `repairStore`. */
export type RepairStore = typeof repairStore;

/** The report of the module: its keys are in hexadecimal. */
interface RawReport extends Omit<RepairReport, 'name' | 'lost'> {
  readonly lost: readonly (Omit<LostPart, 'from' | 'to'> & { readonly from?: string; readonly to?: string })[];
}

/**
 * Salvages the store `name` into a new store of the same storage, or checks it if the request names none. The storage is the given
 * adapter, or else that of the origin which has the store. IndexedDB is searched only if its adapter is passed in.
 */
export async function repairStore(
  name: string,
  request: RepairRequest,
  watch: RepairWatch,
  adapter: StorageAdapter | undefined,
  indexedDb?: StorageAdapter,
): Promise<RepairReport | CheckReport> {
  const { into, lockTimeout } = request;
  const module = await loadTools(request.tools);
  // If one storage of the origin has a store with this name, the name is taken in all of them.
  const names = adapter === undefined ? await listStores() : await adapter.list();
  if (!names.includes(name)) throw new VarveError('VARVE_NOT_FOUND', `There is no store "${name}".`);
  const storage = adapter ?? (await storageOf(name, indexedDb));
  const devices: ManagedDevice[] = [];
  const open = async (one: string): Promise<ManagedDevice> => {
    const device = await storage.open(one, { lockTimeout, signal: watch.signal });
    devices.push(device);
    return device;
  };
  const taken = (): VarveError =>
    new VarveError('VARVE_EXISTS', `There is a store "${into}" already: delete it, or name another one as into.`);
  /** The new store, until it is whole. */
  let unfinished: string | undefined;
  try {
    if (into === undefined) return await checkDevice(module, await open(name), request.key, watch);
    if (names.includes(into)) throw taken();
    const source = await open(name);
    const target = await open(into);
    // Somebody else made the store after the names were listed.
    if (!isEmpty(target)) throw taken();
    unfinished = into;
    const made = isDeferred(target) ? new MemoryDevice({ slotsMax: target.slotsMax }) : target;
    const report = await salvage(module, await readable(source), made, {
      dropOlder: request.dropOlder,
      user: request.key,
      ...watch,
    });
    await fill(target, made);
    unfinished = undefined;
    return { name: into, ...report };
  } catch (error) {
    if (error instanceof OpfsUnavailable) throw new VarveError('VARVE_UNSUPPORTED', error.message, { cause: error });
    throw watch.signal?.aborted ? watch.signal.reason : commitFailure(error);
  } finally {
    for (const device of devices) await device.closeAll();
    if (unfinished !== undefined) await storage.delete(unfinished, { lockTimeout: REMOVE_WAIT_MS }).catch(() => false);
  }
}

/** Whether no slot was written. A new slot may already have a length, and contains only zeros. */
function isEmpty(device: ManagedDevice): boolean {
  for (let slot = 0; slot < device.count(); slot++) {
    if (device.size(slot) === 0) continue;
    // The bytes of a device that commits later may not be in memory.
    if (isDeferred(device)) return false;
    const page = new Uint8Array(SLOT_DATA_OFFSET);
    device.read(slot, page, 0);
    if (page.some((byte) => byte !== 0)) return false;
  }
  return true;
}

/** Salvages the slots of one device into the empty slots of another. */
async function salvage(
  module: WebAssembly.Module,
  source: ManagedDevice,
  target: ManagedDevice,
  { dropOlder, user, onProgress, signal }: RepairWatch & { dropOlder: boolean; user: UserKey | undefined },
): Promise<Omit<RepairReport, 'name'>> {
  const tools = new Tools(module, [source, target]);
  const keys = user === undefined ? new Uint8Array(0) : await keysOf(user, () => tools.keySlots(0));
  tools.put(Uint8Array.of(...crypto.getRandomValues(new Uint8Array(24)), ...keys));
  keys.fill(0);
  tools.run((exports) => exports.repair_begin(0, 1, dropOlder ? 1 : 0, target.slotsMax));
  let sliceEnd = 0;
  for (let more = true; more; ) {
    more = tools.run((exports) => exports.repair_step()) === 1;
    if (performance.now() < sliceEnd) continue;
    onProgress?.(tools.progress);
    await nextTurn();
    signal?.throwIfAborted();
    sliceEnd = performance.now() + SLICE_MS;
  }
  onProgress?.(tools.progress);
  const { lost, ...report } = tools.report<RawReport>();
  return { ...report, lost: lost.map(({ from, to, ...part }) => ({ ...part, from: keyOf(from), to: keyOf(to) })) };
}

/** Checks the store in a device that nobody writes to. Its log may end with a record that a crash cut off. */
async function checkDevice(
  module: WebAssembly.Module,
  device: ManagedDevice,
  user: UserKey | undefined,
  watch: RepairWatch,
): Promise<CheckReport> {
  const here = async <T>(call: () => T): Promise<T> => commitsOf(device).resident(call);
  const tools = new Tools(module, [device]);
  const keys = user && (await keysOf(user, () => here(() => tools.keySlots(0))));
  const input = { ...(await here(() => survey(device, NOT_OPEN))), keys };
  return runCheck(module, input, (slot, at, length) => here(() => readSlot(device, slot, at, length)), watch);
}

/** The data keys of the store, in the form for the tools. Throws `VARVE_KEY` if the key does not open its slots. */
async function keysOf(
  user: UserKey,
  find: () => Uint8Array | undefined | Promise<Uint8Array | undefined>,
): Promise<Uint8Array> {
  const slots = await find();
  if (slots === undefined)
    throw new VarveError(
      'VARVE_KEY',
      'The store has no key slots, or they are damaged. Check or repair it without a key.',
    );
  const keys = await unlock(slots, user);
  try {
    return encodeKeys({ keys, slots });
  } finally {
    erase(keys);
  }
}

/** A key as it was passed to `set`, or its bytes if they are not a key: an index may name places between keys. */
function keyOf(hex: string | undefined): Key | undefined {
  if (hex === undefined) return undefined;
  const bytes = Uint8Array.from(hex.match(/../g) ?? [], (pair) => Number.parseInt(pair, 16));
  try {
    return decodeKey(bytes);
  } catch {
    return bytes;
  }
}

/** The storage of the origin that has the store, or else the origin private file system. */
async function storageOf(name: string, indexedDb: StorageAdapter | undefined): Promise<StorageAdapter> {
  if ((await findInOpfs(name)) === undefined && (await isInIndexedDb(name))) {
    if (indexedDb === undefined) {
      throw new VarveError(
        'VARVE_UNSUPPORTED',
        'A store in IndexedDB is repaired by repair() of "varve", not of "varve/synchronous".',
      );
    }
    return indexedDb;
  }
  return opfsStorage;
}
