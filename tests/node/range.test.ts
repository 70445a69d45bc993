/** Ranges of keys to ranges of bytes, tested by asking which keys lie inside. */

import { describe, expect, test } from 'vitest';
import { KeyFormat } from '../../js/src/codec/key-format.ts';
import { encodeKey } from '../../js/src/codec/keys.ts';
import { KEY_BYTES_MAX } from '../../js/src/codec/plain-key.ts';
import { type ByteRange, compareBytes, encodeDeletion, encodeRange, halfOpen } from '../../js/src/codec/range.ts';
import type { Key, KeyRange } from '../../js/src/types.ts';
import { compareKeys } from './support/key-order.ts';
import { Random } from './support/random.ts';

const KEYS = new KeyFormat<Key>(undefined);

function lies({ lower, upper }: ByteRange, key: Key): boolean {
  const bytes = encodeKey(key);
  const above = lower === undefined ? 1 : compareBytes(bytes, lower.key);
  const below = upper === undefined ? 1 : compareBytes(upper.key, bytes);
  return (lower?.exclusive ? above > 0 : above >= 0) && (upper?.exclusive ? below > 0 : below >= 0);
}

function inside(range: KeyRange, keys: readonly Key[]): Key[] {
  const bytes = encodeRange(range, KEYS);
  const hits = keys.filter((key) => lies(bytes, key));
  if (bytes.empty) expect(hits).toEqual([]);
  return hits;
}

describe('bounds', () => {
  const keys = ['a', 'b', 'c', 'd'];
  test.each<[KeyRange, Key[]]>([
    [{}, ['a', 'b', 'c', 'd']],
    [{ gt: 'b' }, ['c', 'd']],
    [{ gte: 'b' }, ['b', 'c', 'd']],
    [{ lt: 'b' }, ['a']],
    [{ lte: 'b' }, ['a', 'b']],
    [{ gt: 'a', lt: 'd' }, ['b', 'c']],
    [{ gte: 'b', lte: 'b' }, ['b']],
    [{ gt: 'b', lte: 'b' }, []],
    [{ gte: 'c', lt: 'b' }, []],
    [{ gte: undefined, lt: 'b' }, ['a']],
  ])('%j', (range, expected) => {
    expect(inside(range, keys)).toEqual(expected);
  });

  test('two lower or two upper bounds, and a prefix that has no content, are refused', () => {
    const wrong: KeyRange[] = [
      { gt: 1, gte: 1 },
      { lt: 1, lte: 1 },
      { prefix: 5 as never },
      { prefix: new Date(0) as never },
    ];
    for (const range of wrong) {
      expect(() => encodeRange(range, KEYS)).toThrow(expect.objectContaining({ code: 'VARVE_INVALID_ARGUMENT' }));
    }
  });

  test('a bound that is no key is refused', () => {
    const refused = expect.objectContaining({ code: 'VARVE_INVALID_KEY' });
    for (const side of ['gt', 'gte', 'lt', 'lte']) {
      for (const wrong of [Number.NaN, null, {}]) {
        const range = { ...(side.startsWith('l') && { gte: 'a' }), [side]: wrong } as KeyRange;
        expect(() => encodeRange(range, KEYS), side).toThrow(refused);
        expect(() => encodeDeletion(range, KEYS), side).toThrow(refused);
      }
    }
  });

  test('a bound that a codec turns into a key counts as a bound', () => {
    const encode = (key: string | null): Key => key ?? 0;
    const keys = new KeyFormat({ name: 'nullable', encode, decode: (key) => key as string });
    expect(encodeRange({ lt: null }, keys)).toStrictEqual(encodeRange({ lt: 0 }, KEYS));
    expect(encodeRange({ gte: null }, keys)).toStrictEqual(encodeRange({ gte: 0 }, KEYS));
  });
});

