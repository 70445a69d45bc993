// The globals of tests in pages and workers, besides the package.

import type { Key } from 'varve';

/**
 * The code of the VarveError that a call threw or rejects with; for any other error its text; `ok` when there is none.
 * Errors lose their code on the way from a page to the test.
 */
export async function codeOf(call: () => unknown): Promise<string> {
  try {
    await call();
    return 'ok';
  } catch (error) {
    const { name, code } = error as { name?: unknown; code?: unknown };
    return name === 'VarveError' && typeof code === 'string' ? code : String(error);
  }
}

/** An entry for every type of key and of value, in the order of the keys. */
export function everyType(): [Key, unknown][] {
  const keys: Key[] = [
    new Uint8Array(0),
    Uint8Array.of(0),
    Uint8Array.of(0, 255),
    Uint8Array.of(255),
    '',
    '\0',
    'a',
    'a\0',
    'ab',
    'zebra',
    '\u00fc',
    '\uffee',
    '\u{1f30a}',
    Number.NEGATIVE_INFINITY,
    -1e300,
    -1.5,
    0,
    5e-324,
    1,
    2 ** 53,
    Number.POSITIVE_INFINITY,
    -(2n ** 70n),
    -1n,
    0n,
    255n,
    256n,
    2n ** 200n,
    false,
    true,
    new Date(-1),
    new Date(0),
    new Date(1_700_000_000_000),
    [],
    [Uint8Array.of(0, 1)],
    ['a'],
    ['a', 'b'],
    ['a', 1],
    ['a', [1n, new Date(5)], true],
    ['a\0'],
    [1],
    [[]],
    [['a']],
  ];
  const cycle: { self?: unknown; name: string } = { name: 'cycle' };
  cycle.self = cycle;
  const shared = { shared: true };
  const values: unknown[] = [
    new Uint8Array([1, 2, 3]),
    new Uint8Array(0),
    'text',
    '',
    '\u{1f30a} and a lone \ud800',
    null,
    true,
    false,
    0,
    -0,
    1.5,
    Number.NaN,
    Number.POSITIVE_INFINITY,
    -(2 ** 53),
    123n,
    -(2n ** 80n),
    new Date(1_700_000_000_000),
    /si(l)t/giu,
    new Map<unknown, unknown>([
      ['a', 1],
      [{ b: 2 }, new Set([1, 'two'])],
    ]),
    new Set(['x', new Map()]),
    new Error('grit'),
    new RangeError('sand', { cause: 'wind' }),
    new Float64Array([1.5, Number.NaN, -0]),
    new BigInt64Array([-1n, 2n ** 62n]),
    new Uint16Array([1, 65_535]),
    new Uint8ClampedArray([1, 255]),
    new Uint8Array([9, 8, 7]).buffer,
    new DataView(new Uint8Array([4, 5, 6]).buffer, 1, 2),
    { a: 1, b: [1, 2, { c: 'deep' }], '': null },
    [1, 'two', [3n], undefined],
    { undefined: undefined },
    [],
    {},
    cycle,
    [shared, shared],
  ];
  return keys.map((key, i) => [key, values[i % values.length]]);
}

/** Whether two values are the same in kind and in content, shared references and cycles included. */
export function isSame(a: unknown, b: unknown, met = new Map<object, unknown>()): boolean {
  if (Object.is(a, b)) return true;
  if (typeof a !== 'object' || typeof b !== 'object' || a === null || b === null) return false;
  if (met.has(a)) return met.get(a) === b;
  met.set(a, b);
  if (Object.prototype.toString.call(a) !== Object.prototype.toString.call(b)) return false;
  const same = (x: unknown, y: unknown): boolean => isSame(x, y, met);
  const all = (x: unknown[], y: unknown[]): boolean => x.length === y.length && x.every((item, i) => same(item, y[i]));
  if (a instanceof Date || a instanceof RegExp) return same(text(a), text(b));
  if (a instanceof Error && b instanceof Error) return all([a.name, a.message, a.cause], [b.name, b.message, b.cause]);
  if (a instanceof ArrayBuffer && b instanceof ArrayBuffer) return all([...new Uint8Array(a)], [...new Uint8Array(b)]);
  if (a instanceof DataView && b instanceof DataView) return all(bytesOf(a), bytesOf(b));
  if (ArrayBuffer.isView(a)) return all([...(a as Float64Array)], [...(b as unknown as Float64Array)]);
  if (a instanceof Map && b instanceof Map) return all([...a].flat(), [...b].flat());
  if (a instanceof Set && b instanceof Set) return all([...a], [...b]);
  return all(Object.entries(a).flat(), Object.entries(b).flat());
}

function text(value: object): string {
  return value instanceof Date ? String(value.getTime()) : String(value);
}

function bytesOf(view: DataView): number[] {
  return Array.from({ length: view.byteLength }, (_, i) => view.getUint8(i));
}

/** 20,000 letters of a key, which do not compress. */
export function longValue(key: number): string {
  let state = (key + 1) * 0x9e37_79b1;
  return Array.from({ length: 20_000 }, () => {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    return String.fromCharCode(64 + (state & 63));
  }).join('');
}
