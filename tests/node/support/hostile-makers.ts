/**
 * Makers of objects that are not what they seem: subclasses, own properties and proxies that lie about their content, getters, buffers
 * that detach or shrink.
 */

/** A buffer that can change its size, of ES2024. */
interface Resizable extends ArrayBuffer {
  resize(bytes: number): void;
}

export function resizable(bytes: number, bytesMax = 64): Resizable {
  const type = ArrayBuffer as unknown as new (bytes: number, options: { maxByteLength: number }) => Resizable;
  return new type(bytes, { maxByteLength: bytesMax });
}

export function detach(buffer: ArrayBufferLike): void {
  structuredClone(buffer, { transfer: [buffer as ArrayBuffer] });
}

export function own<T extends object>(object: T, properties: Readonly<Record<PropertyKey, unknown>>): T {
  for (const name of Reflect.ownKeys(properties))
    Object.defineProperty(object, name, { value: properties[name as string] });
  return object;
}

/** An object with one getter. */
export function getting(get: () => unknown): object {
  return Object.defineProperty({}, 'x', { get, enumerable: true });
}

/** A getter at a place of an array. */
export function gettingAt<T extends unknown[]>(array: T, at: number, get: () => unknown): T {
  return Object.defineProperty(array, at, { get, enumerable: true });
}

export function revoked(target: object): object {
  const { proxy, revoke } = Proxy.revocable(target, {});
  revoke();
  return proxy;
}

/** An array that reports this length. */
export function ofLength(length: unknown): unknown[] {
  return new Proxy([1, 2], { get: (target, name) => (name === 'length' ? length : Reflect.get(target, name)) });
}

/** Counts how often it was read. */
export function counting(): () => number {
  let count = 0;
  return () => ++count;
}

const BYTES = [1, 2, 3];
export const bytes = (): Uint8Array => Uint8Array.from(BYTES);
export const detached = (): Uint8Array => {
  const gone = bytes();
  detach(gone.buffer);
  return gone;
};
/** A view of sixteen bytes, of which four are left. */
export function outOfBounds<T>(view: (buffer: ArrayBuffer) => T): T {
  const buffer = resizable(16);
  const made = view(buffer);
  buffer.resize(4);
  return made;
}
function lengthTracking(): Uint8Array {
  const buffer = resizable(1);
  const view = new Uint8Array(buffer);
  buffer.resize(3);
  view.set(BYTES);
  return view;
}
export function shared(): Uint8Array {
  const view = new Uint8Array(new SharedArrayBuffer(3));
  view.set(BYTES);
  return view;
}

class LyingBytes extends Uint8Array {
  override get [Symbol.toStringTag](): 'Uint8Array' {
    return 'Date' as 'Uint8Array';
  }
}
export class LyingFloats extends Float64Array {
  override get [Symbol.toStringTag](): 'Float64Array' {
    return 'Uint8Array' as 'Float64Array';
  }
}
export class LyingMap extends Map<unknown, unknown> {
  override get size(): number {
    return 7;
  }
}
export class LyingSet extends Set<unknown> {
  override get size(): number {
    return 0;
  }
}
export class Point {
  get x(): number {
    return 1;
  }
}

/** Bytes that lie about themselves, and are three bytes. */
export const LYING_BYTES: readonly (readonly [string, () => Uint8Array])[] = [
  ['bytes with a length of their own', () => own(bytes(), { length: 5000, byteLength: 5000 })],
  ['bytes with a length of 0', () => own(bytes(), { length: 0, byteLength: 0 })],
  ['bytes with a buffer of their own', () => own(bytes(), { buffer: new ArrayBuffer(9), byteOffset: 4 })],
  ['bytes with a name of their own', () => new LyingBytes(BYTES)],
  ['bytes without a prototype', () => Object.setPrototypeOf(bytes(), null)],
  [
    'bytes that iterate otherwise',
    () => own(bytes(), { [Symbol.iterator]: () => [9][Symbol.iterator](), slice: () => 9 }),
  ],
  ['bytes of a species', () => own(bytes(), { constructor: { [Symbol.species]: Array } })],
  ['a Buffer', () => Buffer.from(BYTES)],
  ['bytes of a shared buffer', shared],
  ['bytes that follow their buffer', lengthTracking],
];

/** Bytes whose buffer is detached. */
export const GONE_BYTES: readonly (readonly [string, () => Uint8Array])[] = [
  ['detached bytes', detached],
  ['bytes beyond their buffer', () => outOfBounds((buffer) => new Uint8Array(buffer, 8, 8))],
  ['bytes partly beyond their buffer', () => outOfBounds((buffer) => new Uint8Array(buffer, 2, 8))],
  ['bytes that follow a buffer that ends before them', () => outOfBounds((buffer) => new Uint8Array(buffer, 8))],
];

export const TRAPS = ['get', 'getPrototypeOf', 'has', 'ownKeys', 'getOwnPropertyDescriptor'] as const;

export function trapped(target: object, trap: (typeof TRAPS)[number]): object {
  return new Proxy(target, {
    [trap]: () => {
      throw new TypeError(`${trap} is trapped`);
    },
  });
}

/** Dates that lie about themselves; their true value is millisecond 5. */
export const lyingDate = (): Date =>
  own(new Date(5), {
    getTime: () => 'soon',
    valueOf: () => Number.NaN,
    toISOString: () => 'x',
    [Symbol.toPrimitive]: () => 7n,
  });

export function nested(depth: number): unknown {
  let value: unknown = 1;
  for (let i = 0; i < depth; i++) value = [value];
  return value;
}

export const cyclic = (): unknown[] => {
  const array: unknown[] = [];
  array.push(array);
  return array;
};