describe('prefix', () => {
  const keys: Key[] = [
    new Uint8Array([1]),
    new Uint8Array([1, 255]),
    new Uint8Array([2]),
    'note',
    'notes',
    'nott',
    'é',
    'éa',
    1,
    ['note'],
    ['note', 1],
    ['note', 1, 'x'],
    ['notes'],
    ['notes', 1],
    [['note'], 1],
    [],
  ];
  test.each<[string, KeyRange, Key[]]>([
    ['a string matches by content', { prefix: 'note' }, ['note', 'notes']],
    ['the empty string matches every string', { prefix: '' }, ['note', 'notes', 'nott', 'é', 'éa']],
    ['a string beyond ASCII', { prefix: 'é' }, ['é', 'éa']],
    ['bytes match by content', { prefix: new Uint8Array([1]) }, [new Uint8Array([1]), new Uint8Array([1, 255])]],
    ['bytes that end in ff', { prefix: new Uint8Array([1, 255]) }, [new Uint8Array([1, 255])]],
    [
      'no bytes match all bytes',
      { prefix: new Uint8Array() },
      [new Uint8Array([1]), new Uint8Array([1, 255]), new Uint8Array([2])],
    ],
    [
      'an array matches itself and longer ones by element',
      { prefix: ['note'] },
      [['note'], ['note', 1], ['note', 1, 'x']],
    ],
    [
      'two elements',
      { prefix: ['note', 1] },
      [
        ['note', 1],
        ['note', 1, 'x'],
      ],
    ],
    ['a nested array', { prefix: [['note']] }, [[['note'], 1]]],
    ['the empty array matches every array', { prefix: [] }, keys.filter(Array.isArray)],
    [
      'with a lower bound',
      { prefix: ['note'], gt: ['note'] },
      [
        ['note', 1],
        ['note', 1, 'x'],
      ],
    ],
    ['with an upper bound', { prefix: 'note', lt: 'notes' }, ['note']],
    ['with the upper bound included', { prefix: 'note', lte: 'notes' }, ['note', 'notes']],
    ['with bounds outside', { prefix: 'note', gte: 'a', lt: 'z' }, ['note', 'notes']],
    ['with bounds that miss it', { prefix: 'note', gte: 'x' }, []],
  ])('%s', (_, range, expected) => {
    expect(inside(range, keys)).toEqual(expected);
  });

  test('a prefix of the greatest length has a range', () => {
    expect(inside({ prefix: 'k'.repeat(KEY_BYTES_MAX - 1) }, ['k'])).toEqual([]);
  });
});

describe('ranges to delete', () => {
  test('contain exactly the keys of the range', () => {
    const random = new Random(21);
    for (let i = 0; i < 2000; i++) {
      const keys = Array.from({ length: 6 }, () => random.key());
      const [low, high] = [random.pick(keys), random.pick(keys)];
      const range: KeyRange = random.below(2) ? { gt: low, lte: high } : { gte: low, lt: high };
      const expected = keys.filter((key) => {
        const [above, below] = [compareKeys(key, low), compareKeys(key, high)];
        return range.gt !== undefined ? above > 0 && below <= 0 : above >= 0 && below < 0;
      });
      const bytes = encodeDeletion(range, KEYS);
      const hits = keys.filter((key) => {
        if (bytes === undefined) return false;
        const encoded = encodeKey(key);
        return compareBytes(encoded, bytes.start) >= 0 && compareBytes(encoded, bytes.end) < 0;
      });
      expect(hits).toEqual(expected);
    }
  });

  test('an open side has no bytes', () => {
    expect(halfOpen(encodeRange({ gte: 'a' }, KEYS))).toEqual({ start: encodeKey('a'), end: new Uint8Array() });
    expect(halfOpen(encodeRange({ lt: 'a' }, KEYS))).toEqual({ start: new Uint8Array(), end: encodeKey('a') });
  });

  test('bounds stay within the length of a key', () => {
    const longest = 'k'.repeat(KEY_BYTES_MAX - 1);
    const bytes = encodeDeletion({ lte: longest }, KEYS);
    expect(bytes?.end.length).toBeLessThanOrEqual(KEY_BYTES_MAX);
    expect(compareBytes(encodeKey(longest), bytes?.end as Uint8Array)).toBeLessThan(0);
  });

  test('no bounds at all are refused', () => {
    for (const range of [{}, { prefix: undefined }]) {
      expect(() => encodeDeletion(range, KEYS)).toThrow(expect.objectContaining({ code: 'VARVE_INVALID_ARGUMENT' }));
    }
  });
});
