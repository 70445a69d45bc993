/** The script of repairs, which the engine worker loads for the first one: see `repair-script.ts`. */

import { repairStore } from './repair.ts';
import { place } from './repair-script.ts';

place.made = repairStore;
