/**
 * The script of stores in IndexedDB, which the engine worker loads when it opens one: see `script.ts`.
 *
 * Invariant: it exports nothing, because some bundlers drop the exports of a file that is only named by its URL.
 */

import { openIndexedDb } from './chunk-store.ts';
import { place } from './script.ts';

place.openIndexedDb = openIndexedDb;
