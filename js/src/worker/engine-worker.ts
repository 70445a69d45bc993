/**
 * The entry of the engine worker.
 *
 * Invariant: nothing but the wiring of messages to an `EngineServer`.
 */

import type { Request } from '../protocol/messages.ts';
import { EngineServer } from './engine-server.ts';
import { spawnCompactor } from './spawn-compactor.ts';

const scope = globalThis as unknown as DedicatedWorkerGlobalScope;
const server = new EngineServer((message, transfer) => scope.postMessage(message, transfer), spawnCompactor);

scope.addEventListener('message', (event: MessageEvent<Request | ArrayBuffer>) => server.receive(event.data));
