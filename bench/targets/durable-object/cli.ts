/**
 * `npm run bench -- cloudflare`: rows billed, and time, of sets in a Durable Object on the workerd of miniflare.
 *
 * Invariant: every way has an object of its own in a folder on the disk. Rows of Varve are those that its statements wrote until
 * no flush or compaction was due; an alarm, one row for each flush or so, is not in them.
 */

import { Miniflare } from 'miniflare';
import { roundOf } from '../../core/measure.ts';
import type { Emit } from '../../core/plan.ts';
import { report } from '../../core/suite.ts';
import type { Tally } from '../../core/tasks/task.ts';
import { runTarget, versionOf } from '../command.ts';
import { bundledWorker, workerOptions } from '../workerd.ts';
import type { BenchObject, Load } from './object.ts';

/** The load whose keys are read afterwards. */
const READ_LOAD: Load = { count: 100_000, perTurn: 100, isBatch: false, valueBytes: 100 };
const READ_TITLE = '100 sets a turn';
/** The loads, by their titles. */
const LOADS: Readonly<Record<string, Load>> = {
  [READ_TITLE]: READ_LOAD,
  '1 set a turn': { ...READ_LOAD, count: 10_000, perTurn: 1 },
  'a batch of 100 a turn': { ...READ_LOAD, isBatch: true },
  '100 sets a turn, 20 B values': { ...READ_LOAD, valueBytes: 20 },
};
const KEY_BYTES = 16;
const GETS = 20_000;
const ENGINES = ['varve', 'key-value', 'table'];

type ObjectAt = (name: string) => Pick<BenchObject, 'load' | 'read' | 'rows' | 'isIdle' | 'scan' | 'bytes'>;
type Namespace = { idFromName(name: string): unknown; get(id: unknown): ReturnType<ObjectAt> };

/** Times some calls of an object, and reports them as a row; `note` is taken afterwards. */
async function row(
  emit: Emit,
  name: string,
  phase: string,
  ops: number,
  run: () => Promise<Partial<Tally>>,
  note: () => Promise<string>,
): Promise<void> {
  const begin = performance.now();
  const tally = await run();
  const ms = performance.now() - begin;
  // Timed as a whole: the percentiles are its mean.
  const round = roundOf({ ops, ...tally }, ms, [(ms * 1000) / ops]);
  const head = { suite: 'cloudflare', phase, durability: 'strict', groupSize: ops, note: await note() } as const;
  report({ emit, place: 'workerd' }, { name, role: name === 'varve' ? 'varve' : 'peer' }, head, [round]);
}

async function sets(emit: Emit, at: ObjectAt, name: string, title: string, load: Load): Promise<void> {
  const object = at(`${name} ${title}`);
  const before = await object.rows(name);
  const bytes = load.count * (KEY_BYTES + load.valueBytes);
  const run = () => object.load(name, load).then(() => ({ bytes }));
  await row(emit, name, title, load.count, run, async () => {
    while (!(await object.isIdle())) await new Promise((resolve) => setTimeout(resolve, 50));
    const rows = (await object.rows(name)) - before;
    return `${((rows * 1000) / load.count).toFixed(1)} rows written per 1,000 sets`;
  });
}

async function reads(emit: Emit, at: ObjectAt, name: string): Promise<void> {
  const { count, valueBytes } = READ_LOAD;
  const object = at(`${name} ${READ_TITLE}`);
  const found = (hits: number, of: number): Partial<Tally> => {
    return { reads: of, hits, wrong: of - hits, bytes: hits * (KEY_BYTES + valueBytes) };
  };
  const size = async () => `database ${((await object.bytes()) / 1e6).toFixed(1)} MB`;
  const get = async () => found(await object.read(name, count, GETS), GETS);
  await row(emit, name, `get, of ${count} keys`, GETS, get, size);
  if (name !== 'varve') return;
  await row(emit, name, 'scan, entries', count, async () => found(await object.scan(), count), size);
}

await runTarget({
  name: 'cloudflare',
  place: 'in a Durable Object',
  flags: {},
  async run(_, folder, emit) {
    const script = await bundledWorker('durable-object', 'object.ts');
    const inWorkerd = async (use: (at: ObjectAt) => Promise<void>): Promise<void> => {
      const miniflare = new Miniflare(workerOptions(script, { OBJECTS: 'BenchObject' }, folder));
      try {
        const { OBJECTS } = await miniflare.getBindings<{ OBJECTS: Namespace }>();
        await use((name) => OBJECTS.get(OBJECTS.idFromName(name)));
      } finally {
        await miniflare.dispose();
      }
    };
    await inWorkerd(async (at) => {
      for (const [title, load] of Object.entries(LOADS))
        for (const name of ENGINES) await sets(emit, at, name, title, load);
      for (const name of ENGINES) await reads(emit, at, name);
    });
    await inWorkerd(async (at) => {
      // Another object before, so that the code is compiled.
      await at('empty').rows('varve');
      let rows = 0;
      const construct = async () => {
        rows = await at(`varve ${READ_TITLE}`).rows('varve');
        return {};
      };
      await row(emit, 'varve', 'construct the object', 1, construct, async () => `${rows} rows written`);
    });
    return { versions: { varve: versionOf('..'), workerd: versionOf('workerd') } };
  },
});
