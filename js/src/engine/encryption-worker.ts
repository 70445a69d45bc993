/** The script of key slots, which the engine worker loads for the first encrypted store: see `encryption-script.ts`. */

import { place } from './encryption-script.ts';
import { KEY_SLOTS } from './key-slots.ts';

place.made = KEY_SLOTS;
