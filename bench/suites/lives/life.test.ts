// The lives on stores that are maps, some of which lie, forget or grow: it must be noticed, and told.

import { describe, expect, test } from 'vitest';
import type { Engine, SyncSession } from '../../core/engine.ts';
import { gathered, planOf, rowOf } from '../../core/fixture.ts';
import { compareKeys, type Key } from '../../core/generator.ts';
import type { LifeStory, Row } from '../../core/row.ts';
import { judge } from '../../core/targets.ts';
import { map } from '../../peers/map.ts';
import { FRESH_SCAN, type LifeStore, live, type Pair, SCAN, WINDOWS } from './life.ts';
import { LIVES } from './lives.ts';
import { judgeLives, peakSpace, slowestShare, storyText } from './story.ts';
import './suite.ts';

type Spoil = (store: LifeStore, entries: Map<string, Uint8Array>) => Partial<LifeStore>;

/** A store that is a map; `spoil` makes it lie. */
function mapStore(spoil: Spoil = () => ({})): LifeStore {
  const entries = new Map<string, Uint8Array>();
  const store: LifeStore = {
    hasRanges: true,
    open: async () => undefined,
    close: async () => undefined,
    remove: async () => entries.clear(),
    commit: () => undefined,
    set: (key, value) => void entries.set(key, value),
    // One that answers later is waited for.
    get: async (key) => entries.get(key),
    delete: (key) => void entries.delete(key),
    batch: (pairs) => {
      for (const [key, value] of pairs) entries.set(key, value);
    },
    range: (gte, limit) =>
      sorted(entries)
        .filter(([key]) => key >= gte)
        .slice(0, limit),
    deleteRange: (gte, lt) => {
      for (const key of entries.keys()) if (key >= gte && key < lt) entries.delete(key);
    },
    disk: async () => ({
      files: 1,
      bytes: sorted(entries).reduce((sum, [key, value]) => sum + key.length + value.length, 0),
    }),
  };
  return { ...store, ...spoil(store, entries) };
}

function sorted(entries: ReadonlyMap<string, Uint8Array>): Pair[] {
  return [...entries].sort(([a], [b]) => (a < b ? -1 : 1));
}

const extent = {
  mode: 'quick',
  steps: 60,
  budget_ms: 60_000,
  idle_ms: 1,
  signal: new AbortController().signal,
} as const;

async function lived(
  name: string,
  spoil?: Spoil,
): Promise<{ wrong: number; problem: string | undefined; story: LifeStory }> {
  const life = LIVES.find((one) => one.name === name);
  if (life === undefined) throw new Error(`There is no life ${name}.`);
  const { parts, problem, story } = await live(life, extent, () => mapStore(spoil));
  return { wrong: parts.reduce((sum, { round }) => sum + round.tally.wrong, 0), problem, story };
}

test.each(LIVES)('$name: an honest store is right from its first step to its last', async (life) => {
  const { parts, problem, story } = await live(life, extent, () => mapStore());
  expect(problem).toBeUndefined();
  expect(parts.map(({ round }) => round.tally.wrong)).toEqual(parts.map(() => 0));
  expect(parts[0]?.round.tally.ops).toBe(extent.steps);
  expect(story.samples).toHaveLength(WINDOWS.quick);
  expect(story.samples.at(-1)?.steps).toBe(extent.steps);
  for (const { stepsPerSecond, p99, disk } of story.samples) {
    expect(stepsPerSecond).toBeGreaterThan(0);
    expect(p99).toBeGreaterThanOrEqual(0);
    expect(disk?.bytes).toBeGreaterThan(0);
  }
  expect(story.livingBytes).toBeGreaterThan(0);
  expect(story.idle === undefined).toBe(life.idles !== true);
});

