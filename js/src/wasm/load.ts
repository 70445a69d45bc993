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
  fold_log,
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
import { compile, type WasmSource } from './compile.ts';
import type { Engine, EngineControl, EngineExports } from './exports.ts';
import { faultOfEngine } from './fault.ts';
import { attachMemory } from './host.ts';
import { EngineMemory } from './memory.ts';

export type { WasmSource };

/** Named one by one, so that a bundler drops what the glue offers beyond them. */
const control: EngineControl = {
  abandon,
  ask_for_compaction,
  CompactionJob,
  close_store,
  fail_job,
  finish_job,
  fold_log,
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
  loading ??= compile(source ?? (() => new URL('./varve.wasm', import.meta.url)), 'wasm').then(instantiate);
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
