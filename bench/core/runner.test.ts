import { expect, test, vi } from 'vitest';
import { map } from '../peers/map.ts';
import type { Engine, SyncSession } from './engine.ts';
import { gathered, planOf } from './fixture.ts';
import type { Key } from './generator.ts';
import type { RunEvent } from './plan.ts';
import type { Row } from './row.ts';
import '../suites/all.ts';

const run = (suites: readonly string[], engines: readonly Engine[]) => gathered(planOf(suites), engines);

type Bend = (real: SyncSession) => Partial<SyncSession>;

function bent(bend: Bend): Engine {
  const open: Engine['open'] = async (name, options) => {
    const real = (await map.open(name, options)) as SyncSession;
    return { ...real, ...bend(real) };
  };
  return { ...map, name: 'liar', open };
}

test('every suite that a Map can run is verified and counts what it did', async () => {
  const suites = ['write-rand', 'write-batch', 'read-rand-mem', 'read-miss', 'range-100', 'mixed-70', 'delete'];
  const { rows, problems } = await run(suites, [map]);
  expect(problems).toEqual([]);
  expect(rows.map(({ suite, verified }) => [suite, verified])).toEqual(suites.map((suite) => [suite, true]));
  const row = (suite: string): Row | undefined => rows.find((found) => found.suite === suite);
  expect(row('write-rand')).toMatchObject({ hitRate: null, unit: 'ops' });
  expect(row('write-batch')).toMatchObject({ unit: 'entries' });
  expect(row('read-rand-mem')).toMatchObject({ hitRate: 1 });
  expect(row('read-miss')).toMatchObject({ hitRate: 0 });
  expect(row('range-100')).toMatchObject({ hitRate: 1, unit: 'ranges' });
  // A round ends early when its time is up, so on a busy machine there are fewer than 3 rounds of 400.
  for (const { ops } of rows) expect(ops).toBeGreaterThan(0);
  for (const { ops } of rows) expect(ops).toBeLessThanOrEqual(1200);
});

const ranged =
  (change: (entries: [Key, Uint8Array][]) => [Key, Uint8Array][]): Bend =>
  (real) => ({
    range: (from, limit, sink) => {
      const entries: [Key, Uint8Array][] = [];
      real.range(from, limit, { take: (key, value) => void entries.push([key, value]) });
      for (const [key, value] of change(entries)) sink.take(key, value);
    },
  });

const forgetful: Bend = (real) => {
  let writes = 0;
  return { set: (key, value) => (++writes % 100 === 0 ? undefined : real.set(key, value)) };
};
const onlyUpdates: Bend = (real) => ({
  set: (key, value) => (real.get(key) === undefined ? undefined : real.set(key, value)),
});
const otherByte: Bend = (real) => ({ get: (key) => real.get(key)?.map((byte, i) => (i === 99 ? byte ^ 1 : byte)) });

/** Ways in which an engine can be wrong: a suite that notices, and a part of its problem. */
const LIES: readonly (readonly [lie: string, suite: string, problem: string, bend: Bend])[] = [
  ['a lost write', 'write-rand', 'was due', forgetful],
  ['a lost insert', 'ycsb-d', 'liar', onlyUpdates],
  ['a read of another value', 'read-rand-mem', 'liar', otherByte],
  ['a range in another order', 'range-100', 'was due', ranged((entries) => entries.reverse())],
  ['a range that leaves an entry out', 'range-100', 'liar', ranged((entries) => entries.filter((_, i) => i !== 1))],
  ['a delete that does nothing', 'delete', 'liar', () => ({ delete: () => undefined })],
];

test.each(LIES)('%s is reported, and the row is not verified', async (_, suite, problem, bend) => {
  const { rows, problems } = await run([suite], [bent(bend)]);
  expect(rows[0]?.verified).toBe(false);
  expect(problems[0]).toContain(problem);
});