describe('a store is found out that', () => {
  test('gives another job than the first', async () => {
    const { wrong } = await lived('queue', (store) => ({
      range: async (gte, limit) => (limit === 1 ? (await store.range(gte, 2)).slice(1) : store.range(gte, limit)),
    }));
    expect(wrong).toBeGreaterThanOrEqual(extent.steps);
  });

  test('keeps the jobs that were done', async () => {
    expect((await lived('queue', () => ({ delete: () => undefined }))).problem).toMatch(/was due/);
  });

  test('keeps a day that was deleted', async () => {
    const { wrong, problem } = await lived('rotate', () => ({ deleteRange: () => undefined }));
    expect(problem).toMatch(/was due/);
    expect(wrong).toBeGreaterThan(0);
  });

  test('loses an increment', async () => {
    let sets = 0;
    const { wrong } = await lived('counters', (store) => ({
      set: (key, value) => (++sets % 7 === 0 ? undefined : store.set(key, value)),
    }));
    expect(wrong).toBeGreaterThan(0);
  });

  test('keeps an old version of a document', async () => {
    let saves = 0;
    const { problem } = await lived('overwrite-steady', (store) => ({
      set: (key, value) => (++saves === 5 ? undefined : store.set(key, value)),
    }));
    expect(problem).toMatch(/documents\/.* was due/);
  });

  test('comes back empty', async () => {
    const { wrong } = await lived('sessions', (_, entries) => ({ open: async () => entries.clear() }));
    expect(wrong).toBeGreaterThan(0);
  });
});

test('a life whose time is up ends early, and its store is where its model is', async () => {
  const [queue] = LIVES as [(typeof LIVES)[number]];
  const slow = mapStore((store) => ({
    set: (key, value) => new Promise((resolve) => setTimeout(() => resolve(store.set(key, value)), 2)),
  }));
  const short = { ...extent, steps: 100_000, budget_ms: 100 };
  const { parts, problem, story } = await live(queue, short, () => slow);
  expect(problem).toBeUndefined();
  expect(parts[0]?.round.tally.ops).toBeLessThan(1000);
  expect(slowestShare(story)).toBeUndefined();
  expect(storyText(story)).toContain('of 100k steps');
});

test('a life with a pace takes its time, which is not in its figures', async () => {
  const life = LIVES.find(({ pace }) => pace !== undefined);
  if (life === undefined) throw new Error('No life has a pace.');
  const slow = { ...life, idles: false, pace: { quick: 500, full: 500 } };
  const since = performance.now();
  const { parts } = await live(slow, extent, () => mapStore());
  const took_ms = performance.now() - since;
  const least_ms = (extent.steps / 500) * 1000;
  // The last pause may end a little early.
  expect(took_ms).toBeGreaterThan(least_ms - 20);
  expect(parts[0]?.round.tally.ops).toBe(extent.steps);
  expect(parts[0]?.round.elapsed_ms).toBeLessThan(took_ms - least_ms / 2);
});

const story = (rates: readonly number[], more: Partial<LifeStory> = {}): LifeStory => ({
  planned: rates.length * 10_000,
  samples: rates.map((stepsPerSecond, i) => ({
    ...{ steps: (i + 1) * 10_000, at_ms: i, stepsPerSecond, p99: 1, disk: { files: 2, bytes: 30e6 } },
  })),
  livingBytes: 20e6,
  ...more,
});

const row = (suite: string, more: Partial<Row> = {}): Row =>
  rowOf({ engine: 'varve-sync', role: 'varve', rounds: [100], suite, p50: 1, p99: 1, ...more });

const verdicts = (...rows: Row[]) => judgeLives(rows).map(({ cells, reached }) => [cells[3], reached]);

test('a queue that slows below 0.7 of its first window misses its target, on its worst row', () => {
  expect(slowestShare(story([100, 120, 80]))).toBeCloseTo(0.8);
  const slow = row('queue', { life: story([100, 69, 100]), engine: 'varve', access: 'page' });
  expect(verdicts(row('queue', { life: story([100, 80]) }), slow)).toEqual([['0.69x', false]]);
  expect(verdicts(row('queue', { life: story([100, 70]) }))).toEqual([['0.70x', true]]);
  // A window that was cut short says nothing.
  const cut = story([100, 90, 10]);
  const samples = cut.samples.map((sample, i) => (i === 2 ? { ...sample, steps: 21_000 } : sample));
  expect(slowestShare({ samples })).toBeCloseTo(0.9);
  // Of a quick run, whose windows are short.
  const quick = { ...cut, samples: cut.samples.map((sample) => ({ ...sample, steps: sample.steps / 10 })) };
  expect(verdicts(row('queue', { life: quick }))).toEqual([]);
});

