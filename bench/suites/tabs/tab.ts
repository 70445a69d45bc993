/**
 * A tab of the suite `multi-tab`: it opens stores and makes calls when it is asked to.
 *
 * Invariant: it keeps the whole truth about what it loaded and wrote itself. Reads are checked against that; the director never
 * lets a tab read while another writes.
 */

import { type AsyncSession, type Engine, IN_FLIGHT, type PointCall } from '../../core/engine.ts';
import { at, type Dataset, type Key, makeDataset } from '../../core/generator.ts';
import { groupFor, measure, type Round } from '../../core/measure.ts';
import { loadedState, Stage } from '../../core/stage.ts';
import { engines } from '../../core/suite.ts';
import { Points } from '../../core/tasks/points.ts';
import type { Task } from '../../core/tasks/task.ts';
import { type PointTrace, pointTrace, type State } from '../../core/trace.ts';
import { verifyStore } from '../../core/verify.ts';
import { type Acknowledged, epochMs, type Work, type Written } from './protocol.ts';

const VALUE_BYTES = 100;
const REHEARSAL_CALLS = 60;
const CHECKED_TOGETHER = 500;

interface OpenStore {
  readonly engine: Engine;
  readonly session: AsyncSession;
  readonly dataset: Dataset;
  readonly state: State;
}

/** Its methods are called by the director of the suite. */
export class Tab {
  readonly #stores = new Map<string, OpenStore>();
  #prepared: { task: Task; work: Work } | undefined;
  #writer: { stop: boolean; done: Promise<Written> } | undefined;

  /** Opens a store; the first tab makes it anew and loads it, the others know what was loaded. */
  async open(given: { engine: string; store: string; entries: number; isFirst: boolean }): Promise<void> {
    const { engine: name, store, entries, isFirst } = given;
    const engine = engines().find((known) => known.name === name);
    if (engine === undefined) throw new Error(`There is no engine ${name}.`);
    const dataset = makeDataset('random', entries, VALUE_BYTES);
    const load = 'anywhere';
    const session = isFirst
      ? (await Stage.open({ engine, name: store, dataset, durability: 'relaxed', load })).session
      : await engine.open(store, { durability: 'relaxed', valueBytes: VALUE_BYTES });
    if (session.kind !== 'async') throw new Error(`The engine ${name} does not run in a page.`);
    this.#stores.set(name, { engine, session, dataset, state: loadedState(dataset) });
  }

  /** Whether this tab leads the store; undefined of engines that have no leader. */
  async leads(engine: string): Promise<boolean | undefined> {
    const report = await this.#store(engine).session.report?.();
    return report?.sharing?.leads;
  }

  async rehearse(work: Work): Promise<number> {
    const task = this.#taskOf({ ...work, calls: REHEARSAL_CALLS });
    const { latencies } = await measure(task, limits({ ...work, calls: REHEARSAL_CALLS, group: 1, budgetMs: 1000 }));
    return groupFor(latencies);
  }

  async prepare(work: Work): Promise<void> {
    this.#prepared = { task: this.#taskOf(work), work };
  }

  /** Makes the calls that were laid out, from a time on (milliseconds since 1970), so that all tabs begin together. */
  async go(at: number): Promise<Round> {
    const prepared = this.#prepared;
    if (prepared === undefined) throw new Error('Nothing was prepared.');
    this.#prepared = undefined;
    await new Promise((resolve) => setTimeout(resolve, Math.max(0, at - epochMs())));
    return measure(prepared.task, limits(prepared.work));
  }

  /** The content of the store as far as this tab knows, by the number of the key. */
  async state(engine: string): Promise<Uint16Array> {
    return this.#store(engine).state;
  }

  async verify({ engine: name, state }: { engine: string; state: Uint16Array }): Promise<string | undefined> {
    const { engine, session, dataset } = this.#store(name);
    return verifyStore(engine, session, dataset, state);
  }

  /** Writes until `stop`, one awaited set after another, each to a key of its own that begins with `prefix`. */
  async write({ engine, prefix }: { engine: string; prefix: string }): Promise<void> {
    const { session, dataset } = this.#store(engine);
    this.#write((number) => session.set(keyOf(prefix, number), dataset.pool[0] as Uint8Array));
  }

  /** The same to the keys that are there, one after the other, each with the value that it has. */
  async rewrite(engine: string): Promise<void> {
    const { session, dataset } = this.#store(engine);
    const entries: [Key, Uint8Array][] = [];
    await session.range(undefined, dataset.keys.length, { take: (...entry) => void entries.push(entry) });
    this.#write((number) => session.set(...at(entries, number % entries.length)));
  }

  #write(set: (number: number) => Promise<unknown>): void {
    const writer = { stop: false, done: Promise.resolve<Written>({ writes: [], errors: [] }) };
    const run = async (): Promise<Written> => {
      const writes: Acknowledged[] = [];
      const errors: string[] = [];
      while (!writer.stop) {
        const called = epochMs();
        try {
          await set(writes.length);
          writes.push([called, epochMs()]);
        } catch (error) {
          errors.push(error instanceof Error ? error.message : String(error));
          if (errors.length > 10) break;
        }
      }
      return { writes, errors };
    };
    writer.done = run();
    this.#writer = writer;
  }

  async stop(): Promise<Written> {
    const writer = this.#writer;
    if (writer === undefined) throw new Error('Nothing is being written.');
    writer.stop = true;
    return writer.done;
  }

  /** How many of the keys with a prefix, from 0 to `count` - 1, are not there. */
  async missing({ engine, prefix, count }: { engine: string; prefix: string; count: number }): Promise<number> {
    const { session } = this.#store(engine);
    let missing = 0;
    for (let from = 0; from < count; from += CHECKED_TOGETHER) {
      const length = Math.min(CHECKED_TOGETHER, count - from);
      const calls = Array.from({ length }, (_, i): PointCall => ({ key: keyOf(prefix, from + i), value: undefined }));
      missing += (await session.wave(calls)).filter((value) => value?.length !== VALUE_BYTES).length;
    }
    return missing;
  }

  async close({ engine: name, store, remove }: { engine: string; store: string; remove: boolean }): Promise<void> {
    const { engine, session } = this.#store(name);
    this.#stores.delete(name);
    await session.close();
    if (remove) await engine.remove(store);
  }

  #store(engine: string): OpenStore {
    const store = this.#stores.get(engine);
    if (store === undefined) throw new Error(`This tab has no store of ${engine} open.`);
    return store;
  }

  #taskOf(work: Work): Task {
    const store = this.#store(work.engine);
    const mix = work.call;
    const drawn = pointTrace(store.dataset, { kind: 'points', mix, order: 'uniform' }, work);
    return new Points(store, mix === 'set' ? ownOf(drawn, work) : drawn, work.waves);
  }
}

function ownOf(trace: PointTrace, { index, of }: Work): PointTrace {
  const own = Math.floor(trace.keys.length / of);
  return { ...trace, numbers: trace.numbers.map((number) => (number % own) * of + index) };
}

function limits({ waves, group, budgetMs, calls }: Work): Parameters<typeof measure>[1] {
  const signal = new AbortController().signal;
  return { group: waves ? IN_FLIGHT : group, budgetMs, callsMax: calls, together: waves, signal };
}

function keyOf(prefix: string, number: number): string {
  return `${prefix}${number.toString().padStart(8, '0')}`;
}
