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
import type { Load, StoreObject, Way } from './object.ts';

/** The load whose keys are read afterwards. */
const READ_LOAD: Load = { count: 100_000, perTurn: 100, isBatch: false, valueBytes: 100 };
/** The loads, by their titles. */
const LOADS: Readonly<Record<string, Load>> = {
  '100 sets a turn': READ_LOAD,
  '1 set a turn': { ...READ_LOAD, count: 10_000, perTurn: 1 },
  'a batch of 100 a turn': { ...READ_LOAD, isBatch: true },
  '100 sets a turn, 20 B values': { ...READ_LOAD, valueBytes: 20 },
};
const KEY_BYTES = 16;
const GETS = 20_000;
/** The classes of the objects by their engines. */
const CLASSES = { varve: 'StoreObject', 'key-value': 'KeyValueObject', table: 'TableObject' } as const;
type EngineName = keyof typeof CLASSES;

type Namespaces = Readonly<Record<EngineName, { idFromName(name: string): unknown; get(id: unknown): Way }>>;

class Objects {
  constructor(
    private readonly namespaces: Namespaces,
    private readonly emit: Emit,
  ) {}

  at(name: EngineName, object: string): Way {
    const namespace = this.namespaces[name];
    return namespace.get(namespace.idFromName(object));
  }

  /** Times some calls of an object, and reports them; `note` is taken afterwards. */
  async row(
    name: EngineName,
    phase: string,
    ops: number,
    run: () => Promise<Partial<Tally>>,
    note: () => Promise<string>,
  ): Promise<void> {
    const begin = performance.now();
    const tally = await run();
    const ms = performance.now() - begin;
    const engine = { name, role: name === 'varve' ? ('varve' as const) : ('peer' as const) };
    // Timed as a whole: the percentiles are its mean.
    const round = roundOf({ ops, ...tally }, ms, [(ms * 1000) / ops]);
    const head = { suite: 'cloudflare', phase, durability: 'strict', groupSize: ops, note: await note() } as const;
    report({ emit: this.emit, place: 'workerd' }, engine, head, [round]);
  }

  async sets(name: EngineName, title: string, load: Load): Promise<void> {
    const way = this.at(name, title);
    const before = await way.rows();
    const sets = () => way.load(load).then(() => ({ bytes: load.count * (KEY_BYTES + load.valueBytes) }));
    await this.row(name, title, load.count, sets, async () => {
      while (!(await way.isIdle())) await new Promise((resolve) => setTimeout(resolve, 50));
      const rows = (await way.rows()) - before;
      return `${((rows * 1000) / load.count).toFixed(1)} rows written per 1,000 sets`;
    });
  }

  async reads(name: EngineName): Promise<void> {
    const { count, valueBytes } = READ_LOAD;
    const way = this.at(name, '100 sets a turn');
    const read = (reads: number, hits: number): Partial<Tally> => {
      return { reads, hits, wrong: reads - hits, bytes: hits * (KEY_BYTES + valueBytes) };
    };
    const gets = async () => read(GETS, await way.read(count, GETS));
    const size = async () => `database ${((await way.bytes()) / 1e6).toFixed(1)} MB`;
    await this.row(name, `get, of ${count} keys`, GETS, gets, size);
    if (name !== 'varve') return;
    const scan = async () => read(count, await (way as StoreObject).scan());
    await this.row(name, 'scan, entries', count, scan, size);
  }
}

const NAMES = Object.keys(CLASSES) as EngineName[];

await runTarget({
  name: 'cloudflare',
  place: 'in a Durable Object',
  flags: {},
  async run(_, folder, emit) {
    const script = await bundledWorker('durable-object', 'object.ts');
    const inWorkerd = async (use: (objects: Objects) => Promise<void>): Promise<void> => {
      const miniflare = new Miniflare(workerOptions(script, CLASSES, folder));
      try {
        await use(new Objects(await miniflare.getBindings<Namespaces>(), emit));
      } finally {
        await miniflare.dispose();
      }
    };
    await inWorkerd(async (objects) => {
      for (const [title, load] of Object.entries(LOADS)) {
        for (const name of NAMES) await objects.sets(name, title, load);
      }
      for (const name of NAMES) await objects.reads(name);
    });
    await inWorkerd(async (objects) => {
      // Another object before, so that the code is compiled.
      await objects.at('varve', 'empty').rows();
      const way = objects.at('varve', '100 sets a turn');
      let rows = 0;
      const construct = async () => {
        rows = await way.rows();
        return {};
      };
      await objects.row('varve', 'construct the object', 1, construct, async () => `${rows} rows written`);
    });
    return { versions: { varve: versionOf('..'), workerd: versionOf('workerd') } };
  },
});
