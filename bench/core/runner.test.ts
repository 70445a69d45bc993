import { expect, test, vi } from 'vitest';
import { map } from '../peers/map.ts';
import type { Engine, SyncSession } from './engine.ts';
import { gathered, planOf } from './fixture.ts';
import type { Key } from './generator.ts';
import type { RunEvent } from './plan.ts';
import type { Row } from './row.ts';
import '../suites/all.ts';

const run = (suites: readonly string[], engines: readonly Engine[]) => gathered(planOf(suites), engines);

/** A Map whose sessions are changed before they are used. */
function bent(bend: Bend): Engine {
  return {
    ...map,
    name: 'liar',
    open: async (name, options) => {
      const session = await map.open(name, options);
      if (session.kind === 'sync') bend(session);
      return session;
    },
  };
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

type Bend = (session: SyncSession) => void;

/** Ways in which an engine can be wrong: a suite that notices, and a part of its problem. */
const LIES: readonly (readonly [lie: string, suite: string, problem: string, bend: Bend])[] = [
  [
    'a lost write',
    'write-rand',
    'was due',
    (session) => {
      const { set } = session;
      let writes = 0;
      session.set = (key, value) => (++writes % 100 === 0 ? undefined : set.call(session, key, value));
    },
  ],
  [
    'a lost insert',
    'ycsb-d',
    'liar',
    (session) => {
      const { set } = session;
      session.set = (key, value) => (session.get(key) === undefined ? undefined : set.call(session, key, value));
    },
  ],
  [
    'a read of another value',
    'read-rand-mem',
    'liar',
    (session) => {
      const { get } = session;
      session.get = (key) => get.call(session, key)?.map((byte, i) => (i === 99 ? byte ^ 1 : byte));
    },
  ],
  [
    'a range in another order',
    'range-100',
    'was due',
    (session) => {
      const { range } = session;
      session.range = (from, limit, sink) => {
        const entries: [Key, Uint8Array][] = [];
        range.call(session, from, limit, { take: (key, value) => void entries.push([key, value]) });
        for (const [key, value] of entries.reverse()) sink.take(key, value);
      };
    },
  ],
  [
    'a range that leaves an entry out',
    'range-100',
    'liar',
    (session) => {
      const { range } = session;
      session.range = (from, limit, sink) => {
        let taken = 0;
        range.call(session, from, limit, { take: (key, value) => void (++taken === 2 || sink.take(key, value)) });
      };
    },
  ],
  [
    'a delete that does nothing',
    'delete',
    'liar',
    (session) => {
      session.delete = () => undefined;
    },
  ],
];

test.each(LIES)('%s is reported, and the row is not verified', async (_, suite, problem, bend) => {
  const { rows, problems } = await run([suite], [bent(bend)]);
  expect(rows[0]?.verified).toBe(false);
  expect(problems[0]).toContain(problem);
});

test('an engine that throws is left out, and the others go on', async () => {
  const liar = bent((session) => {
    session.get = () => {
      throw new Error('no');
    };
  });
  const { rows, problems } = await run(['read-rand-mem'], [liar, map]);
  expect(rows.map(({ engine }) => engine)).toEqual(['map']);
  expect(problems[0]).toContain('liar');
});

test('an engine that cannot be opened is named, and the others go on', async () => {
  const absent: Engine = { ...map, name: 'liar', open: () => Promise.reject(new Error('There is no OPFS here.')) };
  const { rows, problems } = await run(['write-rand'], [absent, map]);
  expect(rows.map(({ engine }) => engine)).toEqual(['map']);
  expect(problems).toEqual(['write-rand (worker) on liar: Error: There is no OPFS here.']);
});

test('inserts, reads before updates, batched reads and the names of others are verified as well', async () => {
  const suites = ['ycsb-a', 'ycsb-d', 'ycsb-f', 'fillseq', 'overwrite', 'scale-txn', 'custom'];
  const { rows, problems } = await run(suites, [map]);
  expect(problems).toEqual([]);
  expect(rows.map(({ suite, phase, verified }) => [suite, phase, verified])).toEqual([
    ['ycsb-a', undefined, true],
    ['ycsb-d', undefined, true],
    ['ycsb-f', undefined, true],
    ['fillseq', undefined, true],
    ['overwrite', undefined, true],
    ['scale-txn', 'write', true],
    ['scale-txn', 'read', true],
    ['custom', undefined, true],
  ]);
});

test('a load that takes long reports how far it is, can be cancelled, and removes its store', async () => {
  const calls: string[] = [];
  // The clock goes on by 0.4 s with each batch, and by next to nothing with each look at it: a word every third batch.
  let now_ms = 0;
  vi.spyOn(performance, 'now').mockImplementation(() => {
    now_ms += 0.001;
    return now_ms;
  });
  const slow = bent((session) => {
    const { batch, close } = session;
    session.batch = (entries) => {
      now_ms += 400;
      batch.call(session, entries);
    };
    session.close = () => {
      calls.push('closed');
      return close.call(session);
    };
  });
  const engine: Engine = {
    ...slow,
    remove: async (name) => {
      calls.push(`removed ${name}`);
      await slow.remove(name);
    },
  };
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
