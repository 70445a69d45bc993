/**
 * Shared by the engines: their common traits, the versions of the libraries, and the files that a library fetches, which are
 * in peers/NAME beside the page (scripts/peers.mjs copies them there).
 *
 * Invariant: nothing comes from another origin. A wasm file is compiled once in each thread: opening a second store costs a
 * peer what it costs its users.
 */

import { ABILITIES, type Ability, type Access, type Engine, type SessionOptions } from '../core/engine.ts';

/** From each library's package.json; only the built pages have it (scripts/peers.mjs). */
declare const PEER_VERSIONS: Readonly<Record<string, string>>;

const ACCESSES: readonly Access[] = ['worker', 'page', 'inflight'];

type Usual = 'role' | 'accesses' | 'abilities' | 'durabilities';

/** A peer that is called in every way, at both levels, with every ability but those in `without`, unless `traits` differ. */
export function engineOf(traits: Omit<Engine, Usual> & Partial<Engine>, ...without: readonly Ability[]): Engine {
  return {
    role: 'peer',
    version: typeof PEER_VERSIONS === 'undefined' ? undefined : PEER_VERSIONS[traits.name],
    accesses: ACCESSES,
    abilities: ABILITIES.filter((ability) => !without.includes(ability)),
    durabilities: ['relaxed', 'strict'],
    ...traits,
  };
}

export const openOptions = ({ durability, memoryBytes, storage }: SessionOptions) => ({
  durability,
  memoryBytes,
  storage,
});

export function assetUrl(peer: string, file: string): string {
  return new URL(`./peers/${peer}/${file}`, import.meta.url).href;
}

const compiled = new Map<string, Promise<WebAssembly.Module>>();

export function compiledAsset(peer: string, file: string): Promise<WebAssembly.Module> {
  const url = assetUrl(peer, file);
  const module = compiled.get(url) ?? WebAssembly.compileStreaming(fetch(url));
  compiled.set(url, module);
  return module;
}

/** Whether this thread is a worker, which can open files in OPFS itself. */
export const inWorker = (): boolean => typeof document === 'undefined';
