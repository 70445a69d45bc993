// The lives on stores that are maps, some of which lie, forget or grow: it must be noticed and reported.

import { expect, test, vi } from 'vitest';
import type { Engine, SyncSession } from '../../core/engine.ts';
import { gathered, planOf, rowOf } from '../../core/fixture.ts';
import { compareKeys, type Key } from '../../core/generator.ts';
import type { LifeStory, Row } from '../../core/row.ts';
import { judge } from '../../core/targets.ts';
import { map } from '../../peers/map.ts';
import { FRESH_SCAN, type Life, LifeStore, live, SCAN, WINDOWS } from './life.ts';
import { LIVES } from './lives.ts';
import { peakSpace, slowestShare, storyText } from './story.ts';
import './suite.ts';

type Spoil = (session: SyncSession) => void;

/** An engine whose stores are maps that stay when they are closed; `spoil` makes them lie. */
function mapEngine(more: Partial<Engine> = {}, spoil: Spoil = () => undefined): Engine {
  const sessions = new Map<string, SyncSession>();
  const keysOf = (session: SyncSession, from?: Key): Key[] => {
    const keys: Key[] = [];
    session.range(from, Number.MAX_SAFE_INTEGER, { take: (key) => void keys.push(key) });
    return keys;
  };
  return {
    ...map,
    role: 'varve',
    durabilities: ['relaxed'],
    abilities: [...map.abilities, 'open', 'deleteRange'],
    open: async (name, options) => {
      const known = sessions.get(name);
      if (known !== undefined) return known;
      const session = (await map.open(name, options)) as SyncSession;
      const { range } = session;
      // A Map sorts its keys when it settles: before each range, as a store does.
      session.range = (from, limit, sink) => {
        void session.settle('anywhere', 0);
        range(from, limit, sink);
      };
      session.deleteRange = (from, to) => {
        for (const key of keysOf(session, from)) if (compareKeys(key, to) < 0) session.delete(key);
      };
      session.close = async () => undefined;
      spoil(session);
      sessions.set(name, session);
      return session;
    },
    disk: async (name) => {
      const session = sessions.get(name);
      return { files: 1, bytes: session === undefined ? 0 : keysOf(session).length * 100 };
    },
    remove: async (name) => void sessions.delete(name),
    ...more,
  };
}

const storesOf =
  (engine = mapEngine()) =>
  (name: string) =>
    new LifeStore(engine, name, { durability: 'relaxed', valueBytes: 100 });

const { signal } = new AbortController();
const extent = { mode: 'quick', steps: 60, budgetMs: 60_000, idleMs: 1, signal } as const;

function lifeOf(name: string): Life {
  const life = LIVES.find((one) => one.name === name);
  if (life === undefined) throw new Error(`There is no life ${name}.`);
  return life;
}

