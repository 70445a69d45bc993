/**
 * The script of stores in IndexedDB, which the engine worker loads when it opens one: see `script.ts`.
 */

import { openIndexedDb } from './chunk-store.ts';
import { place } from './script.ts';

place.made = openIndexedDb;
