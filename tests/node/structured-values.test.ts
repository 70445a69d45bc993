/** Structured values: which values come back equal, their bytes, and which values are refused and where. */

import { isDeepStrictEqual } from 'node:util';
import { createContext, runInContext } from 'node:vm';
import { describe, expect, test } from 'vitest';
import { ByteSink, takingBlobs } from '../../js/src/codec/sink.ts';
import { formatOf, structured } from '../../js/src/codec/values.ts';
import { Random } from './support/random.ts';

const hex = (encoded: Uint8Array): string => Buffer.from(encoded).toString('hex');
const unhex = (digits: string): Uint8Array => new Uint8Array(Buffer.from(digits.replaceAll(' ', ''), 'hex'));
const roundTrip = (value: unknown): unknown => structured.decode(structured.encode(value));
const refusal = (value: unknown): unknown => {
  try {
    return structured.encode(value);
  } catch (error) {
    return error;
  }
};

class Point {
  x = 1;
}

describe('a structured value', () => {
  test.each<[string, unknown]>([
    ['null', null],
    ['booleans', [true, false]],
    ['integers of every width', [0, 23, 24, 255, 256, 65535, 65536, 2 ** 32 - 1, 2 ** 32, 2 ** 53 - 1]],
    ['negative integers', [-1, -24, -25, -256, -257, -65537, -(2 ** 32), -(2 ** 53) + 1]],
    ['doubles', [0.1, -0.5, 1e300, 5e-324, 2 ** 53, Number.MAX_VALUE]],
    ['-0, NaN and the infinities', [-0, Number.NaN, Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY]],
    ['bigints of any size', [0n, 1n, -1n, 255n, -256n, 2n ** 64n, -(2n ** 64n), 3n ** 500n]],
    [
      'strings',
      ['', 'a', 'é', '😀', '\ufeff', '\0', 'x'.repeat(23), 'x'.repeat(24), 'é'.repeat(90), 'y'.repeat(70_000)],
    ],
    ['lone surrogates', ['\ud800', { 'k\udc00': `long ${'\udfff'.repeat(5000)}` }]],
    ['undefined inside', { a: undefined, b: [undefined, 1] }],
    ['dates', [new Date(0), new Date(-1), new Date(1.7e12 + 123), new Date(8.64e15), new Date(-8.64e15 + 1)]],
    ['regular expressions', [/a\/b/gi, /^$/u]],
    [
      'maps',
      new Map<unknown, unknown>([
        ['a', 1],
        [{ k: 1 }, [2]],
        [Number.NaN, null],
      ]),
    ],
    ['sets', new Set<unknown>(['a', 1, { k: new Set() }])],
    ['array buffers', [new ArrayBuffer(0), new Uint8Array([1, 2, 3]).buffer]],
    [
      'typed arrays',
      [
        new Int8Array([-1]),
        new Uint8Array([1, 2]),
        new Uint8ClampedArray([255]),
        new Int16Array([-2]),
        new Uint16Array([65535]),
        new Int32Array([-3]),
        new Uint32Array([1]),
        new Float32Array([0.5, -0]),
        new Float64Array([0.1]),
        new BigInt64Array([-5n]),
        new BigUint64Array([2n ** 64n - 1n]),
      ],
    ],
    ['a view into the middle of a buffer', [new Uint16Array(new Uint8Array([9, 9, 1, 2, 3, 4]).buffer, 2, 1)]],
    ['data views', [new DataView(new Uint8Array([1, 2, 3]).buffer)]],
    ['objects', { a: 1, 'b c': { constructor: 1, toJSON: 2 }, '': [], '0': {}, é: 1 }],
    ['a property called __proto__', JSON.parse('{"__proto__":{"a":1},"b":2}')],
    ['an object of many properties', Object.fromEntries(Array.from({ length: 5000 }, (_, i) => [`property ${i}`, i]))],
    ['nesting', [[[[{ a: [[{ b: [] }]] }]]]]],
  ])('%s come back equal', (_, value) => {
    const read = roundTrip(value);
    expect(read).toStrictEqual(value);
    expect(isDeepStrictEqual(read, value)).toBe(true);
  });

  test('an invalid Date stays invalid', () => {
    expect(roundTrip([new Date(Number.NaN)])).toEqual([new Date(Number.NaN)]);
  });

  test('errors keep their type, name, message and cause', () => {
    class TeapotError extends Error {
      override name = 'TeapotError';
    }
    const [type, teapot, plain] = roundTrip([
      new TypeError('no', { cause: { code: 7 } }),
      new TeapotError('short and stout'),
      new Error('quiet'),
    ]) as [TypeError, Error, Error];
    expect(type).toBeInstanceOf(TypeError);
    expect([type.name, type.message, type.cause]).toEqual(['TypeError', 'no', { code: 7 }]);
    expect([teapot.name, teapot.message, String(teapot)]).toEqual([
      'TeapotError',
      'short and stout',
      'TeapotError: short and stout',
    ]);
    expect(teapot).toBeInstanceOf(Error);
    expect('cause' in plain).toBe(false);
    expect(Object.keys(teapot)).toEqual([]);
  });

  test('cycles and shared parts keep their identity', () => {
    const shared = { s: 1 };
    const bytes = new Uint8Array([1]);
    const value: Record<string, unknown> = { shared, again: [shared, shared], bytes, more: { bytes } };
    value['self'] = value;
    const map = new Map<unknown, unknown>();
    map.set(map, new Set([map]));
    const error = new Error('loop');
    error.cause = { error };
    Object.assign(value, { map, error, date: [new Date(1)] });
    const read = roundTrip(value) as Record<string, never>;
    expect(read['self']).toBe(read);
    expect(read['again']).toEqual([shared, shared]);
    expect(read['again'][0]).toBe(read['shared']);
    expect(read['again'][1]).toBe(read['shared']);
    expect(read['more']['bytes']).toBe(read['bytes']);
    expect([...(read['map'] as Map<unknown, unknown>).keys()][0]).toBe(read['map']);
    expect((read['error'] as { cause: { error: unknown } }).cause.error).toBe(read['error']);
  });

  test('every kind of object can be the shared one', () => {
    const kinds = [
      [],
      {},
      new Map(),
      new Set(),
      new Date(1),
      /x/,
      new Error('e'),
      new ArrayBuffer(1),
      new Int16Array(1),
      new DataView(new ArrayBuffer(1)),
      new Date(8.64e15 - 1),
    ];
    for (const kind of kinds) {
      const [a, b] = roundTrip([kind, kind]) as [unknown, unknown];
      expect(a).toBe(b);
      expect(a).toStrictEqual(kind);
    }
  });

  test('prototypes of plain data: null becomes the usual one', () => {
    expect(roundTrip(Object.assign(Object.create(null), { a: 1 }))).toStrictEqual({ a: 1 });
  });

  test('a Buffer comes back as a Uint8Array', () => {
    expect(roundTrip({ b: Buffer.from([1, 2]) })).toStrictEqual({ b: new Uint8Array([1, 2]) });
    // Story: a codec of the user that decompressed with zlib passed a Buffer on. Bytes in the value were then Buffers over the same memory.
    const stored = Buffer.from(structured.encode({ b: new Uint8Array([1, 2]) }));
    const read = structured.decode(stored);
    stored.fill(0);
    expect(read).toStrictEqual({ b: new Uint8Array([1, 2]) });
  });

  test('values of another realm are accepted', () => {
    const foreign = runInContext(
      '({ a: [1], m: new Map([[1, new Set([2])]]), d: new Date(3), e: new RangeError("far") })',
      createContext(),
    );
    const read = roundTrip(foreign) as { e: Error };
    expect(read).toMatchObject({ a: [1], m: new Map([[1, new Set([2])]]), d: new Date(3) });
    expect([read.e.name, read.e.message]).toEqual(['RangeError', 'far']);
  });

  test('holes in arrays become undefined', () => {
    // biome-ignore lint/suspicious/noSparseArray: holes are what is tested
    expect(roundTrip([, 1])).toStrictEqual([undefined, 1]);
  });

  test('named properties of arrays are left out, as the guide says: to look for them takes as long as to write an array', () => {
    expect(roundTrip('abc'.match(/b/))).toStrictEqual(['b']);
  });

  test('a getter that stores something else meanwhile disturbs nothing', () => {
    const value = {
      get inner() {
        return structured.encode({ other: [1, 2, 3] }).length;
      },
      after: 'x',
    };
    expect(roundTrip(value)).toEqual({ inner: value.inner, after: 'x' });
  });

  test('random values come back equal', () => {
    const random = new Random(11);
    const make = (depth: number): unknown => {
      switch (random.below(depth > 4 ? 6 : 10)) {
        case 0:
          return random.number();
        case 1:
          return random.bigint();
        case 2:
          return random.text(30);
        case 3:
          return random.pick([true, false, null, undefined]);
        case 4:
          return random.bytes(40);
        case 5:
          return new Date(random.below(2 ** 31) * 1000);
        case 6:
          return Array.from({ length: random.below(6) }, () => make(depth + 1));
        case 7:
          return new Map(Array.from({ length: random.below(4) }, () => [make(depth + 1), make(depth + 1)]));
        case 8:
          return new Set(Array.from({ length: random.below(4) }, () => make(depth + 1)));
        default:
          return Object.fromEntries(Array.from({ length: random.below(6) }, () => [random.text(12), make(depth + 1)]));
      }
    };
    for (let i = 0; i < 1000; i++) {
      const value = { value: make(0) };
      if (!isDeepStrictEqual(roundTrip(value), value)) throw new Error(`case ${i} changed`);
    }
  });
});

