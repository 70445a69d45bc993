/**
 * Makes the compactor worker from the script beside this one.
 *
 * Invariant: the `new URL(..., import.meta.url)` stands inside `new Worker(...)`, where bundlers look for it.
 */

import { foreignWorker } from '../runtime/module-worker.ts';
import type { SpawnCompactor } from '../storage/compactor-port.ts';

/** Starts a compactor; undefined if workers cannot start workers here. */
export const spawnCompactor: SpawnCompactor | undefined =
  typeof Worker === 'function'
    ? () =>
        foreignWorker(import.meta.url, 'compactor-worker.js', 'varve-compactor') ??
        new Worker(new URL('./compactor-worker.js', import.meta.url), { type: 'module', name: 'varve-compactor' })
    : undefined;
