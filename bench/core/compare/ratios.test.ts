import { expect, test } from 'vitest';
import { rowOf } from '../fixture.ts';
import { seriesOf } from './ratios.ts';

const varve = rowOf({ engine: 'varve-sync', role: 'varve', rounds: [200, 300, 400] });

test('ratios are of the same rounds', () => {
  const map = rowOf({ engine: 'map', role: 'floor', rounds: [400, 300, 200] });
  const [series] = seriesOf([[varve, map]]);
  expect(series?.against).toBe('map');
  expect(series?.runs[0]?.map(Math.exp).map((ratio) => Number(ratio.toFixed(6)))).toEqual([0.5, 1, 2]);
});

test('what the targets compare a row with comes first, then a floor, then a peer', () => {
  const rows = [
    rowOf({ engine: 'indexeddb', role: 'peer', rounds: [1, 1, 1] }),
    rowOf({ engine: 'opfs-append', role: 'floor', rounds: [1, 1, 1] }),
    rowOf({ engine: 'map', role: 'floor', rounds: [1, 1, 1] }),
  ];
  const beside = (count: number): string | undefined => seriesOf([[varve, ...rows.slice(0, count)]])[0]?.against;
  expect([beside(3), beside(2), beside(1)]).toEqual(['map', 'opfs-append', 'indexeddb']);
  expect(seriesOf([[varve]])).toEqual([]);
});

test('rows that were not verified, of other suites or phases, are not compared', () => {
  const map = rowOf({ engine: 'map', role: 'floor', rounds: [1, 1, 1] });
  expect(seriesOf([[varve, { ...map, verified: false }]])).toEqual([]);
  expect(seriesOf([[{ ...varve, verified: false }, map]])).toEqual([]);
  expect(seriesOf([[varve, { ...map, suite: 'read-miss' }]])).toEqual([]);
  expect(seriesOf([[varve, { ...map, phase: 'after' }]])).toEqual([]);
});

test('a row has to be in every run', () => {
  const map = rowOf({ engine: 'map', role: 'floor', rounds: [1, 1, 1] });
  expect(seriesOf([[varve, map], [varve]])).toEqual([]);
  expect(
    seriesOf([
      [varve, map],
      [varve, map],
    ])[0]?.runs,
  ).toHaveLength(2);
});
