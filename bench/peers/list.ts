/** Every engine of the bench: Varve, its peers, and the floors that no store can be quicker than. */

import type { Engine } from '../core/engine.ts';
import { browserLevel } from './browser-level.ts';
import { dexie } from './dexie.ts';
import { idb } from './idb.ts';
import { idbKeyval } from './idb-keyval.ts';
import { indexedDb, indexedDbGrouped } from './indexeddb.ts';
import { localForage } from './localforage.ts';
import { localStorageEngine } from './localstorage.ts';
import { map } from './map.ts';
import { message, messageAppend } from './message.ts';
import { opfsAppend, opfsAppendGrouped } from './opfs-append.ts';
import { pglite } from './pglite.ts';
import { sqliteWasm, sqliteWasmGrouped } from './sqlite-wasm.ts';
import { varveHereIndexedDb, varveIndexedDb, varvePage } from './varve-page.ts';
import { varveSync, varveSyncEach } from './varve-sync.ts';
import { waSqlite, waSqliteGrouped } from './wa-sqlite.ts';

export const ENGINES: readonly Engine[] = [
  varveSync,
  varveSyncEach,
  varvePage,
  varveIndexedDb,
  varveHereIndexedDb,
  indexedDb,
  indexedDbGrouped,
  sqliteWasm,
  sqliteWasmGrouped,
  waSqlite,
  waSqliteGrouped,
  pglite,
  idb,
  idbKeyval,
  localForage,
  dexie,
  browserLevel,
  localStorageEngine,
  map,
  opfsAppend,
  opfsAppendGrouped,
  message,
  messageAppend,
];

/**
 * Engines that a quick run leaves out. It keeps the two that every reader asks for: what the browser has by itself, and
 * the quickest of the libraries.
 */
export const FULL_ONLY: readonly string[] = [
  waSqlite,
  waSqliteGrouped,
  pglite,
  idb,
  idbKeyval,
  localForage,
  dexie,
  browserLevel,
  localStorageEngine,
].map(({ name }) => name);
