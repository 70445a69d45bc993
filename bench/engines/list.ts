/** Every engine of the bench: Varve, its peers, and the floors that no store can be quicker than. */

import type { Engine } from '../engine.ts';
import { idb } from './idb.ts';
import { indexedDb, indexedDbGrouped } from './indexeddb.ts';
import { map } from './map.ts';
import { message, messageAppend } from './message.ts';
import { opfsAppend, opfsAppendGrouped } from './opfs-append.ts';
import { varveHereIndexedDb, varveIndexedDb, varvePage } from './varve-page.ts';
import { varveSync, varveSyncEach } from './varve-sync.ts';

export const ENGINES: readonly Engine[] = [
  varveSync,
  varveSyncEach,
  varvePage,
  varveIndexedDb,
  varveHereIndexedDb,
  indexedDb,
  indexedDbGrouped,
  idb,
  map,
  opfsAppend,
  opfsAppendGrouped,
  message,
  messageAppend,
];

/** Engines that a quick run leaves out. */
export const FULL_ONLY: readonly string[] = [idb.name];
