/**
 * A stage: one engine's store, opened and loaded with what a suite begins from.
 *
 * Invariant: the state tells at any time what the store holds. A stage is closed once, which removes the store.
 */

import { turn } from './clock.ts';
import type { BatchEntries, Durability, Engine, Place, Session, SessionOptions } from './engine.ts';
import type { Dataset } from './generator.ts';
import { entriesOf } from './tasks/task.ts';
import { ABSENT, type BatchTrace, batchTraces, emptyState, type State } from './trace.ts';
import { verifyStore } from './verify.ts';
import type { Suite } from './workloads.ts';

/** Entries of a batch while loading. */
const LOAD_BATCH = 1000;
const LOADS_MAX = 10;
/** How long a load takes before it tells how far it is, and between two words. */
const TELLING_MS = 1000;

export interface StageOptions {
  readonly engine: Engine;
  readonly name: string;
  readonly dataset: Dataset;
  readonly durability: Durability;
  readonly load: Suite['load'];
  /** How many keys are loaded, the first ones. Default: all. */
  readonly entries?: number;
  readonly seed?: number;
  readonly memoryBytes?: number | undefined;
  readonly storage?: SessionOptions['storage'];
  /** Told now and then while a load takes long; what it throws ends the load, and the store is removed. */
  readonly loading?: (percent: number) => void;
}

export class Stage {
  readonly engine: Engine;
  readonly name: string;
  readonly dataset: Dataset;
  readonly state: State;
  readonly options: SessionOptions;
  readonly #entries: number;
  readonly #seed: number;
  readonly #loading: (percent: number) => void;
  session: Session;
  /** The last pass over the store found nothing wrong, and nothing was written since. */
  #verified = false;

  private constructor(options: StageOptions, session: Session, sessionOptions: SessionOptions) {
    this.engine = options.engine;
    this.name = options.name;
    this.dataset = options.dataset;
    this.state = emptyState(options.dataset);
    this.options = sessionOptions;
    this.#entries = options.entries ?? options.dataset.keys.length;
    this.#seed = options.seed ?? 1;
    this.#loading = options.loading ?? (() => undefined);
    this.session = session;
  }

  /** Opens a new store and loads it. */
  static async open(options: StageOptions): Promise<Stage> {
    const { engine, name, dataset, durability, load, memoryBytes, storage } = options;
    await engine.remove(name);
    const sessionOptions = { durability, valueBytes: dataset.valueBytes, memoryBytes, storage };
    const stage = new Stage(options, await engine.open(name, sessionOptions), sessionOptions);
    if (load === 'nothing') return stage;
    try {
      await stage.#load(load);
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
      await this.#write({
        numbers: part,
        values: Uint16Array.from(part, (number) => number % this.dataset.pool.length),
      });
    }
  }

  /** Closes the store without removing it, and opens it again. */
  async reopen(between: () => Promise<void>): Promise<void> {
    await this.session.close();
    await between();
    this.session = await this.engine.open(this.name, this.options);
  }

  /** Passes over the store, unless nothing was written since the last time; tells what is wrong, or undefined. */
  async verify(wrote: boolean): Promise<string | undefined> {
    if (this.#verified && !wrote) return undefined;
    const wrong = await verifyStore(this.engine, this.session, this.dataset, this.state);
    this.#verified = wrong === undefined;
    return wrong;
  }

  /** Empties the store in place, where its engine has a way to; tells whether it had, and the stage can be used again. */
  async clear(): Promise<boolean> {
    if (this.session.clear === undefined) return false;
    await this.session.clear();
    this.state.fill(ABSENT);
    this.#verified = false;
    return true;
  }

  /** Closes the store and removes it; `between` sees it closed and still there. */
  async close(between?: () => Promise<void>): Promise<void> {
    await this.session.close();
    await between?.();
    await this.engine.remove(this.name);
  }

  async #load(where: Place): Promise<void> {
    const entries = this.#entries;
    const traces = loadTraces(this.dataset, entries, this.#seed);
    // A memtable grows from one flush to the next, so that the first load may not fit into it and a later one does.
    let told_ms = performance.now();
    for (let load = 0; load < LOADS_MAX; load++) {
      for (const [at, trace] of traces.entries()) {
        await this.#write(trace);
        if (performance.now() - told_ms < TELLING_MS) continue;
        told_ms = performance.now();
        // A session that answers at once lets nobody else have a turn: a word to cancel would not be heard.
        await turn();
        this.#loading(Math.round(((at + 1) * 100) / traces.length));
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

/** The batches that load a stage. */
function loadTraces(dataset: Dataset, entries: number, seed: number): BatchTrace[] {
  const choice = { round: 0, seed, there: entries };
  const full = Math.floor(entries / LOAD_BATCH);
  const traces = batchTraces(dataset, LOAD_BATCH, { ...choice, calls: full });
  // What is left over: the next batch would begin again with the first key, which does no harm.
  if (entries % LOAD_BATCH > 0)
    traces.push(...batchTraces(dataset, LOAD_BATCH, { ...choice, calls: full + 1 }).slice(full));
  return traces;
}

/** What a stage that was loaded holds: for those who did not load it themselves. */
export function loadedState(dataset: Dataset): State {
  const state = emptyState(dataset);
  for (const trace of loadTraces(dataset, dataset.keys.length, 1)) note(state, trace);
  return state;
}

function note(state: State, trace: BatchTrace): void {
  trace.numbers.forEach((number, i) => {
    state[number] = trace.values[i] as number;
  });
}

/** Writes a batch, and resolves when it has the level of the row. */
async function writeBatch(session: Session, entries: BatchEntries): Promise<void> {
  if (session.kind === 'async') {
    await session.batch(entries);
    return;
  }
  session.batch(entries);
  session.commit();
}
