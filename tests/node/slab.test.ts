/** Copies cut from slabs: every place where a value can lie, and a later copy never touches an earlier one. */

import { expect, test } from 'vitest';
import { Slab } from '../../js/src/synchronous/slab.ts';
import type { EngineMemory } from '../../js/src/wasm/memory.ts';

const u8 = Uint8Array.from({ length: 32_768 }, (_, i) => (i * 31 + (i >> 8)) & 0xff);
const memory = { u8, i32: new Int32Array(u8.buffer) } as unknown as EngineMemory;
const LENGTHS = [0, 1, 63, 64, 65, 66, 67, 68, 100, 127, 1023, 1024, 1025, 8191, 8192, 8193, 20_000];

test('a copy has the bytes that were there, wherever it begins and ends', () => {
  const slab = new Slab();
  for (const length of LENGTHS) {
    for (let start = 0; start < 8; start++) {
      expect(slab.copy(memory, start, start + length)).toEqual(u8.slice(start, start + length));
    }
  }
});

test('copies stay as they were while others are made, over many slabs', () => {
  const slab = new Slab();
  const copies = Array.from({ length: 3000 }, (_, i) => {
    const start = (i * 37) % 4096;
    const end = start + 65 + (i % 200);
    return { copy: slab.copy(memory, start, end), expected: u8.slice(start, end) };
  });
  for (const { copy, expected } of copies) expect(copy).toEqual(expected);
});

test('writing into a copy changes neither the memory nor another copy', () => {
  const slab = new Slab();
  const first = slab.copy(memory, 1, 101);
  const second = slab.copy(memory, 3, 103);
  first.fill(0);
  expect(second).toEqual(u8.slice(3, 103));
  expect(memory.u8[1]).toBe(31);
});
