/**
 * The entry of the engine worker.
 *
 * Invariant: this file only connects messages to a `Member`.
 */

import { keySlotsByScript } from '../engine/encryption-script.ts';
import { spawnCompactor } from '../engine/spawn-compactor.ts';
import type { Request } from '../protocol/messages.ts';
import { indexedDbScript } from '../storage/indexeddb/script.ts';
import { repairByScript } from '../tools/repair-script.ts';
import { Member } from './member.ts';

const scope = globalThis as unknown as DedicatedWorkerGlobalScope;
const member = new Member((message, transfer) => scope.postMessage(message, transfer), spawnCompactor, undefined, {
  indexedDb: indexedDbScript,
  repair: repairByScript,
  keySlots: keySlotsByScript,
});

scope.addEventListener('message', (event: MessageEvent<Request | ArrayBuffer>) => member.receive(event));
