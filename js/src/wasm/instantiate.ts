/**
 * Makes instances of the engine, one for each store.
 *
 * Invariant: stores share no instance: memory is freed with the instance, and a fault or a lack of memory affects one store only.
 */

import type { Engine } from './engine.ts';
import type { EngineExports } from './exports.ts';
import { EngineFault } from './fault.ts';
import { HostDevices } from './host.ts';
import { EngineMemory } from './memory.ts';

/** A new instance of a compiled engine. */
export function instantiate(module: WebAssembly.Module): Engine {
  const devices = new HostDevices();
  const exports = devices.instantiate<EngineExports>(module);
  const fault = new EngineFault();
  return { exports, devices, fault, memory: new EngineMemory(exports, fault) };
}
