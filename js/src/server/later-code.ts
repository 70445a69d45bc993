/** Code that only some stores need. The engine worker loads it when a store needs it; an engine in the realm of its caller has it. */

import { keySlots, type LoadKeySlots } from '../engine/key-slots.ts';
import { openIndexedDb } from '../storage/indexeddb/chunk-store.ts';
import type { IndexedDbStores } from '../storage/open-device.ts';
import { type RepairStore, repairStore } from '../tools/repair.ts';

export interface LaterCode {
  readonly indexedDb: IndexedDbStores;
  readonly repair: RepairStore;
  readonly keySlots: LoadKeySlots;
}

/** All of it, without loading. */
export const codeHere: LaterCode = { indexedDb: { open: openIndexedDb }, repair: repairStore, keySlots };
