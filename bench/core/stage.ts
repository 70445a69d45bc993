/**
 * Stages: the stores of engines, opened and loaded with what a suite begins from, and kept for the next suite with the
 * same fixture.
 *
 * Invariant: the state is at any time the content of the store. A stage is closed once, which removes the store; it is
 * either with a suite or kept here, never both, and `release` closes all that are kept.
 */

import { turn } from './clock.ts';
import type { BatchEntries, Durability, Engine, Place, Session, SessionOptions } from './engine.ts';
import { type Dataset, makeDataset } from './generator.ts';
import type { Emit, Plan } from './plan.ts';
import { heldBytes, type StorageReport, writtenBytes } from './storage.ts';
import { entriesOf } from './tasks/task.ts';
import { ABSENT, type BatchTrace, batchTraces, emptyState, type State } from './trace.ts';
import { verifyStore } from './verify.ts';

const LOAD_BATCH = 1000;
const LOADS_MAX = 10;
/** How long a load takes before it reports how far it is, and between two reports. */
const REPORT_MS = 1000;
/** A store is sealed, and lets go of files that it does not need, once it has been idle for a while. */
const IDLE_MS = 600;

interface StageOptions {
  readonly engine: Engine;
  readonly name: string;
  readonly dataset: Dataset;
  readonly durability: Durability;
  readonly load: 'nothing' | Place;
  /** How many keys are loaded, the first ones. Default: all. */
  readonly entries?: number;
  readonly seed?: number;
  readonly memoryBytes?: number | undefined;
  readonly storage?: SessionOptions['storage'];
  readonly cache?: SessionOptions['cache'];
  /** Called now and then while a load takes long; an error that it throws ends the load, and the store is removed. */
  readonly loading?: (percent: number) => void;
}

export class Stage {
  readonly state: State;
  /** The last pass over the store found nothing wrong, and nothing was written since. */
  #verified = false;

  private constructor(
    readonly engine: Engine,
    readonly name: string,
    readonly dataset: Dataset,
    readonly options: SessionOptions,
    public session: Session,
  ) {
    this.state = emptyState(dataset);
  }

  static async open(wanted: StageOptions): Promise<Stage> {
    const { engine, name, dataset, durability, memoryBytes, storage, cache } = wanted;
    await engine.remove(name);
    const options = { durability, valueBytes: dataset.valueBytes, memoryBytes, storage, cache };
    const stage = new Stage(engine, name, dataset, options, await engine.open(name, options));
    if (wanted.load === 'nothing') return stage;
    try {
      await stage.#load(wanted, wanted.load);
    } catch (error) {
      await stage.close().catch(() => undefined);
      throw error;
    }
    return stage;
  }

  /** Writes again what was deleted: another round of deletes begins with every key. */
  async restore(): Promise<void> {
    const numbers = Uint32Array.from(this.state.keys()).filter((number) => this.state[number] === ABSENT);
    for (let from = 0; from < numbers.length; from += LOAD_BATCH) {
      const part = numbers.slice(from, from + LOAD_BATCH);
      const values = Uint16Array.from(part, (number) => number % this.dataset.pool.length);
      await this.#write({ numbers: part, values });
    }
  }

  async reopen<T>(between: () => Promise<T>): Promise<T> {
    await this.session.close();
    const result = await between();
    this.session = await this.engine.open(this.name, this.options);
    return result;
  }

  /** Passes over the store, unless nothing was written since the last time; answers with what is wrong, or undefined. */
  async verify(wrote: boolean): Promise<string | undefined> {
    if (this.#verified && !wrote) return undefined;
    const wrong = await verifyStore(this.engine, this.session, this.dataset, this.state);
    this.#verified = wrong === undefined;
    return wrong;
  }

  async close(): Promise<void> {
    await this.session.close();
    await this.engine.remove(this.name);
  }

  async conclude({ suite, load }: Fixture): Promise<StorageReport | undefined> {
    const { engine, session, state, dataset, options } = this;
    const reports = engine.role === 'varve' && session.report !== undefined;
    if (reports) await new Promise((resolve) => setTimeout(resolve, IDLE_MS));
    const stats = reports ? await session.report?.() : undefined;
    await session.close();
    // Files in memory or in a database cannot be weighed.
    const diskBytes = options.storage === undefined ? ((await engine.disk?.(this.name))?.bytes ?? 0) : 0;
    await engine.remove(this.name);
    const entries = state.reduce((sum, value) => sum + (value === ABSENT ? 0 : 1), 0);
    if (stats === undefined || entries === 0) return undefined;
    const entryBytes = dataset.keyBytes + dataset.valueBytes;
    const logicalBytes = entries * entryBytes;
    const tablesPerLevel = stats.levels.map(({ tables }) => tables);
    const [overlapping = 0, ...sorted] = tablesPerLevel;
    return {
      suite,
      compacted: load === 'tables',
      engine: engine.name,
      entries,
      logicalBytes,
      diskBytes,
      diskBytesPerLogicalByte: diskBytes / logicalBytes,
      writeAmplification: stats.writes === 0 ? null : writtenBytes(stats) / (stats.writes * entryBytes),
      readAmplification: 1 + stats.memtable.frozen + overlapping + sorted.filter((tables) => tables > 0).length,
      walSegments: stats.log.segments,
      tablesPerLevel,
      memoryBytes: heldBytes(stats),
      stats,
    };
  }

  async #load({ entries = this.dataset.keys.length, seed = 1, loading }: StageOptions, where: Place): Promise<void> {
    const traces = loadTraces(this.dataset, entries, seed);
    let reportedMs = performance.now();
    // A memtable grows from one flush to the next, so that the first load may not fit into it and a later one does.
    for (let load = 0; load < LOADS_MAX; load++) {
      for (const [at, trace] of traces.entries()) {
        await this.#write(trace);
        if (performance.now() - reportedMs < REPORT_MS) continue;
        reportedMs = performance.now();
        // A session that answers at once lets nobody else have a turn: a request to cancel would not arrive.
        await turn();
        loading?.(Math.round(((at + 1) * 100) / traces.length));
      }
      if (await this.session.settle(where, entries)) return;
    }
    throw new Error(`After ${LOADS_MAX} loads the entries still do not lie in one memtable.`);
  }

