import { expect, test } from 'vitest';
import type { Engine, SyncSession } from './engine.ts';
import { map } from './engines/map.ts';
import type { Plan, RunEvent } from './plan.ts';
import type { Row } from './rows.ts';
import { SuiteRunner } from './runner.ts';

const plan: Plan = {
  mode: 'quick',
  suites: [],
  engines: ['map', 'liar'],
  accesses: ['worker'],
  rounds: 3,
  seed: 1,
  scale: 1,
  custom: { calls: 400 },
};

async function run(
  suites: readonly string[],
  engines: readonly Engine[],
): Promise<{ rows: Row[]; problems: string[] }> {
  const rows: Row[] = [];
  const problems: string[] = [];
  const emit = (event: RunEvent): void => {
    if (event.type === 'row') rows.push(event.row);
    if (event.type === 'problem') problems.push(event.text);
  };
  await new SuiteRunner({ ...plan, suites }, engines, emit, new AbortController().signal).run(['worker']);
  return { rows, problems };
}

/** A Map whose sessions are changed before they are used. */
function bent(bend: (session: SyncSession) => void): Engine {
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

test('a lost write is told, and its row is not verified', async () => {
  const liar = bent((session) => {
    const set = session.set.bind(session);
    let writes = 0;
    session.set = (key, value) => {
      if (++writes % 100 !== 0) set(key, value);
    };
  });
  const { rows, problems } = await run(['write-rand'], [liar]);
  expect(rows[0]?.verified).toBe(false);
  expect(problems[0]).toContain('was due');
});

test('a read of another value is told, and its row is not verified', async () => {
  const liar = bent((session) => {
    const get = session.get.bind(session);
    session.get = (key) => get(key)?.map((byte, i) => (i === 99 ? byte ^ 1 : byte));
  });
  const { rows } = await run(['read-rand-mem'], [liar]);
  expect(rows[0]?.verified).toBe(false);
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

test('a busy store is waited for, and the row tells how often', async () => {
  const busy = new Error('busy');
  const liar = bent((session) => {
    const set = session.set.bind(session);
    let calls = 0;
    session.set = (key, value) => {
      if (++calls % 50 === 0) throw busy;
      set(key, value);
    };
    session.room = (error) => (error === busy ? Promise.resolve() : undefined);
  });
  const { rows, problems } = await run(['write-rand'], [liar]);
  expect(problems).toEqual([]);
  expect(rows[0]).toMatchObject({ verified: true, ops: 1200 });
  expect(rows[0]?.busy).toBeGreaterThan(10);
});