test.each(LIVES)('$name: an honest store is right from its first step to its last', async (life) => {
  const { parts, problem, story } = await live(life, extent, storesOf());
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

const forgetful =
  (every: number): Spoil =>
  (session) => {
    const { set } = session;
    let sets = 0;
    session.set = (key, value) => (++sets % every === 0 ? undefined : set(key, value));
  };

/** Faults of stores: the life that notices it, the engine, how many answers are wrong at least, and the problem of its last walk. */
const FAULTS: readonly {
  fault: string;
  life: string;
  spoil?: Spoil;
  engine?: Engine;
  wrong?: number;
  problem?: RegExp;
}[] = [
  {
    fault: 'gives another job than the first',
    life: 'queue',
    spoil: (session) => {
      const { range } = session;
      session.range = (from, limit, sink) => {
        let count = 0;
        const second = { take: (key: Key, value: Uint8Array) => void (count++ > 0 && sink.take(key, value)) };
        range(from, limit === 1 ? 2 : limit, limit === 1 ? second : sink);
      };
    },
    wrong: extent.steps,
  },
  {
    fault: 'keeps the jobs that were done',
    life: 'queue',
    spoil: (session) => {
      session.delete = () => undefined;
    },
    problem: /was due/,
  },
  {
    fault: 'keeps a day that was deleted',
    life: 'rotate',
    spoil: (session) => {
      session.deleteRange = () => undefined;
    },
    wrong: 1,
    problem: /was due/,
  },
  { fault: 'loses an increment', life: 'counters', spoil: forgetful(7), wrong: 1 },
  { fault: 'keeps an old document', life: 'overwrite-steady', spoil: forgetful(5), problem: /has other bytes/ },
  { fault: 'comes back empty', life: 'sessions', engine: { ...mapEngine(), open: map.open }, wrong: 1 },
];

test.each(FAULTS)('a store is found out that $fault', async ({ life, spoil, engine, wrong = 0, problem }) => {
  const { parts, problem: found } = await live(lifeOf(life), extent, storesOf(engine ?? mapEngine({}, spoil)));
  expect(parts.reduce((sum, { round }) => sum + round.tally.wrong, 0)).toBeGreaterThanOrEqual(wrong);
  if (problem !== undefined) expect(found).toMatch(problem);
});

test.each(['queue', 'rotate'])('%s: a life whose time is up ends early, its store is as its model', async (name) => {
  const slow = mapEngine({}, (session) => {
    const { set } = session;
    // One that answers later now and then is waited for.
    const later = (...pair: Parameters<typeof set>) => new Promise((done) => setTimeout(() => done(set(...pair)), 2));
    session.set = (...pair) => (String(pair[0]).endsWith('9') ? (later(...pair) as never) : set(...pair));
  });
  const short = { ...extent, steps: 100_000, budgetMs: 100 };
  const { parts, problem, story } = await live(lifeOf(name), short, storesOf(slow));
  expect(problem).toBeUndefined();
  expect(parts[0]?.round.tally.ops).toBeLessThan(10_000);
  // Scans take place many times, however slow the steps are.
  expect(story.samples.length > 3).toBe(name === 'rotate');
  expect(storyText(story)).toContain('of 100k steps');
});

test('a life with a pace takes its time, which is not in its figures', async () => {
  const slow = { ...lifeOf('overwrite-steady'), idles: false, pace: { quick: 500, full: 500 } };
  const since = performance.now();
  const { parts } = await live(slow, extent, storesOf());
  const tookMs = performance.now() - since;
  const leastMs = (extent.steps / 500) * 1000;
  // The last pause may end a little early.
  expect(tookMs).toBeGreaterThan(leastMs - 20);
  expect(parts[0]?.round.tally.ops).toBe(extent.steps);
  expect(parts[0]?.round.elapsedMs).toBeLessThan(tookMs - leastMs / 2);
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

const verdicts = (...rows: Row[]) => judge(rows).map(({ cells, reached }) => [cells[3], reached]);

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

test('in the browser a life gives its rows, its story on the first; an engine without a call sits out, and one that fails is reported', async () => {
  // A coarse timer, so that scans are timed in groups.
  const fine = performance.now.bind(performance);
  using _ = vi.spyOn(performance, 'now').mockImplementation(() => Math.floor(fine() * 200) / 200);
  const engines = [
    mapEngine({ name: 'able' }),
    mapEngine({ name: 'without', role: 'peer', abilities: [...map.abilities, 'open'] }),
    mapEngine({ name: 'broken', role: 'peer' }, (session) => {
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
  expect(rows[1]?.groupSize).toBe(rows[2]?.groupSize);
  expect(rows[0]).toMatchObject({ ops: 40, note: expect.stringMatching(/^40\.0 of 40\.0 steps; .*on disk at most/) });
  expect(rows[0]?.life?.samples).toHaveLength(WINDOWS.quick);
  expect(notes).toEqual(['rotate (in the worker) is without without, which has no deleteRange.']);
  expect(problems).toEqual(['rotate (in the worker) on broken: Error: no']);
  expect(judge(rows).map(({ cells }) => cells[0])).toEqual([
    'rotate: median of a scan, of one of a fresh store: worst, rotate, scan (in the worker) able',
    'rotate: p99 of a scan, of one of a fresh store: worst, rotate, scan (in the worker) able',
  ]);
});
