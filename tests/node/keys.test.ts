/** Keys to bytes and back: the table of the format, the order as a property, and the keys that are refused. */

import { describe, expect, test } from 'vitest';
import { KeyFormat } from '../../js/src/codec/key-format.ts';
import { decodeKey, decodeKeys } from '../../js/src/codec/key-reader.ts';
import { encodeKey, writeKey } from '../../js/src/codec/keys.ts';
import { KEY_BYTES_MAX } from '../../js/src/codec/plain-key.ts';
import { compareBytes } from '../../js/src/codec/range.ts';
import { ByteSink } from '../../js/src/codec/sink.ts';
import type { VarveError } from '../../js/src/errors.ts';
import type { Key } from '../../js/src/types.ts';
import { compareKeys } from './support/key-order.ts';
import { Random } from './support/random.ts';

const KEYS = new KeyFormat<Key>(undefined);
const hex = (bytes: Uint8Array): string => Buffer.from(bytes).toString('hex');
const unhex = (digits: string): Uint8Array => new Uint8Array(Buffer.from(digits.replaceAll(' ', ''), 'hex'));

const TABLE: readonly (readonly [Key, string])[] = [
  [new Uint8Array([0, 255]), '10 00ff'],
  ['', '20'],
  ['ab', '20 6162'],
  ['é\0', '20 c3a900'],
  [0, '30 8000000000000000'],
  [1, '30 bff0000000000000'],
  [-1, '30 400fffffffffffff'],
  [Number.POSITIVE_INFINITY, '30 fff0000000000000'],
  [0n, '40 01 0000'],
  [258n, '40 01 0002 0102'],
  [-258n, '40 00 fffd fefd'],
  [false, '50 00'],
  [true, '50 01'],
  [new Date(0), '60 8000000000000000'],
  [[], '70'],
  [['a', 1], '70 20 61 0001 30 bff0000000000000'],
  [['a\0'], '70 20 61 00ff 0001'],
  [[['a'], true], '70 70 20 61 0001 00 5001'],
];

describe('key bytes', () => {
  test.each(TABLE)('%s is encoded as written in the format', (key, bytes) => {
    expect(hex(encodeKey(key))).toBe(bytes.replaceAll(' ', ''));
    expect(decodeKey(unhex(bytes))).toEqual(key);
  });

  test('the order of the bytes is the order of the keys', () => {
    const random = new Random(1);
    const keys = Array.from({ length: 700 }, () => random.key());
    const encoded = keys.map(encodeKey);
    for (let i = 0; i < keys.length; i++) {
      for (let j = 0; j < i; j++) {
        const [a, b] = [keys[i] as Key, keys[j] as Key];
        const order = Math.sign(compareBytes(encoded[i] as Uint8Array, encoded[j] as Uint8Array));
        if (order !== Math.sign(compareKeys(a, b))) throw new Error(`wrong order: ${String(a)} and ${String(b)}`);
      }
    }
  });

  test('a key read back is the key that was written', () => {
    const random = new Random(2);
    for (let i = 0; i < 5000; i++) {
      const key = random.key();
      expect(compareKeys(decodeKey(encodeKey(key)), key)).toBe(0);
    }
  });

  test('-0 is the key 0', () => {
    expect(encodeKey(-0)).toEqual(encodeKey(0));
    expect(Object.is(decodeKey(encodeKey(-0)), 0)).toBe(true);
  });

  test('k and [k] are different keys', () => {
    expect(encodeKey('k')).not.toEqual(encodeKey(['k']));
  });

  test('bytes of another Uint8Array class count as bytes', () => {
    expect(encodeKey(Buffer.from([1, 2]))).toEqual(encodeKey(new Uint8Array([1, 2])));
  });
});

describe('values that are no keys', () => {
  const cyclic: unknown[] = [];
  cyclic.push(cyclic);
  test.each([
    ['NaN', Number.NaN],
    ['an invalid Date', new Date(Number.NaN)],
    ['undefined', undefined],
    ['null', null],
    ['an object', {}],
    ['a function', () => 1],
    ['a symbol', Symbol('s')],
    ['a Float32Array', new Float32Array(2)],
    ['a lone surrogate', 'a\ud800'],
    ['a lone surrogate in a long string', `${'x'.repeat(100)}\udc00`],
    ['a lone surrogate in an array', ['\ud800b']],
    ['NaN in an array', [1, [Number.NaN]]],
    ['a hole in an array', new Array(1)],
    ['an array of itself', cyclic],
  ])('%s is refused', (_, key) => {
    expect(() => encodeKey(key as Key)).toThrow(expect.objectContaining({ code: 'VARVE_INVALID_KEY' }));
  });

  test('a key of the greatest length is accepted, one byte more is refused', () => {
    const longest = 'k'.repeat(KEY_BYTES_MAX - 1);
    expect(decodeKey(encodeKey(longest))).toBe(longest);
    // The message once had the number with the type byte, and the guide the one without.
    expect(() => encodeKey(`${longest}k`)).toThrow('65536 bytes');
    for (const key of [`${longest}k`, new Uint8Array(KEY_BYTES_MAX), ['k'.repeat(KEY_BYTES_MAX)], 1n << 600_000n]) {
      expect(() => encodeKey(key)).toThrow(expect.objectContaining({ code: 'VARVE_INVALID_KEY' }));
    }
  });
});

