/**
 * Keys and values that are not what they seem, or are at the limits of what is possible.
 *
 * Each case is made anew for each use. It is either refused with a code, or becomes a plain value, through every way into a store.
 */

import {
  bytes,
  counting,
  cyclic,
  detach,
  detached,
  GONE_BYTES,
  getting,
  gettingAt,
  LYING_BYTES,
  LyingFloats,
  LyingMap,
  LyingSet,
  lyingDate,
  nested,
  ofLength,
  outOfBounds,
  own,
  Point,
  resizable,
  revoked,
  shared,
  TRAPS,
  trapped,
} from './hostile-makers.ts';

/** One input. */
export interface Hostile {
  readonly name: string;
  /** Makes it. */
  make(): unknown;
  /** The value that is read back; undefined where the input is refused. */
  readonly becomes?: { readonly plain: unknown };
}

function plain(name: string, make: () => unknown, becomes: unknown): Hostile {
  return { name, make, becomes: { plain: becomes } };
}
function refused(name: string, make: () => unknown): Hostile {
  return { name, make };
}

/** Values. */
export const VALUES: readonly Hostile[] = [
  ...LYING_BYTES.flatMap(([name, make]) => [
    plain(name, make, bytes()),
    plain(`${name}, inside`, () => ({ a: make(), b: 'after' }), { a: bytes(), b: 'after' }),
  ]),
  ...GONE_BYTES.flatMap(([name, make]) => [refused(name, make), refused(`${name}, inside`, () => ({ a: [make()] }))]),
  plain('no bytes at all', () => new Uint8Array(resizable(0)), new Uint8Array(0)),
  plain('floats with the name of bytes', () => new LyingFloats([0.5]), new Float64Array([0.5])),
  plain(
    'floats with a length of their own',
    () => own(new Float32Array([1]), { byteLength: 80, buffer: 1 }),
    new Float32Array([1]),
  ),
  plain(
    'a DataView of a shared buffer',
    () => new DataView(shared().buffer as ArrayBuffer, 1),
    new DataView(Uint8Array.of(2, 3).buffer),
  ),
  plain(
    'a DataView that lies',
    () => own(new DataView(bytes().buffer), { byteLength: 1, [Symbol.toStringTag]: 'Map' }),
    new DataView(bytes().buffer),
  ),
  refused('a detached ArrayBuffer', () => detached().buffer),
  refused('a detached DataView', () => {
    const view = new DataView(new ArrayBuffer(4));
    detach(view.buffer);
    return view;
  }),
  refused('a DataView beyond its buffer', () => outOfBounds((buffer) => new DataView(buffer, 8, 8))),
  refused('floats beyond their buffer', () => outOfBounds((buffer) => new Float32Array(buffer, 8, 2))),
  refused('a shared buffer itself', () => new SharedArrayBuffer(3)),
  refused('bytes that a getter detaches', () => {
    const gone = bytes();
    return { ...getting(() => 1), a: getting(() => detach(gone.buffer)), gone };
  }),
  refused('bytes that a getter shrinks away', () => {
    const buffer = resizable(16);
    const gone = new Uint16Array(buffer, 8);
    return { a: getting(() => buffer.resize(0)), gone };
  }),

  plain(
    'a Map with a size of its own',
    () => own(new Map([['a', 1]]), { size: 3, entries: () => [], forEach: () => 1 }),
    new Map([['a', 1]]),
  ),
  plain('a Map of a class that lies', () => new LyingMap([['a', 1]]), new Map([['a', 1]])),
  plain(
    'a Map that iterates otherwise',
    () => own(new Map([['a', 1]]), { [Symbol.iterator]: () => [] }),
    new Map([['a', 1]]),
  ),
  plain('a Set with a size of its own', () => own(new Set([1]), { size: 3, values: () => [] }), new Set([1])),
  plain('a Set of a class that lies', () => new LyingSet([1, 2]), new Set([1, 2])),
  refused('a Map that a getter makes grow', () => {
    const map = new Map<unknown, unknown>();
    return map
      .set(
        'a',
        getting(() => map.set(Math.random(), 1).size),
      )
      .set('b', 1);
  }),
  refused('a Map that grows for ever', () => {
    const map = new Map<unknown, unknown>();
    const grow = (): object => getting(() => map.set(Math.random(), grow()).size);
    return map.set('a', grow());
  }),
  refused('a Map that a getter empties', () => {
    const map = new Map<unknown, unknown>();
    return map
      .set(
        'a',
        getting(() => map.clear()),
      )
      .set('b', 1);
  }),
  refused('a Map whose size is 0 once it is written', () => {
    const map = new Map<unknown, unknown>();
    return map.set(
      'a',
      getting(() => map.clear()),
    );
  }),
  refused('a Set that a getter makes grow', () => {
    const set = new Set<unknown>();
    return set.add(getting(() => set.add(Math.random()).size));
  }),
  refused('a Set that a getter empties', () => {
    const set = new Set<unknown>();
    return set.add(getting(() => set.clear())).add(1);
  }),
  plain(
    'a Map that a getter turns about',
    () => {
      const map = new Map<unknown, unknown>();
      const turn = getting(() => map.delete('b') && map.set('b', 2).size);
      return map.set('a', turn).set('b', 1);
    },
    new Map<unknown, unknown>([
      ['a', { x: 2 }],
      ['b', 2],
    ]),
  ),
  refused('an array that a getter makes grow', () => {
    const array: unknown[] = [];
    array.push(getting(() => array.push(1)));
    return array;
  }),
  refused('an array that a getter cuts short', () => {
    const array: unknown[] = [1, 2, 3];
    return gettingAt(array, 0, () => array.pop());
  }),
  refused('an object that a getter takes a property from', () => {
    const object: Record<string, unknown> = { a: getting(() => delete object['b']), b: 1 };
    return object;
  }),
  plain('a getter that gives something else each time', () => getting(counting()), { x: 1 }),
  plain(
    'a getter that gives something else each time, beside a shared object',
    () => {
      const one = { n: 1 };
      return { one, count: getting(counting()), again: one, last: [one] };
    },
    { one: { n: 1 }, count: { x: 1 }, again: { n: 1 }, last: [{ n: 1 }] },
  ),
  plain(
    'a getter that gives its object from the second time on',
    () => {
      const count = counting();
      const one = {};
      const object: object = getting(() => (count() === 1 ? 1 : object));
      return { one, object, again: one };
    },
    { one: {}, object: { x: 1 }, again: {} },
  ),

  plain('a proxy of an object', () => new Proxy({ a: [1] }, {}), { a: [1] }),
  plain('a proxy of an array', () => new Proxy([1, { a: 2 }], {}), [1, { a: 2 }]),
  refused('a proxy of bytes', () => new Proxy(bytes(), {})),
  refused('a proxy of a Map', () => new Proxy(new Map(), {})),
  refused('a proxy of a Date', () => ({ at: new Proxy(new Date(1), {}) })),
  refused('a proxy that was revoked', () => revoked({})),
  refused('a proxy of an array that was revoked', () => revoked([])),
  refused('a proxy of a function that was revoked', () => revoked(() => 1)),
  refused('a revoked proxy, inside', () => ({ a: [revoked([])] })),
  refused('a proxy that revokes itself', () => {
    const { proxy, revoke } = Proxy.revocable({ a: 1 } as object, {
      ownKeys: (target) => {
        revoke();
        return Reflect.ownKeys(target);
      },
    });
    return proxy;
  }),
  ...TRAPS.filter((trap) => trap !== 'has').map((trap) =>
    refused(`a proxy whose ${trap} throws`, () => ({ a: trapped({ b: 1 }, trap) })),
  ),
  ...[Number.NaN, -1, 1.5, 2 ** 40, '2', null, Symbol('length'), 2n].map((length) =>
    refused(`a proxy of an array of the length ${String(length)}`, () => ofLength(length)),
  ),
  refused('an array of more items than there are bytes', () => new Array(2 ** 32 - 1)),

  plain('a Date that lies', () => ({ at: lyingDate() }), { at: new Date(5) }),
  refused('a Date by name', () => ({ [Symbol.toStringTag]: 'Date', getTime: () => 1 })),
  refused('a Map by name', () => ({ [Symbol.toStringTag]: 'Map', size: 0, entries: () => [] })),
  refused('a RegExp by name', () => ({ [Symbol.toStringTag]: 'RegExp', source: '(', flags: 'z' })),
  refused('an Error by name', () => ({ [Symbol.toStringTag]: 'Error', name: 'E', message: 'm' })),
  refused('an ArrayBuffer by name', () => ({ [Symbol.toStringTag]: 'ArrayBuffer', byteLength: 3, length: 3 })),
  refused('bytes by name', () =>
    Object.setPrototypeOf({ length: 3, [Symbol.toStringTag]: 'Uint8Array' }, Uint8Array.prototype),
  ),
  plain(
    'a RegExp that lies',
    () => own(/a/g, { source: '(', flags: 'zz', global: false, unicode: true, exec: 1 }),
    /a/g,
  ),
  plain(
    'an Error with the name of a method',
    () => own(new Error('m'), { name: 'toString' }),
    own(new Error('m'), { name: 'toString' }),
  ),
  plain(
    'an Error called constructor',
    () => own(new Error('m'), { name: 'constructor' }),
    own(new Error('m'), { name: 'constructor' }),
  ),
  refused('an Error whose name throws', () =>
    Object.defineProperty(new Error('m'), 'name', { get: () => revoked({}) }),
  ),
  refused('an instance of a class', () => new Point()),
  refused('an object that inherits a getter', () =>
    Object.create({
      get x(): number {
        return 1;
      },
    }),
  ),
  refused('an object that makes itself primitive, inside a class', () =>
    Object.create({ [Symbol.toPrimitive]: () => 1 }),
  ),
  plain('an object that makes itself primitive', () => ({ a: 1, [Symbol.toPrimitive]: () => 5 }), { a: 1 }),
  plain(
    'a property called __proto__',
    () => JSON.parse('{"__proto__":{"polluted":true}}'),
    JSON.parse('{"__proto__":{"polluted":true}}'),
  ),
  refused('a function', () => () => 1),
  refused('a symbol, inside', () => [Symbol.iterator]),

  plain('a cycle through a proxy', () => {
    const array: unknown[] = [1];
    array.push(new Proxy(array, {}), 2);
    return array.slice(0, 1);
  }, [1]),
  plain('holes', () => new Array(3), [undefined, undefined, undefined]),
  // A few levels are left for callers that put it into another value.
  plain('great nesting', () => nested(990), nested(990)),
  refused('nesting that is too great', () => nested(1001)),
  refused('nesting without end', () => {
    const endless: ProxyHandler<object> = { get: () => new Proxy({ a: 1 }, endless) };
    return new Proxy({ a: 1 }, endless);
  }),
  plain('bigints', () => [2n ** 4096n, -(2n ** 4096n), 0n, -1n], [2n ** 4096n, -(2n ** 4096n), 0n, -1n]),
  plain('-0', () => -0, -0),
  plain('NaN', () => Number.NaN, Number.NaN),
  plain('lone surrogates', () => '\ud800 and \udfff', '\ud800 and \udfff'),
  plain('lone surrogates in a name', () => ({ '\udc00': 1 }), { '\udc00': 1 }),
  plain('an invalid Date', () => [new Date(Number.NaN)], [new Date(Number.NaN)]),
];