test('a queue is first only where no peer of its place is quicker', () => {
  const peer = row('queue', { engine: 'sqlite-wasm', role: 'peer', rounds: [125], opsPerSecond: 125 });
  expect(verdicts(row('queue'), peer)).toEqual([['0.80x', false]]);
  expect(verdicts(row('queue'), { ...peer, access: 'page' })).toEqual([]);
});

test('scans are judged beside those of a fresh store, space beside what lives', () => {
  const scan = row('rotate', { phase: SCAN, p50: 3, p99: 30 });
  const fresh = row('rotate', { phase: FRESH_SCAN, p50: 2, p99: 9 });
  expect(verdicts(scan, fresh)).toEqual([
    ['1.50x', true],
    ['3.33x', false],
  ]);
  const life = story([1, 1], { idle: { after_ms: 1, bytes: 28e6 } });
  expect(peakSpace(life)).toBeCloseTo(1.5);
  expect(verdicts(row('overwrite-steady', { life }))).toEqual([
    ['1.50x', true],
    ['1.40x', false],
  ]);
  // So little is mostly a log.
  expect(verdicts(row('overwrite-steady', { life: { ...life, livingBytes: 1e6 } }))).toEqual([]);
});

/** A Map that sorts its keys for each range, as a store does. */
function sortedMap(more: Partial<Engine>, bend: (session: SyncSession) => void = () => undefined): Engine {
  return {
    ...map,
    role: 'varve',
    durabilities: ['relaxed'],
    abilities: [...map.abilities, 'open'],
    open: async (name, options) => {
      const session = (await map.open(name, options)) as SyncSession;
      const range = session.range.bind(session);
      const keys: Key[] = [];
      session.range = (from, limit, sink) => {
        void session.settle('anywhere', 0);
        range(from, limit, sink);
      };
      session.deleteRange = (from, to) => {
        keys.length = 0;
        session.range(from, Number.MAX_SAFE_INTEGER, { take: (key) => void keys.push(key) });
        for (const key of keys) if (compareKeys(key, to) < 0) session.delete(key);
      };
      bend(session);
      return session;
    },
    ...more,
  };
}

test('in the browser a life gives its rows, its story on the first; an engine without a call sits out, and one that fails is told', async () => {
  const engines = [
    sortedMap({ name: 'able', abilities: [...map.abilities, 'open', 'deleteRange'] }),
    sortedMap({ name: 'without', role: 'peer' }),
    sortedMap({ name: 'broken', role: 'peer', abilities: [...map.abilities, 'deleteRange'] }, (session) => {
      session.set = () => {
        throw new Error('no');
      };
    }),
  ];
  const { rows, notes, problems } = await gathered(planOf(['rotate'], { custom: { calls: 40 } }), engines);
  expect(rows.map(({ phase, unit, verified }) => [phase, unit, verified])).toEqual([
    ['day', 'steps', true],
    [SCAN, 'ranges', true],
    [FRESH_SCAN, 'ranges', true],
  ]);
  expect(rows[0]).toMatchObject({ ops: 40, note: expect.stringMatching(/^40\.0 of 40\.0 steps; .*cannot be seen/) });
  expect(rows[0]?.life?.samples).toHaveLength(WINDOWS.quick);
  expect(notes).toEqual(['rotate (worker) is without without, which has no deleteRange.']);
  expect(problems).toEqual(['rotate (worker) on broken: Error: no']);
  expect(judge(rows).map(({ cells }) => cells[0])).toEqual([
    'rotate: median of a scan, of one of a fresh store: worst, able (worker)',
    'rotate: p99 of a scan, of one of a fresh store: worst, able (worker)',
  ]);
});
