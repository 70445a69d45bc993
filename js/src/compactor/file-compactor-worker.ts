/**
 * The entry of the compactor of stores in files, a worker thread of the engine's thread: it ends with it.
 *
 * Invariant: this file only connects messages to a `Compactor`, and halts it.
 */

import { parentPort } from 'node:worker_threads';
import { fileOutputs, HALT, HALTED } from '../storage/fs/compactor.ts';
import type { CheckerRequest } from './checker.ts';
import { Compactor } from './compactor.ts';
import type { CompactorRequest } from './messages.ts';

const compactor = new Compactor(
  (message, transfer) => parentPort?.postMessage(message, transfer as ArrayBuffer[]),
  fileOutputs,
);

parentPort?.on('message', (message: CompactorRequest | CheckerRequest | typeof HALT) => {
  if (message.type !== HALT.type) return compactor.receive(message);
  compactor.halt();
  parentPort?.postMessage(HALTED);
});
