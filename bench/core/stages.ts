/**
 * The loaded stores of a run: opened when a suite first needs one, kept for the next suite with the same fixture, and
 * weighed when they are let go of.
 *
 * Invariant: a stage is either with a suite or kept here, never both. `release` closes all that are kept.
 */

import type { Durability, Engine } from './engine.ts';
import { type Dataset, makeDataset } from './generator.ts';
import type { Emit, Plan } from './plan.ts';
import { Stage } from './stage.ts';
import { storageReport } from './storage.ts';
import type { Tailored } from './tailor.ts';
import type { Suite } from './workloads.ts';

export class Stages {
  readonly #plan: Plan;
  readonly #emit: Emit;
  /** Loaded stages that the next suite may use again, by engine and fixture. */
  readonly #kept = new Map<string, { stage: Stage; suite: Suite }>();
  #dataset: { key: string; dataset: Dataset } | undefined;
  #stores = 0;

  constructor(plan: Plan, emit: Emit) {
    this.#plan = plan;
    this.#emit = emit;
  }

  /** Lets go of the stages that a suite will not use. */
  async prepare(next: Tailored): Promise<void> {
    const fixture = `|${fixtureOf(next)}`;
    await this.#release((key) => !key.endsWith(fixture));
  }

  /** The kept stage of an engine, or a new one, loaded; `loading` hears of a load that takes long. */
  async take(
    one: Tailored,
    engine: Engine,
    durability: Durability,
    loading: (percent: number) => void,
  ): Promise<Stage> {
    const { suite, entries } = one;
    const key = keyOf(one, engine, durability);
    const kept = this.#kept.get(key);
    // A suite that begins with an empty store takes one that was emptied, and no other.
    if (kept !== undefined && kept.suite.fresh === suite.fresh) {
      this.#kept.delete(key);
      return kept.stage;
    }
    const name = `bench-${engine.name}-${this.#stores++}`;
    const { seed, custom } = this.#plan;
    const { memoryBytes, storage } = custom;
    const dataset = this.#datasetOf(one);
    const { load } = suite;
    return Stage.open({ engine, name, dataset, durability, load, entries, seed, memoryBytes, storage, loading });
  }

  /** Keeps the stage of a suite that is done. */
  keep(one: Tailored, stage: Stage): void {
    this.#kept.set(keyOf(one, stage.engine, stage.options.durability), { stage, suite: one.suite });
  }

  /** Forgets a stage that somebody else closes. */
  forget(one: Tailored, engine: Engine, durability: Durability): void {
    this.#kept.delete(keyOf(one, engine, durability));
  }

  /** Closes all stages that are kept. */
  async release(): Promise<void> {
    await this.#release(() => true);
  }

  async #release(which: (key: string) => boolean): Promise<void> {
    for (const [key, { stage, suite }] of this.#kept) {
      if (!which(key)) continue;
      this.#kept.delete(key);
      const storage = await storageReport(stage, suite);
      if (storage !== undefined) this.#emit({ type: 'storage', storage });
    }
  }

  #datasetOf(one: Tailored): Dataset {
    const key = datasetKey(one);
    if (this.#dataset?.key !== key) {
      const { suite, entries, reserve, keyBytes } = one;
      const choice = { keyBytes, seed: this.#plan.seed };
      this.#dataset = { key, dataset: makeDataset(suite.keys, entries + reserve, suite.valueBytes, choice) };
    }
    return this.#dataset.dataset;
  }
}

function keyOf(one: Tailored, engine: Engine, durability: Durability): string {
  return `${engine.name}|${durability}|${fixtureOf(one)}`;
}

/** Suites with the same fixture use the same stage, one after the other. */
function fixtureOf(one: Tailored): string {
  return `${one.suite.load} ${datasetKey(one)}`;
}

function datasetKey({ suite, entries, reserve, keyBytes }: Tailored): string {
  return `${suite.keys} ${entries} ${reserve} ${suite.valueBytes} ${keyBytes ?? ''}`;
}