/** Keys. */
export const KEYS: readonly Hostile[] = [
  ...LYING_BYTES.flatMap(([name, make]) => [
    plain(name, make, bytes()),
    plain(`${name}, inside`, () => ['k', make(), 1], ['k', bytes(), 1]),
  ]),
  ...GONE_BYTES.flatMap(([name, make]) => [refused(name, make), refused(`${name}, inside`, () => ['k', make()])]),
  plain('no bytes', () => new Uint8Array(resizable(0)), new Uint8Array(0)),
  refused('bytes that a getter detaches', () => {
    const gone = bytes();
    return gettingAt(['k', gone, 1], 2, () => {
      detach(gone.buffer);
      return 1;
    });
  }),
  refused('bytes that a getter shrinks away', () => {
    const buffer = resizable(16);
    return gettingAt(['k', new Uint8Array(buffer, 8), 1], 2, () => buffer.resize(0) ?? 1);
  }),
  refused('floats with the name of bytes', () => new LyingFloats([0.5])),
  refused('a DataView', () => new DataView(new ArrayBuffer(1))),
  refused('a buffer', () => new ArrayBuffer(1)),
  plain('a Date that lies', lyingDate, new Date(5)),
  plain('a Date that lies, inside', () => [lyingDate()], [new Date(5)]),
  refused('an invalid Date that lies', () => own(new Date(Number.NaN), { getTime: () => 5 })),
  refused('a Date by name', () => ({ [Symbol.toStringTag]: 'Date', getTime: () => 5 })),
  refused('bytes by name', () => ({ [Symbol.toStringTag]: 'Uint8Array', length: 1, 0: 1 })),
  refused('a proxy of a Date', () => new Proxy(new Date(5), {})),
  refused('a proxy of bytes', () => [new Proxy(bytes(), {})]),
  plain('a proxy of an array', () => new Proxy(['k', [1]], {}), ['k', [1]]),
  refused('a proxy that was revoked', () => revoked({})),
  refused('a proxy of an array that was revoked', () => revoked([])),
  refused('a revoked proxy, inside', () => ['k', revoked([])]),
  ...TRAPS.slice(0, 1).map((trap) => refused(`a proxy of an array whose ${trap} throws`, () => trapped(['k'], trap))),
  ...[Number.NaN, 2 ** 40, Number.POSITIVE_INFINITY, Symbol('length'), 'two'].map((length) =>
    refused(`a proxy of an array of the length ${String(length)}`, () => ofLength(length)),
  ),
  plain('a getter that gives something else each time', () => gettingAt(['k', 0], 1, counting()), ['k', 1]),
  plain(
    'a getter that gives something else each time, in a long key',
    () => gettingAt(['k'.repeat(60_000), 0], 1, counting()),
    ['k'.repeat(60_000), 1],
  ),
  plain('an array that a getter makes grow', () => {
    const array: unknown[] = ['k', 0];
    return gettingAt(array, 1, () => array.push(1));
  }, ['k', 3]),
  refused('an array that a getter cuts short', () => {
    const array: unknown[] = ['k', 0, 1];
    return gettingAt(array, 1, () => array.pop());
  }),
  refused('a getter that throws', () => gettingAt(['k', 0], 1, () => revoked({}).toString())),
  refused('holes', () => ['k', ...new Array(2)]),
  refused('an array without end', cyclic),
  refused('an array that is twice in itself, often', () => {
    let array: unknown[] = ['k'];
    for (let i = 0; i < 31; i++) array = [array, array];
    return array;
  }),
  refused('an array of more elements than a key has bytes', () => new Array(2 ** 32 - 1)),
  refused('lone surrogates', () => 'k\ud800'),
  refused('lone surrogates, inside', () => ['k', '\udc00k']),
  refused('NaN', () => Number.NaN),
  refused('an object', () => ({ k: 1 })),
  refused('an object that makes itself primitive', () => ({ [Symbol.toPrimitive]: () => 'k', toString: () => 'k' })),
  refused('a boxed string', () => Object('k')),
  refused('a symbol', () => Symbol.iterator),
  refused('a function', () => () => 'k'),
  refused('null', () => null),
  refused('a bigint of more bytes than a key has', () => 2n ** 600_000n),
  plain('a great bigint', () => -(2n ** 4096n), -(2n ** 4096n)),
  plain('-0', () => -0, 0),
  plain('-0, inside', () => ['k', -0], ['k', 0]),
  plain('infinity', () => Number.NEGATIVE_INFINITY, Number.NEGATIVE_INFINITY),
  plain('an array of a class', () => new (class extends Array<unknown> {})('k', 'l'), ['k', 'l']),
];
