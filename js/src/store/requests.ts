/**
 * Listing, deleting, checking and repairing stores through a worker: loaded at the first such call.
 *
 * Invariant: a worker that is started here is also ended here.
 */

import type { Ask } from '../client/client.ts';
import { userKeyOf } from '../encryption/user-key.ts';
import { VarveError } from '../errors.ts';
import { withKeyOfNow } from '../options.ts';
import type { RepairRequest } from '../protocol/messages.ts';
import type { CheckReport, ClosedStoreOptions, RepairOptions, RepairReport } from '../tools/types.ts';
import type { Progress, WaitOptions } from '../types.ts';
import { checkName, lockTimeoutOf } from './options.ts';
import { checkRequest, repairRequest } from './repair-request.ts';
import { ask, type Spawn, start } from './start.ts';

/** Names of the stores of this origin. */
export function listNames(options: WaitOptions, spawn: Spawn): Promise<string[]> {
  return askOnce<string[]>('varve', { type: 'list' }, options, spawn);
}

/** Deletes a store; resolves with false if it did not exist. */
export async function deleteNamed(
  name: string,
  options: WaitOptions & { lockTimeout?: number | undefined },
  spawn: Spawn,
): Promise<boolean> {
  checkName(name);
  const lockTimeout = lockTimeoutOf(options);
  return askOnce<boolean>(name, { type: 'delete', name, lockTimeout }, options, spawn);
}

async function askOnce<T>(name: string, question: Ask, options: WaitOptions, spawn: Spawn): Promise<T> {
  const client = start(name, options, spawn);
  const answer = await ask<T>(client, question, options.signal);
  client.fail(new VarveError('VARVE_CLOSED', 'The worker has done its work.'));
  return answer;
}

/** Salvages a store into a new one. */
export async function repairNamed(name: string, options: RepairOptions, spawn: Spawn): Promise<RepairReport> {
  return onClosed<RepairReport>(name, repairRequest(name, options), options, spawn);
}

/** Checks a store that is not open. */
export async function checkNamed(name: string, options: ClosedStoreOptions, spawn: Spawn): Promise<CheckReport> {
  return onClosed<CheckReport>(name, checkRequest(name, options), options, spawn);
}

/** Does the work in a worker. When the signal aborts, the worker stops and deletes what it wrote; then the worker is ended. */
async function onClosed<T>(name: string, plain: RepairRequest, options: ClosedStoreOptions, spawn: Spawn): Promise<T> {
  const { encryption } = withKeyOfNow(options);
  const key = encryption && (await userKeyOf(encryption));
  const request = { ...plain, key };
  const { onProgress, signal } = options;
  const client = start(name, options, spawn);
  const stop = (): void => void client.ask({ type: 'call', method: 'stop', args: [] }).catch(() => undefined);
  signal?.addEventListener('abort', stop, { once: true });
  const progress = (value: unknown): void => queueMicrotask(() => onProgress?.(value as Progress));
  try {
    return (await client.ask({ type: 'repair', name, request }, progress)) as T;
  } catch (error) {
    signal?.throwIfAborted();
    throw error;
  } finally {
    signal?.removeEventListener('abort', stop);
    client.fail(new VarveError('VARVE_CLOSED', 'The worker has done its work.'));
  }
}
