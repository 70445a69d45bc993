/**
 * The entry of the compactor worker, a nested worker of the engine worker: it ends with it.
 *
 * Invariant: this file only connects messages to a `Compactor`.
 */

import type { CheckerRequest } from './checker.ts';
import { Compactor } from './compactor.ts';
import type { CompactorRequest } from './messages.ts';
import { opfsOutputs } from './opfs-output.ts';

const scope = globalThis as unknown as DedicatedWorkerGlobalScope;
const compactor = new Compactor((message, transfer) => scope.postMessage(message, transfer), opfsOutputs);

scope.addEventListener('message', (event: MessageEvent<CompactorRequest | CheckerRequest>) =>
  compactor.receive(event.data),
);