describe('the format of structured values', () => {
  // Examples of RFC 8949, appendix A, and of the registered tags, behind the tag byte of structured values.
  test.each<[unknown, string]>([
    [10, '01 0a'],
    [1000, '01 1903e8'],
    [1000000000000, '01 1b000000e8d4a51000'],
    [-1000, '01 3903e7'],
    [1.1, '01 fb3ff199999999999a'],
    [false, '01 f4'],
    [null, '01 f6'],
    [18446744073709551616n, '01 c249010000000000000000'],
    [-18446744073709551617n, '01 c349010000000000000000'],
    [[1, [2, 3], [4, 5]], '01 8301820203820405'],
    [{ a: 1, b: [2, 3] }, '01 a26161016162820203'],
    [new Date(1363896240000), '01 c1 1a514b67b0'],
    [new Map([[1, 2]]), '01 d90103 a10102'],
    [new Set([1]), '01 d90102 8101'],
    [new Uint16Array([1, 2]), '01 d845 4401000200'],
    ['text', '02 74657874'],
    [new Uint8Array([1, 2]), '00 0102'],
  ])('%s is what any CBOR reader expects', (value, encoded) => {
    expect(hex(structured.encode(value))).toBe(encoded.replaceAll(' ', ''));
    expect(structured.decode(unhex(encoded))).toStrictEqual(value);
  });
});