test('an engine that throws is left out, and the others go on', async () => {
  const get = (): never => {
    throw new Error('no');
  };
  const liar = bent(() => ({ get }));
  const { rows, problems } = await run(['read-rand-mem'], [liar, map]);
  expect(rows.map(({ engine }) => engine)).toEqual(['map']);
  expect(problems[0]).toContain('liar');
});

test('an engine that cannot be opened is named, and the others go on', async () => {
  const absent: Engine = { ...map, name: 'liar', open: () => Promise.reject(new Error('There is no OPFS here.')) };
  const { rows, problems } = await run(['write-rand'], [absent, map]);
  expect(rows.map(({ engine }) => engine)).toEqual(['map']);
  expect(problems).toEqual(['write-rand (in the worker) on liar: Error: There is no OPFS here.']);
});

test('inserts, reads before updates, batched reads and the names of others are verified as well', async () => {
  const suites = ['ycsb-a', 'ycsb-d', 'ycsb-f', 'fillseq', 'overwrite', 'scale-txn', 'custom'];
  const { rows, problems } = await run(suites, [map]);
  expect(problems).toEqual([]);
  const parts = suites.flatMap((suite) =>
    suite === 'scale-txn' ? ['write', 'read', 'iterate'].map((phase) => `${suite} ${phase}`) : [`${suite} `],
  );
  expect(rows.map(({ suite, phase = '' }) => `${suite} ${phase}`)).toEqual(parts);
  expect(rows.every(({ verified }) => verified)).toBe(true);
});

test('reads and writes of a mix are timed apart', async () => {
  let nowMs = 0;
  const pass = (ms: number): number => {
    nowMs += ms;
    return nowMs;
  };
  vi.spyOn(performance, 'now').mockImplementation(() => pass(0.0001));
  const slow = bent(({ get, set }) => ({
    get: (key) => (pass(0.001) > 0 ? get(key) : undefined),
    set: (key, value) => (pass(0.02) > 0 ? set(key, value) : undefined),
  }));
  const { rows, problems } = await run(['read-rand-mem', 'mixed-90', 'ycsb-d'], [{ ...slow, role: 'peer' }]);
  vi.restoreAllMocks();
  expect(problems).toEqual([]);
  const latencies = rows.map(({ reads, writes }) => [reads, writes].map((kind) => kind && Math.round(kind.p50)));
  expect(latencies).toEqual([
    [undefined, undefined],
    [1, 20],
    [1, 20],
  ]);
});

test('a load that takes long reports how far it is, can be cancelled, and removes its store', async () => {
  const calls: string[] = [];
  // The clock goes on by 0.4 s with each batch, and by next to nothing with each look at it: a word every third batch.
  let nowMs = 0;
  vi.spyOn(performance, 'now').mockImplementation(() => {
    nowMs += 0.001;
    return nowMs;
  });
  const slow = bent((real) => ({
    batch: (entries) => {
      nowMs += 400;
      real.batch(entries);
    },
    close: async () => void calls.push('closed'),
  }));
  const engine: Engine = { ...slow, remove: async (name) => void calls.push(`removed ${name}`) };
  const texts: string[] = [];
  const cancel = new AbortController();
  const emit = (event: RunEvent): void => {
    if (event.type !== 'progress') return;
    texts.push(event.text);
    if (event.text.includes('60 % loaded')) cancel.abort(new Error('cancelled'));
  };
  const running = gathered(planOf(['read-rand-mem']), [engine], ['worker'], { emit, signal: cancel.signal });
  await expect(running)
    .rejects.toThrow('cancelled')
    .finally(() => vi.restoreAllMocks());
  const name = 'bench-liar-0';
  expect(texts.slice(1).map((text) => text.replace(/.* prepares/, ''))).toEqual([', 30 % loaded', ', 60 % loaded']);
  expect(calls).toEqual([`removed ${name}`, 'closed', `removed ${name}`]);
});