describe('writing into a given buffer', () => {
  test('the end is returned, and the bytes around the key stay unchanged', () => {
    const into = new Uint8Array(8).fill(9);
    expect(writeKey('ab', into, 2)).toBe(5);
    expect([...into]).toEqual([9, 9, 0x20, 97, 98, 9, 9, 9]);
  });

  test('a buffer without room returns -1, however short it is', () => {
    const random = new Random(3);
    for (let i = 0; i < 2000; i++) {
      const key = random.key();
      const bytes = encodeKey(key);
      const room = random.below(bytes.length);
      expect(writeKey(key, new Uint8Array(room + 3), 3)).toBe(-1);
      const exact = new Uint8Array(bytes.length + 3);
      expect(writeKey(key, exact, 3)).toBe(exact.length);
      expect(exact.subarray(3)).toEqual(bytes);
    }
  });

  test('a sink grows as keys are appended', () => {
    const sink = new ByteSink(4);
    for (const key of ['a', 'k'.repeat(3000), [1, 'x']]) KEYS.write(key, sink);
    const expected = ['a', 'k'.repeat(3000), [1, 'x']].flatMap((key) => [...encodeKey(key)]);
    expect([...sink.copy()]).toEqual(expected);
  });
});

describe('a batch of keys', () => {
  const batch = (keys: readonly Key[]): [Uint8Array, number[]] => {
    const sink = new ByteSink();
    const ends = keys.map((key) => {
      KEYS.write(key, sink);
      return sink.at;
    });
    return [sink.copy(), ends];
  };

  test.each([
    ['no keys', []],
    ['ASCII strings', ['', 'a', 'bc', 'x'.repeat(100)]],
    ['strings beyond ASCII', ['a', 'é', '\ufeffbom', '😀', 'z']],
    ['keys of all types', [new Uint8Array([1]), 'a', 1, 2n, true, new Date(3), ['a', [1]]]],
    ['a string among numbers', [1, 'a']],
  ])('%s read back', (_, keys: readonly Key[]) => {
    expect(decodeKeys(...batch(keys))).toEqual(keys);
  });

  test('any keys read back as one by one', () => {
    const random = new Random(4);
    for (let i = 0; i < 300; i++) {
      const keys = Array.from({ length: random.below(8) }, () => (i % 2 === 0 ? random.text(3) : random.key()));
      expect(decodeKeys(...batch(keys))).toEqual(keys.map((key) => decodeKey(encodeKey(key))));
    }
  });
});

describe('damaged key bytes', () => {
  test.each([
    ['nothing', ''],
    ['a number cut short', '30 80000000'],
    ['a number with a tail', '30 8000000000000000 00'],
    ['a NaN', '30 fff8000000000000'],
    ['-0', '30 7fffffffffffffff'],
    ['a boolean of 2', '50 02'],
    ['a bigint longer than its bytes', '40 01 0004 01'],
    ['a bigint with a leading zero', '40 01 0002 0001'],
    ['a negative zero bigint', '40 00 ffff'],
    ['a string without an end in an array', '70 20 61'],
    ['an unknown escape', '70 20 61 0002'],
    ['an end at the top', '70 00'],
    ['a nested array without an end', '70 70 50 01'],
  ])('%s is reported', (_, bytes) => {
    expect(() => decodeKey(unhex(bytes))).toThrow(expect.objectContaining({ code: 'VARVE_CORRUPT' }));
  });

  // A key of a later version was reported as damage, and its user told to repair the store.
  test.each(['80', '18 61', '70 71 00', '70 20 61 0001 80'])('a type of a later version is no damage: %s', (bytes) => {
    expect(() => decodeKey(unhex(bytes))).toThrow(expect.objectContaining({ code: 'VARVE_VERSION' }));
  });

  test('any bytes give a key that encodes to them, or an error', () => {
    const random = new Random(5);
    for (let i = 0; i < 10_000; i++) {
      const bytes = encodeKey(random.key()).slice();
      bytes[random.below(bytes.length)] = random.below(256);
      let key: Key;
      try {
        key = decodeKey(bytes);
      } catch (error) {
        if (!['VARVE_CORRUPT', 'VARVE_VERSION'].includes((error as VarveError).code)) throw error;
        continue;
      }
      // Strings are stored as valid UTF-8, which the engine's checksums guard; other types are checked here.
      if (!hasText(key)) expect(encodeKey(key)).toEqual(bytes);
    }
  });
});

function hasText(key: Key): boolean {
  return typeof key === 'string' || (Array.isArray(key) && key.some(hasText));
}
