// The order of keys as collections know it, and the ranges that they search, compared with the bytes of the store's keys.

import fc from 'fast-check';
import { expect, test } from 'vitest';
import { KeyFormat } from '../../js/src/codec/key-format.ts';
import { encodeKey } from '../../js/src/codec/keys.ts';
import { compareBytes, encodeRange, halfOpen } from '../../js/src/codec/range.ts';
import { afterPrefix, checkKey, compareKeys, NESTING_MAX, TOP, textOf } from '../../js/src/collections/key.ts';
import { rangeOf, whereOf } from '../../js/src/collections/where.ts';
import type { Key } from '../../js/src/types.ts';

const UNIT = fc.constantFrom('\0', 'a', 'b', '\ud7ff', '\ue000', '\uffff', '𐀀', '\u{10ffff}');
const TEXT = fc.array(UNIT, { maxLength: 3 }).map((units) => units.join(''));
const BYTES = fc.array(fc.constantFrom(0, 1, 0xfe, 0xff), { maxLength: 3 }).map((bytes) => Uint8Array.from(bytes));
const PLAIN: fc.Arbitrary<Key> = fc.oneof(
  TEXT,
  BYTES,
  fc.double({ noNaN: true }),
  fc.integer({ min: -2, max: 2 }),
  fc.constantFrom(Number.NEGATIVE_INFINITY, Number.POSITIVE_INFINITY, -0),
  fc.bigInt({ min: -300n, max: 300n }),
  fc.boolean(),
  fc.integer({ min: -5, max: 5 }).map((ms) => new Date(ms)),
);
const KEY: fc.Arbitrary<Key> = fc.letrec<{ key: Key; list: Key }>((tie) => ({
  key: fc.oneof({ maxDepth: NESTING_MAX, depthSize: 'small' }, PLAIN, tie('list')),
  list: fc.array(tie('key'), { maxLength: 3 }),
})).key;
const sign = (n: number): number => Math.sign(n);

test('keys compare as their bytes do, and have one text each', () => {
  fc.assert(
    fc.property(KEY, KEY, (a, b) => {
      const order = compareBytes(encodeKey(a), encodeKey(b));
      expect(sign(compareKeys(a, b))).toBe(sign(order));
      expect(textOf(a) === textOf(b)).toBe(order === 0);
    }),
    { numRuns: 5000 },
  );
});

test('no accepted key comes after the top, and no deeper key is accepted', () => {
  let deepest: Key = new Date(8.64e15);
  for (let i = 0; i < NESTING_MAX; i++) deepest = [deepest, deepest];
  expect(checkKey(deepest, 'It')).toStrictEqual(deepest);
  expect(compareBytes(encodeKey(deepest), encodeKey(TOP))).toBeLessThan(0);
  expect(compareBytes(encodeKey(['a', deepest]), encodeKey(['a', TOP]))).toBeLessThan(0);
  expect(() => checkKey([deepest], 'It')).toThrow('It is no key');
  for (const other of [null, undefined, {}, Number.NaN, new Date(Number.NaN), Symbol.iterator, [null]]) {
    expect(() => checkKey(other, 'It')).toThrow(expect.objectContaining({ code: 'VARVE_INVALID_KEY' }));
  }
  fc.assert(fc.property(KEY, (key) => compareBytes(encodeKey(key), encodeKey(TOP)) < 0));
});

/** Whether a range of the store has a key. */
function isIn(range: ReturnType<typeof rangeOf>, key: Key): boolean {
  const bytes = encodeRange(range, new KeyFormat<Key>(undefined));
  if (bytes.empty) return false;
  const { start, end } = halfOpen(bytes);
  const at = encodeKey(key);
  return compareBytes(start, at) <= 0 && (end.length === 0 || compareBytes(at, end) < 0);
}

/** Whether a value begins with this. */
function begins(value: Key, prefix: string | Uint8Array | readonly Key[]): boolean {
  if (typeof prefix === 'string') return typeof value === 'string' && value.startsWith(prefix);
  const isList = Array.isArray(prefix);
  const comparable = isList ? Array.isArray(value) : value instanceof Uint8Array;
  if (!comparable) return false;
  const elements = [...(value as readonly Key[])];
  return [...prefix].every((element, i) => i < elements.length && compareKeys(element, elements[i] as Key) === 0);
}

const PREFIX = fc.oneof(TEXT, BYTES, fc.array(PLAIN, { maxLength: 2 }));

test('a range has the entries of the requested values, whatever keys follow them', () => {
  const bounds = fc.record(
    { gt: KEY, gte: KEY, lt: KEY, lte: KEY, prefix: PREFIX },
    { requiredKeys: [], noNullPrototype: true },
  );
  fc.assert(
    fc.property(bounds, KEY, KEY, fc.boolean(), ({ gt, gte, lt, lte, prefix }, value, key, isUnique) => {
      const where = { ...(gt === undefined ? { gte } : { gt }), ...(lt === undefined ? { lte } : { lt }), prefix };
      const range = rangeOf(['c', 'by', 'i'], whereOf(where));
      const entry = isUnique ? ['c', 'by', 'i', value] : ['c', 'by', 'i', value, key];
      const isWanted =
        (gt === undefined || compareKeys(value, gt) > 0) &&
        (gt !== undefined || gte === undefined || compareKeys(value, gte) >= 0) &&
        (lt === undefined || compareKeys(value, lt) < 0) &&
        (lt !== undefined || lte === undefined || compareKeys(value, lte) <= 0) &&
        (prefix === undefined || begins(value, prefix));
      expect(isIn(range, entry)).toBe(isWanted);
      expect(isIn(range, ['c', 'by', 'j', value, key])).toBe(false);
      expect(isIn(rangeOf(['c', 'by', 'i'], whereOf(value)), entry)).toBe(true);
      const isSame = compareKeys(value, key) === 0;
      expect(isIn(rangeOf(['c', 'by', 'i'], { eq: key }), entry)).toBe(isSame);
    }),
    { numRuns: 5000 },
  );
});

test('the end of a prefix is above all keys that begin with it', () => {
  expect(afterPrefix('ab')).toBe('ac');
  expect(afterPrefix('a\ud7ff')).toBe('a\ue000');
  expect(afterPrefix('a\u{10ffff}')).toBe('b');
  expect(afterPrefix('')).toBe(Number.NEGATIVE_INFINITY);
  expect(afterPrefix(Uint8Array.of(1, 0xff))).toStrictEqual(Uint8Array.of(2));
  expect(afterPrefix(Uint8Array.of(0xff))).toBe('');
  expect(() => whereOf({ prefix: 5 })).toThrow('A prefix is a string, a Uint8Array or an array.');
});
