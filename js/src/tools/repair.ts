/**
 * Repairing a store: from the files of one name into a new store of another.
 *
 * Order: both locks -> the damaged store's slots, only ever read -> the new store's -> salvage -> its slots closed -> locks
 * released. Invariant: a repair that fails removes what it made, and a browser that dies in it leaves something that does
 * not open (its manifest comes last): in neither case anything that could be taken for the whole.
 */

import { decodeKey } from '../codec/key-reader.ts';
import { abortError, VarveError } from '../errors.ts';
import type { ManagedDevice } from '../storage/device.ts';
import { acquireLock, type StoreLock } from '../storage/lock.ts';
import { OpfsDevice } from '../storage/opfs.ts';
import { OpfsUnavailable, storeDirectory } from '../storage/opfs-directory.ts';
import { deleteStore } from '../storage/stores.ts';
import type { Key } from '../types.ts';
import type { WasmSource } from '../wasm/compile.ts';
import { nextTurn } from '../worker/turn.ts';
import { loadTools, Tools } from './instance.ts';
import type { LostPart, RepairReport, ToolsProgress } from './types.ts';

const HANDLES_WAIT_MS = 5000;
const SLICE_MS = 8;

/** What a repair is told, as it crosses to the worker. */
export interface RepairRequest {
  readonly into: string;
  readonly strict: boolean;
  readonly wait: number;
  readonly tools?: WasmSource | undefined;
}

/** What a repair watches while it runs. */
export interface RepairWatch {
  onProgress?: ((progress: ToolsProgress) => void) | undefined;
  signal?: AbortSignal | undefined;
}

/** The report as the module writes it: keys in hexadecimal. */
interface RawReport extends Omit<RepairReport, 'store' | 'lost'> {
  readonly lost: readonly (Omit<LostPart, 'from' | 'to'> & { readonly from?: string; readonly to?: string })[];
}

/** Salvages the store `name` into a new store. */
export async function repairStore(name: string, request: RepairRequest, watch: RepairWatch): Promise<RepairReport> {
  const { into, wait } = request;
  if (into === name) throw invalid('A store is not repaired in place: name another one as into.');
  const module = await loadTools(request.tools);
  const locks: StoreLock[] = [];
  const devices: ManagedDevice[] = [];
  let isMade = false;
  let isDone = false;
  try {
    for (const one of [name, into]) locks.push(await acquireLock(one, { wait, signal: watch.signal }));
    if ((await directoryOf(name)) === undefined) throw invalid(`There is no store "${name}".`);
    if ((await directoryOf(into)) !== undefined) {
      throw invalid(`There is a store "${into}" already: delete it, or name another one as into.`);
    }
    const options = { wait: HANDLES_WAIT_MS, signal: watch.signal };
    const source = await OpfsDevice.open(name, options);
    devices.push(source);
    isMade = true;
    const target = await OpfsDevice.open(into, options);
    devices.push(target);
    const report = await salvage(module, source, target, { strict: request.strict, ...watch });
    isDone = true;
    return { store: into, ...report };
  } catch (error) {
    if (error instanceof OpfsUnavailable) throw new VarveError('VARVE_UNSUPPORTED', error.message, { cause: error });
    throw watch.signal?.aborted ? abortError(watch.signal) : error;
  } finally {
    for (const device of devices) await device.closeAll();
    for (const lock of locks) lock.release();
    if (isMade && !isDone) await deleteStore(into, HANDLES_WAIT_MS).catch(() => false);
  }
}

/** Salvages the slots of one device into the empty slots of another. */
export async function salvage(
  module: WebAssembly.Module,
  source: ManagedDevice,
  target: ManagedDevice,
  { strict, onProgress, signal }: RepairWatch & { strict: boolean },
): Promise<Omit<RepairReport, 'store'>> {
  const tools = new Tools(module, [source, target]);
  tools.put(crypto.getRandomValues(new Uint8Array(24)));
  tools.run((exports) => exports.repair_begin(0, 1, strict ? 1 : 0, target.slotsMax));
  let sliceEnd = 0;
  for (let more = true; more; ) {
    const wanted = tools.exports.repair_wanted();
    if (wanted > 0 && (await target.grow(wanted)) > 0) tools.run((exports) => exports.repair_added());
    more = tools.run((exports) => exports.repair_step()) === 1;
    if (performance.now() < sliceEnd) continue;
    onProgress?.(tools.progress);
    await nextTurn();
    if (signal?.aborted) throw abortError(signal);
    sliceEnd = performance.now() + SLICE_MS;
  }
  onProgress?.(tools.progress);
  const { lost, ...report } = tools.report<RawReport>();
  return { ...report, lost: lost.map(({ from, to, ...part }) => ({ ...part, from: keyOf(from), to: keyOf(to) })) };
}

async function directoryOf(name: string): Promise<FileSystemDirectoryHandle | undefined> {
  return storeDirectory(name, { create: false });
}

/** A key as it was given to `set`; its bytes where they are no key: an index may name places between keys. */
function keyOf(hex: string | undefined): Key | undefined {
  if (hex === undefined) return undefined;
  const bytes = Uint8Array.from(hex.match(/../g) ?? [], (pair) => Number.parseInt(pair, 16));
  try {
    return decodeKey(bytes);
  } catch {
    return bytes;
  }
}

function invalid(message: string): VarveError {
  return new VarveError('VARVE_INVALID_ARGUMENT', message);
}
