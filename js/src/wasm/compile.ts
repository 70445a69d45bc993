/**
 * Fetches and compiles a wasm file; the engine once for each realm.
 *
 * Invariant: a module that is passed in compiled is not compiled again; the error for a file that cannot be loaded names its
 * location and the option that changes it. The engine's file is looked for beside this module (`varve.wasm`), which bundlers see
 * and copy.
 */

import { VarveError } from '../errors.ts';

/** Where a wasm file comes from: its URL, or a module compiled already. */
export type WasmSource = string | URL | WebAssembly.Module;

/** The engines that were loaded here, by their location. */
const loading = new Map<string, Promise<WebAssembly.Module>>();

/** The compiled engine, loaded at the first call for its location. */
export async function loadEngine(source?: WasmSource): Promise<WebAssembly.Module> {
  if (source instanceof WebAssembly.Module) return source;
  const place = String(source ?? '');
  const module = loading.get(place) ?? compile(source ?? (() => new URL('./varve.wasm', import.meta.url)), 'wasm');
  loading.set(place, module);
  try {
    return await module;
  } catch (error) {
    loading.delete(place);
    throw error;
  }
}

/**
 * Compiles a wasm file; `option` is the name of the option with its location. A function returns the default location beside this
 * script: some runtimes (workerd) do not know where that is.
 */
export async function compile(source: WasmSource | (() => URL), option: 'wasm' | 'tools'): Promise<WebAssembly.Module> {
  if (source instanceof WebAssembly.Module) return source;
  let url: URL | undefined;
  let isHere = false;
  try {
    url = typeof source === 'function' ? source() : new URL(source, globalThis.location?.href);
    if (url.protocol === 'file:' && 'process' in globalThis) return await WebAssembly.compile(await readFile(url));
    const response = await fetch(url);
    if (!response.ok) throw new Error(`HTTP status ${response.status}`);
    isHere = true;
    if (response.headers.get('content-type')?.startsWith('application/wasm')) {
      return await WebAssembly.compileStreaming(response);
    }
    return await WebAssembly.compile(await response.arrayBuffer());
  } catch (cause) {
    const why = cause instanceof Error ? cause.message : String(cause);
    // It will not work later either: bytes that do not compile (the policy of the page may forbid it), a local file that cannot be read.
    const isLasting = url === undefined || isHere || url.protocol === 'file:';
    throw new VarveError(
      isLasting ? 'VARVE_UNSUPPORTED' : 'VARVE_UNAVAILABLE',
      `WebAssembly could not be loaded from ${url?.href ?? 'beside this script'} (${why}). Serve the file there, or pass its place as the option ${option}.`,
      { cause },
    );
  }
}

/** The part of Node's global `process` that is used; Bun and Deno have it too. */
interface BuiltinModules {
  getBuiltinModule(name: 'node:fs/promises'): { readFile(path: URL): Promise<Uint8Array<ArrayBuffer>> };
}

/** Reads a file on Node, whose fetch does not support file URLs. It uses no `import`: that would break every bundler for browsers. */
function readFile(url: URL): Promise<Uint8Array<ArrayBuffer>> {
  const { process } = globalThis as unknown as { process: BuiltinModules };
  return process.getBuiltinModule('node:fs/promises').readFile(url);
}
