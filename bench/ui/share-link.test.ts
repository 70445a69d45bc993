import { expect, test } from 'vitest';
import { resultWith, rowWith } from './fixture.ts';
import { resultFrom } from './result-file.ts';
import { figuresOf } from './row-columns.ts';
import { fragmentOf, LINK_MAX, resultInFragment } from './share-link.ts';

const rows = [
  rowWith({ engine: 'varve-sync', role: 'varve', opsPerSecond: 123_456.789, engineVersion: '0.1.0' }),
  rowWith({
    engine: 'indexeddb',
    role: 'peer',
    opsPerSecond: 987.654,
    phase: 'after',
    note: 'closed loop',
    hitRate: 1,
  }),
];

test('a small result comes back out of its address, with four digits', async () => {
  const result = { ...resultWith(rows), problems: ['one "thing"'], plan: { ...resultWith([]).plan, seed: 7 } };
  const fragment = await fragmentOf(result);
  expect(fragment).toMatch(/^run=[\w-]+$/);
  const back = await resultInFragment(`#${fragment}`);
  expect(back?.plan).toEqual(result.plan);
  expect(back?.environment).toEqual(result.environment);
  expect(back?.problems).toEqual(result.problems);
  const [first, second] = back?.rows ?? [];
  expect(first).toMatchObject({ engine: 'varve-sync', engineVersion: '0.1.0', hitRate: null, verified: true });
  expect(first?.opsPerSecond).toBe(123_500);
  expect(second).toMatchObject({ phase: 'after', note: 'closed loop', hitRate: 1 });
});

test('an address without a result has none, and a broken one says what to do', async () => {
  expect(await resultInFragment('')).toBeUndefined();
  expect(await resultInFragment('#results-title')).toBeUndefined();
  const fragment = (await fragmentOf(resultWith(rows))) as string;
  for (const broken of ['run=', 'run=!!', fragment.slice(0, -20), 'run=AAAA']) {
    await expect(resultInFragment(broken)).rejects.toThrow('ask for the file');
  }
});

test('a result that is too long for an address gets none', async () => {
  const many = Array.from({ length: 3000 }, (_, i) =>
    rowWith({ engine: `engine-${Math.imul(i, 2_654_435_761) >>> 0}`, role: 'peer', opsPerSecond: 1000 / (i + 1) }),
  );
  expect(await fragmentOf(resultWith(many))).toBeUndefined();
  expect(((await fragmentOf(resultWith(many.slice(0, 20)))) as string).length).toBeLessThan(LINK_MAX);
});

test('what is no result is refused with a reason', () => {
  expect(() => resultFrom('no')).toThrow('not JSON');
  expect(() => resultFrom('[]')).toThrow('not what a result');
  expect(() => resultFrom('{"environment":{}}')).toThrow('no rows');
  const [row] = rows;
  const bad = (fields: object): string => JSON.stringify({ ...resultWith([]), rows: [{ ...row, ...fields }] });
  expect(() => resultFrom(bad({ role: '<img>' }))).toThrow('Row 1 has no role');
  expect(() => resultFrom(bad({ opsPerSecond: null }))).toThrow('Row 1 has no rate');
  expect(() => resultFrom(bad({ rounds: [1, 'x'] }))).toThrow('a round without a rate');
});

test('a result without the fields of later versions is taken', () => {
  const [row] = rows as [(typeof rows)[0]];
  const { histogram: _h, timeline: _t, engineVersion: _v, ...old } = row;
  const result = resultFrom(JSON.stringify({ ...resultWith([]), rows: [old] }));
  expect(result.rows[0]).toMatchObject({ histogram: '', timeline: [], engine: 'varve-sync' });
});

test('CSV has every figure unrounded', () => {
  const { titles, lines } = figuresOf(resultWith(rows));
  expect(lines[0]?.[titles.indexOf('ops_per_second')]).toBe('123456.789');
  expect(lines[0]?.[titles.indexOf('hit_rate')]).toBe('');
  expect(lines[1]?.[titles.indexOf('phase')]).toBe('after');
});
