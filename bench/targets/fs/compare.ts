/**
 * Runs the suites on the engines.
 *
 * Invariant: the engines of a suite take turns round by round, another one first in each, and do the same calls, drawn from
 * the same seed. A round's time is that of its calls, with the turns that a loop lets go of (every 8 ms; stores merge in
 * them), without the checks. After its rounds every store is walked and compared.
 */

import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { Latencies } from '../../core/latency.ts';
import type { FileEngine, FileStore } from './engine.ts';
import { Model } from './model.ts';
import { type FileRound, type FileRow, makeFileRow } from './row.ts';
import { type Call, type FileSuite, REOPEN } from './suites.ts';

/** How much is run. */
export interface FileExtent {
  readonly isQuick: boolean;
  readonly rounds: number;
  /** A round ends after it, in milliseconds. */
  readonly round_ms: number;
}

const TURN_MS = 8;
const LOAD_BATCH = 500;

const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

/** One engine in one suite. */
class Contestant {
  readonly engine: FileEngine;
  readonly suite: FileSuite;
  readonly rounds: FileRound[] = [];
  problem: string | undefined;
  readonly #directory: string;
  readonly #entries: number;
  #model: Model;
  #store: FileStore | undefined;
  #place = '';
  #number = 0;

  constructor(engine: FileEngine, suite: FileSuite, directory: string, isQuick: boolean) {
    this.engine = engine;
    this.suite = suite;
    this.#directory = directory;
    this.#entries = isQuick ? suite.entries.quick : suite.entries.full;
    this.#model = new Model(this.#entries, suite.order);
  }

  /** Begins with a new store, loaded where the suite wants it; its last one is compared before. */
  async renew(): Promise<void> {
    await this.finish();
    this.#model = new Model(this.#entries, this.suite.order);
    this.#place = join(this.#directory, `${this.suite.name}-${this.engine.name}-${this.#number++}`);
    this.#store = await this.engine.open(this.#place, this.suite.level);
    if (this.suite.isLoaded) await load(this.#store, this.#model);
  }

  async round(round_ms: number): Promise<void> {
    if (this.#store === undefined || !this.suite.isLoaded || this.suite.name === 'delete') await this.renew();
    this.rounds.push(await timed(this.#store as FileStore, this.#model, this.suite, round_ms));
  }

  /** Compares what is there, closes it and removes its files. */
  async finish(): Promise<void> {
    if (this.#store === undefined) return;
    this.problem ??= await this.#model.compare(this.#store);
    await this.#store.close();
    this.#store = undefined;
    rmSync(this.#place, { recursive: true, force: true });
  }
}

async function load(store: FileStore, model: Model): Promise<void> {
  for (let first = 0; first < model.entries; first += LOAD_BATCH) {
    const length = Math.min(LOAD_BATCH, model.entries - first);
    await store.batch(Array.from({ length }, (_, i) => model.set(first + i)));
  }
  await store.settle();
}

async function timed(store: FileStore, model: Model, suite: FileSuite, round_ms: number): Promise<FileRound> {
  const latencies = new Latencies();
  let operations = 0;
  let wrong = 0;
  let elapsed_ms = 0;
  let turn_ends = TURN_MS;
  for (let index = 0; elapsed_ms < round_ms; index++) {
    const call = suite.next(model, index);
    if (call === undefined) break;
    const started = performance.now();
    const given = call.run(store);
    const value = given instanceof Promise ? await given : given;
    const ended = performance.now();
    latencies.add((ended - started) * 1000);
    operations += call.operations;
    elapsed_ms += ended - started;
    if (elapsed_ms >= turn_ends) {
      await turn();
      elapsed_ms += performance.now() - ended;
      turn_ends = elapsed_ms + TURN_MS;
    }
    if (!isRight(call, value)) wrong++;
  }
  return { operations, wrong, elapsed_ms, latencies };
}

function isRight(call: Call, given: unknown): boolean {
  return call.check === undefined || call.check(given);
}

/** One suite on all engines. */
export async function compareEngines(
  engines: readonly FileEngine[],
  suite: FileSuite,
  directory: string,
  { isQuick, rounds, round_ms }: FileExtent,
): Promise<FileRow[]> {
  const contestants = engines.map((engine) => new Contestant(engine, suite, directory, isQuick));
  // The first round warms up.
  for (let round = 0; round <= rounds; round++) {
    for (const contestant of rotated(contestants, round)) {
      await contestant.round(round_ms);
      if (round === 0) contestant.rounds.length = 0;
    }
  }
  const rows: FileRow[] = [];
  for (const contestant of contestants) {
    await contestant.finish();
    rows.push(makeFileRow(suite, contestant.engine, contestant.rounds, contestant.problem));
  }
  return rows;
}

/** `reopen`: a closed store of all keys is opened and one key read. */
export async function compareReopening(
  engines: readonly FileEngine[],
  directory: string,
  { isQuick, rounds }: FileExtent,
): Promise<FileRow[]> {
  const stores = engines.map((engine) => ({
    engine,
    place: join(directory, `${REOPEN.name}-${engine.name}`),
    model: new Model(isQuick ? 10_000 : 100_000, 'random'),
    rounds: [] as FileRound[],
  }));
  for (const { engine, place, model } of stores) {
    const store = await engine.open(place, 'relaxed');
    await load(store, model);
    await store.close();
  }
  for (let round = 0; round <= rounds; round++) {
    for (const { engine, place, model, rounds: found } of rotated(stores, round)) {
      const measured = await reopened(engine, place, model);
      if (round > 0) found.push(measured);
    }
  }
  const suite = { ...REOPEN, level: 'relaxed' } as const;
  return stores.map(({ engine, rounds: found }) => makeFileRow(suite, engine, found, undefined));
}

async function reopened(engine: FileEngine, place: string, model: Model): Promise<FileRound> {
  const latencies = new Latencies(1);
  const number = model.any();
  const started = performance.now();
  const store = await engine.open(place, 'relaxed');
  const value = await store.get(model.key(number));
  const elapsed_ms = performance.now() - started;
  latencies.add(elapsed_ms * 1000);
  const wrong = model.isRight(number, value) ? 0 : 1;
  await store.close();
  return { operations: 1, wrong, elapsed_ms, latencies };
}

function rotated<T>(list: readonly T[], by: number): T[] {
  const first = by % list.length;
  return [...list.slice(first), ...list.slice(0, first)];
}