describe('values that cannot be stored', () => {
  test.each<[string, unknown, string]>([
    ['a function', { a: [{ onClick: () => 1 }] }, 'value.a[0].onClick is a function'],
    ['a symbol', [Symbol('s')], 'value[0] is a symbol'],
    ['a class instance', { 'two words': new Point() }, 'value["two words"] is an instance of Point'],
    ['a Promise', [Promise.resolve()], 'value[0] is an instance of Promise'],
    ['a WeakMap', new WeakMap(), 'value is an instance of WeakMap'],
    ['a boxed number', [Object(1)], 'value[0] is an instance of Number'],
    ['a function in a Map', new Map([['k', () => 1]]), 'value.entries()[0] is a function'],
    ['a function in a Set', { s: new Set([1, () => 1]) }, 'value.s.values()[1] is a function'],
    ['a function in a cause', new Error('e', { cause: { f: () => 1 } }), 'value.cause.f is a function'],
    [
      'a throwing getter',
      {
        get bad(): number {
          throw new Error('no');
        },
      },
      'not readable',
    ],
    [
      'an object that only looks like a Map',
      { m: Object.create({}, { [Symbol.toStringTag]: { value: 'Map' } }) },
      'cannot be stored',
    ],
    ['undefined itself', undefined, 'undefined'],
  ])('%s is refused with its place', (_, value, message) => {
    expect(refusal(value)).toMatchObject({ code: 'VARVE_INVALID_VALUE', message: expect.stringContaining(message) });
  });

  test('nesting too deep is refused, and not stored unreadably', () => {
    const nested = (depth: number): unknown => {
      let value: unknown = 1;
      for (let i = 0; i < depth; i++) value = i % 2 === 0 ? [value] : { next: value };
      return value;
    };
    expect(isDeepStrictEqual(roundTrip(nested(1000)), nested(1000))).toBe(true);
    expect(refusal(nested(1001))).toMatchObject({
      code: 'VARVE_INVALID_VALUE',
      message: expect.stringContaining('deep'),
    });
    expect(refusal(nested(200_000))).toMatchObject({ code: 'VARVE_INVALID_VALUE' });
  });

  // Story: a part that had no room, as a long File in an object, was refused as one whose getter threw.
  test('a part that is too long is refused as too long', () => {
    const short = new Blob([new Uint8Array(2 ** 20)]);
    const file = new Blob(Array.from({ length: 600 }, () => short));
    const sink = takingBlobs(new ByteSink(8));
    expect(() => formatOf(structured).write({ file }, sink)).toThrow(/^A value takes at most 128 MiB/);
    expect([sink.at, sink.blobs]).toEqual([0, []]);
  });

  test('a refused value leaves no bytes behind, and the next one is unharmed', () => {
    const sink = new ByteSink(8);
    sink.append(new Uint8Array([7]));
    expect(() => formatOf(structured).write({ a: 'x'.repeat(100), f: () => 1 }, sink)).toThrow();
    expect([...sink.copy()]).toEqual([7]);
    expect(roundTrip([{ a: 1 }])).toEqual([{ a: 1 }]);
  });
});

test('no code is evaluated: the codec works where eval is forbidden', () => {
  const { Function: original } = globalThis;
  globalThis.Function = (() => {
    throw new EvalError('forbidden');
  }) as unknown as FunctionConstructor;
  try {
    for (let i = 0; i < 50; i++) expect(roundTrip({ a: 1, b: { c: 2 } })).toEqual({ a: 1, b: { c: 2 } });
  } finally {
    globalThis.Function = original;
  }
});
