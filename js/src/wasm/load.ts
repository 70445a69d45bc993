/**
 * Compiles the engine, once for each realm, and makes instances of it, one for each store.
 *
 * Invariant: stores share no instance: memory is freed with the instance, and a fault or a lack of memory affects one store only.
 * A module that is passed in compiled is not compiled again. The file is looked for beside this module (`varve.wasm`), which
 * bundlers see and copy.
 */

import { compile, type WasmSource } from './compile.ts';
import type { Engine } from './engine.ts';
import type { EngineExports } from './exports.ts';
import { EngineFault } from './fault.ts';
import { HostDevices } from './host.ts';
import { EngineMemory } from './memory.ts';

export type { WasmSource };

let loading: Promise<WebAssembly.Module> | undefined;

/** The compiled engine, loaded at the first call. */
export async function loadEngine(source?: WasmSource): Promise<WebAssembly.Module> {
  if (source instanceof WebAssembly.Module) return source;
  loading ??= compile(source ?? (() => new URL('./varve.wasm', import.meta.url)), 'wasm');
  try {
    return await loading;
  } catch (error) {
    loading = undefined;
    throw error;
  }
}

/** A new instance of a compiled engine. */
export function instantiate(module: WebAssembly.Module): Engine {
  const devices = new HostDevices();
  const exports = devices.instantiate<EngineExports>(module);
  const fault = new EngineFault();
  return { exports, devices, fault, memory: new EngineMemory(exports, fault) };
}
