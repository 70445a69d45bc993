/** An instance of the engine: its exports with the things that its callers need around them. Types only. */

import type { EngineExports } from './exports.ts';
import type { EngineFault } from './fault.ts';
import type { HostDevices } from './host.ts';
import type { EngineMemory } from './memory.ts';

/** One engine instance. */
export interface Engine {
  readonly exports: EngineExports;
  /** The devices in which its host functions find the slots. */
  readonly devices: HostDevices;
  /** The fault because of which it must not be called any more, if there was one. */
  readonly fault: EngineFault;
  /** Views of its memory. */
  readonly memory: EngineMemory;
}
