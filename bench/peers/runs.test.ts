import { expect, test } from 'vitest';
import type { PointCall } from '../core/engine.ts';
import { pack, unpack } from './remote.ts';
import { runsOf, waveOfRuns } from './runs.ts';

const value = (...bytes: number[]): Uint8Array => Uint8Array.from(bytes);

const wave: readonly PointCall[] = [
  { key: 'a', value: value(1) },
  { key: 'b', value: value(2, 3) },
  { key: 'a', value: undefined },
  { key: 'b', value: null },
  { key: 'b', value: undefined },
];

test('neighbours of one kind are one run, and runs keep the order of the calls', () => {
  expect(runsOf(wave).map(({ kind, from, keys, values }) => [kind, from, keys, values.length])).toEqual([
    ['set', 0, ['a', 'b'], 2],
    ['get', 2, ['a'], 0],
    ['delete', 3, ['b'], 0],
    ['get', 4, ['b'], 0],
  ]);
  expect(runsOf([])).toEqual([]);
});

test('the values that a run reads come back at the places of its calls', async () => {
  const values = await waveOfRuns({
    set: async () => undefined,
    get: async ({ keys }) => keys.map((key) => (key === 'a' ? value(1) : undefined)),
    delete: async () => undefined,
  })(wave);
  expect(values).toEqual([undefined, undefined, value(1), undefined, undefined]);
});

test('a wave is the same after it was packed, sent and unpacked', () => {
  const packed = pack(wave.map((call) => call.value));
  const sent = structuredClone(packed, { transfer: [packed.bytes.buffer] });
  expect(unpack(sent)).toEqual(wave.map(({ value: one }) => one));
  expect(unpack(pack([]))).toEqual([]);
  expect(unpack(pack([value()]))).toEqual([value()]);
});
