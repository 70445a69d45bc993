/** Repairing a store through a worker: loaded at the first repair. */

import { VarveError } from '../errors.ts';
import type { RepairOptions, RepairReport, ToolsProgress } from '../tools/types.ts';
import { repairRequest } from './repair-request.ts';
import { type Spawn, start } from './start.ts';

/** Salvages a store into a new one. When the signal aborts, the worker stops and deletes what it wrote; then the worker is ended. */
export async function repairNamed(name: string, options: RepairOptions, spawn: Spawn): Promise<RepairReport> {
  const request = repairRequest(name, options);
  const { onProgress, signal } = options;
  const client = start(name, options, spawn);
  const stop = (): void => void client.ask({ type: 'call', method: 'stop', args: [] }).catch(() => undefined);
  signal?.addEventListener('abort', stop, { once: true });
  const progress = (value: unknown): void => queueMicrotask(() => onProgress?.(value as ToolsProgress));
  try {
    return (await client.ask({ type: 'repair', name, request }, progress)) as RepairReport;
  } catch (error) {
    signal?.throwIfAborted();
    throw error;
  } finally {
    signal?.removeEventListener('abort', stop);
    client.fail(new VarveError('VARVE_CLOSED', 'The worker has done its work.'));
  }
}
