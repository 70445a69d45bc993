/**
 * Checks of what callers pass: names, options of `open`, durability levels, limits.
 *
 * Invariant: every value that passes these checks is safe to send; any other gives `VARVE_INVALID_ARGUMENT` with a message that
 * explains what to do.
 */

import { checkCodecs } from '../codec/formats.ts';
import { isWellFormed } from '../codec/text.ts';
import { invalid } from '../errors.ts';
import { COMPACT, checkDurability, checkOptions, type Known, RANGE, shown, WAIT, WRITE } from '../options.ts';
import type { ExportOptions } from '../portable/types.ts';
import type { EngineOptions } from '../protocol/messages.ts';
import { isAdapter, LOCK_TIMEOUT_DEFAULT } from '../storage/adapter.ts';
import type { CheckOptions, ClosedStoreOptions, RepairOptions } from '../tools/types.ts';
import type { CommonOpenOptions, DeleteStoreOptions, ListStoresOptions } from '../types.ts';
import type { OpenOptions } from './open-options.ts';

/** Longest name of a store, in the percent-encoded form that names its directory. */
const NAME_BYTES_MAX = 200;
/** Bounds of the memory budget, in bytes. */
const MEMORY_BYTES_MIN = 2 ** 20;
const MEMORY_BYTES_MAX = 2 ** 31;
/** The longest time of a timer, in milliseconds. */
const TIMER_MS_MAX = 2 ** 31 - 1;

/** The options of every `open`. */
export const OPEN_ANY: Known<CommonOpenOptions<never, never>> = {
  ...WRITE,
  storage: 1,
  lockTimeout: 1,
  memoryBytes: 1,
  historyBytes: 1,
  keys: 1,
  values: 1,
  version: 1,
  upgrade: 1,
  encryption: 1,
  wasm: 1,
};

/** The options of `open` of `varve/inline`. */
export const OPEN_INLINE: Known<Omit<OpenOptions<never, never>, 'worker'>> = {
  ...OPEN_ANY,
  cache: 1,
  onVersionChange: 1,
};

/** The options of `open` of `varve`. */
export const OPEN: Known<OpenOptions<never, never>> = { ...OPEN_INLINE, worker: 1 };

export const PRELOAD: Known<Pick<CommonOpenOptions<never, never>, 'wasm'>> = { wasm: 1 };
export const LIST: Known<ListStoresOptions> = { ...WAIT, storage: 1 };
export const DELETE: Known<DeleteStoreOptions> = { ...LIST, lockTimeout: 1 };
export const CHECK: Known<CheckOptions> = { ...WAIT, ...COMPACT, tools: 1 };
export const CHECK_CLOSED: Known<ClosedStoreOptions & DeleteStoreOptions> = { ...DELETE, ...CHECK, encryption: 1 };
export const REPAIR: Known<RepairOptions & DeleteStoreOptions> = { ...CHECK_CLOSED, into: 1, dropOlder: 1 };
export const EXPORT: Known<ExportOptions<never>> = { ...RANGE, ...WAIT, ...COMPACT, encryption: 1 };

/** Throws unless the name can name a store. */
export function checkName(name: unknown): asserts name is string {
  const usable = typeof name === 'string' && name !== '' && isWellFormed(name);
  // Directories have capital letters in escaped form (storage/names.ts).
  if (!usable || encodeURIComponent(name.replace(/[A-Z]/g, '/')).length > NAME_BYTES_MAX) {
    throw invalid(
      `A store's name is a string of 1 to ${NAME_BYTES_MAX} bytes when percent-encoded, also its capital letters.`,
    );
  }
}

/** How long to wait for a store that is open elsewhere, in milliseconds. */
export function lockTimeoutOf({ lockTimeout = LOCK_TIMEOUT_DEFAULT }: Pick<CommonOpenOptions, 'lockTimeout'>): number {
  if (typeof lockTimeout === 'number' && lockTimeout >= 0 && lockTimeout <= TIMER_MS_MAX) return lockTimeout;
  throw invalid(`lockTimeout is a number of milliseconds from 0 to ${TIMER_MS_MAX}, not ${shown(lockTimeout)}.`);
}

/** Throws unless an option is a number of bytes. */
function checkBytes(option: string, bytes: number, min = 0, max?: number): void {
  if (Number.isInteger(bytes) && bytes >= min && !(bytes > (max ?? bytes))) return;
  throw invalid(`${option} is a number of bytes from ${min}${max ? ` to ${max}` : ''}, not ${shown(bytes)}.`);
}

/** The options of an `open` that has the `known` ones, checked, and in the form that is sent to the worker. */
export function resolveOptions<K, V>(
  name: string,
  options: CommonOpenOptions<K, V>,
  known: Readonly<Record<string, 1>>,
): EngineOptions & { readonly lockTimeout: number } {
  checkName(name);
  checkOptions(options, known);
  const { durability, storage, memoryBytes, historyBytes, wasm, version, upgrade } = options;
  checkDurability(durability);
  const kind = isAdapter(storage) ? undefined : storage;
  const lockTimeout = lockTimeoutOf(options);
  if (memoryBytes !== undefined) checkBytes('memoryBytes', memoryBytes, MEMORY_BYTES_MIN, MEMORY_BYTES_MAX);
  if (historyBytes !== undefined) checkBytes('historyBytes', historyBytes);
  checkCodecs(options);
  checkVersion(version, upgrade);
  const place = wasm === undefined ? undefined : wasmPlace(wasm);
  return { durability, storage: kind, lockTimeout, memoryBytes, historyBytes, wasm: place, version };
}

/** Throws unless the options that only asynchronous stores have are right. */
export function checkOwn({
  cache,
  version,
  onVersionChange,
}: Pick<OpenOptions, 'cache' | 'version' | 'onVersionChange'>): void {
  if (onVersionChange !== undefined && (version === undefined || typeof onVersionChange !== 'function')) {
    throw invalid('onVersionChange is a function, and needs a version.');
  }
  if (cache !== undefined && typeof cache !== 'boolean') throw invalid(`cache is true or false, not ${shown(cache)}.`);
}

/** Throws unless it is a version; undefined is allowed if there is no upgrade function. */
function checkVersion(version: unknown, upgrade: unknown): void {
  if (version === undefined && upgrade !== undefined) {
    throw invalid('upgrade needs a version: open(name, { version: 2, upgrade }).');
  }
  if (version !== undefined && !(Number.isSafeInteger(version) && (version as number) > 0)) {
    throw invalid(`version is an integer from 1, not ${shown(version)}.`);
  }
  if (upgrade !== undefined && typeof upgrade !== 'function') throw invalid('upgrade is a function.');
}

/** A relative URL is relative to the page, but the worker would resolve it against the worker's script: so it is resolved here. */
export function wasmPlace(wasm: string | URL | WebAssembly.Module): string | WebAssembly.Module {
  if (typeof wasm !== 'string' && !(wasm instanceof URL)) return wasm;
  return new URL(wasm, globalThis.location?.href).href;
}