  async #write(trace: BatchTrace): Promise<void> {
    await writeBatch(this.session, entriesOf(this.dataset, trace));
    note(this.state, trace);
  }
}

function loadTraces(dataset: Dataset, entries: number, seed: number): BatchTrace[] {
  const choice = { round: 0, seed, there: entries };
  const full = Math.floor(entries / LOAD_BATCH);
  const traces = batchTraces(dataset, LOAD_BATCH, { ...choice, calls: full });
  if (entries % LOAD_BATCH === 0) return traces;
  // The remainder: this batch begins again with the first key, which does no harm.
  return [...traces, ...batchTraces(dataset, LOAD_BATCH, { ...choice, calls: full + 1 }).slice(full)];
}

/** The state of a stage that was loaded: for those who did not load it themselves. */
export function loadedState(dataset: Dataset): State {
  const state = emptyState(dataset);
  for (const trace of loadTraces(dataset, dataset.keys.length, 1)) note(state, trace);
  return state;
}

function note(state: State, { numbers, values }: BatchTrace): void {
  for (let i = 0; i < numbers.length; i++) state[numbers[i] as number] = values[i] as number;
}

async function writeBatch(session: Session, entries: BatchEntries): Promise<void> {
  const written = session.batch(entries);
  if (session.kind === 'sync') session.commit();
  else await written;
}

/** The dataset of a suite, and where it lies at first. Suites with the same fixture use the same stage, one after the other. */
export interface Fixture {
  readonly suite: string;
  readonly load: StageOptions['load'];
  readonly keys: Dataset['kind'];
  readonly valueBytes: number;
  /** Keys that are loaded (or written, by suites that begin with a new store), and keys for inserts behind those. */
  readonly entries: number;
  readonly reserve: number;
  /** Characters of a string key; undefined: as the generator makes them. */
  readonly keyBytes: number | undefined;
  readonly storage?: SessionOptions['storage'];
  readonly cache?: SessionOptions['cache'];
}

export class Stages {
  /** Loaded stages that the next suite may use again, by engine and fixture. */
  readonly #kept = new Map<string, { stage: Stage; fixture: Fixture }>();
  #dataset: { key: string; dataset: Dataset } | undefined;
  #stores = 0;

  constructor(
    private readonly plan: Plan,
    private readonly emit: Emit,
  ) {}

  async prepare(next: Fixture): Promise<void> {
    await this.#release((key) => !key.endsWith(`|${fixtureKey(next)}`));
  }

  /** The kept stage of an engine, or a new one, loaded; `loading` is called when a load takes long. */
  async take(fixture: Fixture, engine: Engine, durability: Durability, loading: (percent: number) => void) {
    const key = keyOf(fixture, engine, durability);
    const kept = this.#kept.get(key);
    if (kept !== undefined) {
      this.#kept.delete(key);
      return kept.stage;
    }
    const name = `bench-${engine.name}-${this.#stores++}`;
    const { seed, custom } = this.plan;
    const { memoryBytes } = custom;
    const { load, entries, storage, cache } = fixture;
    const dataset = this.#datasetOf(fixture);
    return Stage.open({ engine, name, dataset, durability, load, entries, seed, memoryBytes, storage, cache, loading });
  }

  keep(fixture: Fixture, stage: Stage): void {
    this.#kept.set(keyOf(fixture, stage.engine, stage.options.durability), { stage, fixture });
  }

  async release(): Promise<void> {
    await this.#release(() => true);
  }

  async #release(which: (key: string) => boolean): Promise<void> {
    for (const [key, { stage, fixture }] of this.#kept) {
      if (!which(key)) continue;
      this.#kept.delete(key);
      const storage = await stage.conclude(fixture);
      if (storage !== undefined) this.emit({ type: 'storage', storage });
    }
  }

  #datasetOf(fixture: Fixture): Dataset {
    const key = datasetKey(fixture);
    if (this.#dataset?.key !== key) {
      const { keys, entries, reserve, valueBytes, keyBytes } = fixture;
      const choice = { keyBytes, seed: this.plan.seed };
      this.#dataset = { key, dataset: makeDataset(keys, entries + reserve, valueBytes, choice) };
    }
    return this.#dataset.dataset;
  }
}

function keyOf(fixture: Fixture, engine: Engine, durability: Durability): string {
  return `${engine.name}|${durability}|${fixtureKey(fixture)}`;
}

function fixtureKey(fixture: Fixture): string {
  return `${fixture.load} ${fixture.storage} ${fixture.cache} ${datasetKey(fixture)}`;
}

function datasetKey({ keys, entries, reserve, valueBytes, keyBytes }: Fixture): string {
  return `${keys} ${entries} ${reserve} ${valueBytes} ${keyBytes ?? ''}`;
}
