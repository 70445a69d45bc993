/**
 * Every engine of the browser: Varve, its peers, and the floors that no store can be quicker than. A quick run keeps the two
 * peers that every reader asks for: the browser's own store, and the quickest of the libraries.
 */

import type { Engine } from '../core/engine.ts';
import { useEngines } from '../core/suite.ts';
import { browserLevel } from './browser-level.ts';
import { dexie } from './dexie.ts';
import { idbKeyval } from './idb-keyval.ts';
import { indexedDb, indexedDbGrouped } from './indexeddb.ts';
import { map } from './map.ts';
import { message, messageAppend, openFloor } from './message.ts';
import { opfsAppend } from './opfs-append.ts';
import { sqliteWasm, sqliteWasmGrouped } from './sqlite-wasm.ts';
import { varveHereIndexedDb, varveIndexedDb, varvePage } from './varve-page.ts';
import { varveSync, varveSyncEach } from './varve-sync.ts';
import { waSqlite, waSqliteGrouped } from './wa-sqlite.ts';

const VARVE = [varveSync, varveSyncEach, varvePage, varveIndexedDb, varveHereIndexedDb];
const PEERS = [indexedDb, indexedDbGrouped, sqliteWasm, sqliteWasmGrouped];
const LIBRARIES = [waSqlite, waSqliteGrouped, idbKeyval, dexie, browserLevel];
const MORE = LIBRARIES.map((engine) => ({ ...engine, fullOnly: true }));
const FLOORS = [map, opfsAppend, message, messageAppend, openFloor];

export const ENGINES: readonly Engine[] = [...VARVE, ...PEERS, ...MORE, ...FLOORS];

useEngines(ENGINES);
