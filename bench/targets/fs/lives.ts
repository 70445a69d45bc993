/**
 * The lives (bench/lives) on Node.
 *
 * Invariant: an engine lives a life once, from a new store in a folder of its own to its end: rounds do not apply.
 */

import { existsSync, readdirSync, rmSync, statSync } from 'node:fs';
import { join } from 'node:path';
import type { DiskUse } from '../../core/engine.ts';
import { IDLE_MS, type Life, type LifeStore, live } from '../../suites/lives/life.ts';
import { storyText } from '../../suites/lives/story.ts';
import type { FileExtent } from './compare.ts';
import type { FileEngine, FileStore, Level } from './engine.ts';
import { type FileRow, makeFileRow } from './row.ts';

const LEVEL: Level = 'relaxed';

/** One life on one engine. */
export async function liveOn(
  engine: FileEngine,
  life: Life,
  directory: string,
  { isQuick, round_ms }: FileExtent,
): Promise<FileRow[]> {
  const mode = isQuick ? 'quick' : 'full';
  const { opensMax = Number.POSITIVE_INFINITY } = life.needs.includes('open') ? engine : {};
  const extent = {
    mode,
    steps: Math.min(life.steps[mode], opensMax),
    budget_ms: round_ms * life.rounds[mode],
    idle_ms: IDLE_MS[mode],
    signal: new AbortController().signal,
  } as const;
  const storeOf = (name: string): LifeStore => new FolderStore(engine, join(directory, `${name}-${engine.name}`));
  const { parts, story, problem } = await live(life, extent, storeOf);
  return parts.map(({ phase, round: { tally, elapsed_ms, latencies } }, i) => {
    const suite = { name: life.name, title: phase ?? life.title, level: LEVEL };
    const made = { operations: tally.ops, wrong: tally.wrong, elapsed_ms, latencies };
    const row = makeFileRow(suite, engine, [made], problem);
    return i === 0 ? { ...row, life: story, note: storyText(story) } : row;
  });
}

/** An engine's store in its folder. */
class FolderStore implements LifeStore {
  readonly hasRanges = true;
  readonly #engine: FileEngine;
  readonly #folder: string;
  #store: FileStore | undefined;

  constructor(engine: FileEngine, folder: string) {
    this.#engine = engine;
    this.#folder = folder;
  }

  async open(): Promise<void> {
    this.#store = await this.#engine.open(this.#folder, LEVEL);
  }

  async close(): Promise<void> {
    const store = this.#store;
    this.#store = undefined;
    await store?.close();
  }

  async remove(): Promise<void> {
    rmSync(this.#folder, { recursive: true, force: true });
  }

  set(...args: Parameters<FileStore['set']>): ReturnType<FileStore['set']> {
    return this.#opened().set(...args);
  }

  get(...args: Parameters<FileStore['get']>): ReturnType<FileStore['get']> {
    return this.#opened().get(...args);
  }

  delete(...args: Parameters<FileStore['delete']>): ReturnType<FileStore['delete']> {
    return this.#opened().delete(...args);
  }

  batch(...args: Parameters<FileStore['batch']>): ReturnType<FileStore['batch']> {
    return this.#opened().batch(...args);
  }

  range(...args: Parameters<FileStore['range']>): ReturnType<FileStore['range']> {
    return this.#opened().range(...args);
  }

  deleteRange(...args: Parameters<FileStore['deleteRange']>): ReturnType<FileStore['deleteRange']> {
    return this.#opened().deleteRange(...args);
  }

  commit(): void {
    // Every write was handed over when its call was answered.
  }

  async report(): Promise<Awaited<ReturnType<NonNullable<FileStore['report']>>>> {
    return this.#store?.report?.();
  }

  async disk(): Promise<DiskUse> {
    return useOf(this.#folder);
  }

  #opened(): FileStore {
    if (this.#store === undefined) throw new Error(`The store in ${this.#folder} is closed.`);
    return this.#store;
  }
}

/** The files of a folder; those that go while it is looked at do not count. */
function useOf(folder: string): DiskUse {
  let [files, bytes] = [0, 0];
  for (const entry of existsSync(folder) ? readdirSync(folder, { withFileTypes: true, recursive: true }) : []) {
    if (!entry.isFile()) continue;
    files++;
    bytes += statSync(join(entry.parentPath, entry.name), { throwIfNoEntry: false })?.size ?? 0;
  }
  return { files, bytes };
}
