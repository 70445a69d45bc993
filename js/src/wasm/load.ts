/**
 * Compiles and instantiates the engine.
 *
 * Invariant: one realm has one engine instance, made from the first module it is given; it never compiles what it was
 * handed compiled. The file is looked for beside this module (`varve.wasm`), which bundlers see and copy.
 */

import {
  abandon,
  ask_for_compaction,
  CompactionJob,
  close_store,
  fail_job,
  finish_job,
  freeze,
  initSync,
  last_error,
  lend,
  open_store,
  read_input,
  reclaim,
  release,
  run_slice,
  seal,
  set_room,
  shrink,
  slots_added,
  stats,
  sync,
  take_job,
  wanted_slots,
} from '../../pkg/varve.js';
import { VarveError } from '../errors.ts';
import type { Engine, EngineControl, EngineExports } from './exports.ts';
import { faultOfEngine } from './fault.ts';
import { attachMemory } from './host.ts';
import { EngineMemory } from './memory.ts';

/** Where the engine comes from: a URL of the file, or a module compiled already. */
export type WasmSource = string | URL | WebAssembly.Module;

/** Named one by one, so that a bundler drops what the glue offers beyond them. */
const control: EngineControl = {
  abandon,
  ask_for_compaction,
  CompactionJob,
  close_store,
  fail_job,
  finish_job,
  freeze,
  last_error,
  lend,
  open_store,
  read_input,
  reclaim,
  release,
  run_slice,
  seal,
  set_room,
  shrink,
  slots_added,
  stats,
  sync,
  take_job,
  wanted_slots,
};

let engine: Engine | undefined;
let loading: Promise<Engine> | undefined;

/** The engine of this realm, loaded at the first call. After a fault there is no other one. */
export async function loadEngine(source?: WasmSource): Promise<Engine> {
  const fault = faultOfEngine();
  if (fault !== undefined) throw fault;
  if (engine !== undefined) return engine;
  loading ??= compile(source ?? new URL('./varve.wasm', import.meta.url)).then(instantiate);
  try {
    return await loading;
  } catch (error) {
    loading = undefined;
    throw error;
  }
}

/** Instantiates a compiled engine, or returns the instance that this realm has. */
export function instantiate(module: WebAssembly.Module): Engine {
  if (engine === undefined) {
    const exports: EngineExports = initSync({ module });
    attachMemory(exports.memory);
    engine = { exports, control, memory: new EngineMemory(exports), module };
  }
  return engine;
}

async function compile(source: WasmSource): Promise<WebAssembly.Module> {
  if (source instanceof WebAssembly.Module) return source;
  const url = new URL(source, import.meta.url);
  try {
    if (url.protocol === 'file:' && 'process' in globalThis) return await WebAssembly.compile(await readFile(url));
    const response = await fetch(url);
    if (!response.ok) throw new Error(`HTTP status ${response.status}`);
    if (response.headers.get('content-type')?.startsWith('application/wasm')) {
      return await WebAssembly.compileStreaming(response);
    }
    return await WebAssembly.compile(await response.arrayBuffer());
  } catch (cause) {
    const why = cause instanceof Error ? cause.message : String(cause);
    throw new VarveError(
      'VARVE_UNSUPPORTED',
      `The engine could not be loaded from ${url.href} (${why}). Serve varve.wasm there, or pass its place as the option wasm.`,
      { cause },
    );
  }
}

/** Reads a file on Node, whose fetch knows no file URLs. The specifier is no literal so that bundlers leave it alone. */
async function readFile(url: URL): Promise<Uint8Array<ArrayBuffer>> {
  const specifier: string = 'node:fs/promises';
  const fs: { readFile(path: URL): Promise<Uint8Array<ArrayBuffer>> } = await import(/* @vite-ignore */ specifier);
  return fs.readFile(url);
}
