// The program of the soak in Node, which must be started with --expose-gc: it runs laps for the given time, and prints one line for each.

import { readdirSync } from 'node:fs';
import * as process from 'node:process';
import { MessageChannel } from 'node:worker_threads';
import { deleteStore, open } from 'varve';
import { files } from 'varve/fs';
import { counted } from '../../support/counting.ts';
import { LAPS_MIN } from '../../support/flat.ts';
import { OPENS, type Place, Soak, type SoakPlan } from '../../support/soak.ts';
import { parameters, say } from '../support/program.ts';

const OPEN_FILES = '/proc/self/fd';

const { directory, storage, ms, opens, ...plan } = parameters<
  SoakPlan & { storage: 'files' | 'memory'; ms: number; opens: number }
>();
// A small budget, so that tables are written and merged all the time.
const options = { storage: storage === 'files' ? files(directory) : storage, memoryBytes: 1 << 20 } as const;

const turn = (): Promise<void> => new Promise((resolve) => setTimeout(resolve, 5));

const { port1, port2 } = new MessageChannel();

const place: Place = {
  async echo(value) {
    const heard = new Promise((resolve) => port2.once('message', resolve));
    port1.postMessage(value);
    return heard;
  },
  open: (name) => open(name, options),
  remove: (name) => (storage === 'files' ? deleteStore(name, { storage: files(directory) }) : Promise.resolve()),
  async collect() {
    // Not within a turn: its stack might still refer to objects that are to be collected.
    await globalThis.gc?.({ type: 'major', execution: 'async' });
    await turn();
  },
  async count() {
    const { heapUsed, external, rss } = process.memoryUsage();
    const { wasmBytes = 0, ...open } = counted();
    const resources: Record<string, number> = {};
    for (const kind of ['Timeout', 'MessagePort', 'Worker', 'FSReqCallback']) resources[kind] = 0;
    for (const kind of process.getActiveResourcesInfo()) resources[kind] = (resources[kind] ?? 0) + 1;
    const openFiles = process.platform === 'linux' ? readdirSync(OPEN_FILES).length : 0;
    // Memories of WebAssembly are counted in this figure.
    const heapBytes = heapUsed + external - wasmBytes;
    return { heapBytes, processBytes: rss, wasmBytes, openFiles, ...open, ...resources };
  },
};

if (globalThis.gc === undefined) throw new Error('Start it with --expose-gc.');
const soak = await Soak.start(place, plan);
const end = performance.now() + ms;
for (let laps = 0; laps < LAPS_MIN || laps * OPENS < opens || performance.now() < end; laps++) {
  say(`lap ${JSON.stringify(await soak.lap())}`);
}
if (plan.leak === undefined) await soak.end();
say('ended');
process.exit(0);
