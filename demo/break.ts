// The page "Break it": experiments that break a store on purpose, and show the result.
// Invariant: every experiment has its own stores. The cities, and all other data kept here, are not touched.

import { experiment } from './break/experiment.ts';
import { flip } from './break/flip.ts';
import { fillDisk } from './break/full.ts';
import { kill } from './break/kill.ts';
import { byId, setText } from './dom.ts';

experiment('kill', kill);
experiment('flip', flip);
experiment('full', fillDisk);

// The page can flip a byte of a file only if it may write to it.
if (typeof globalThis.FileSystemFileHandle?.prototype.createWritable !== 'function') {
  byId('flip-run', HTMLButtonElement).disabled = true;
  setText(
    byId('flip-note', HTMLElement),
    'This browser lets no page write into files of OPFS, so it cannot damage one.',
  );
}
document.body.dataset['state'] = 'ready';
