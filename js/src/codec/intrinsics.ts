/**
 * The type and contents of a platform object, read with functions of the platform itself.
 *
 * Invariant: nothing here runs code of the object. A subclass, an own property, a `Symbol.toStringTag` and a proxy may return
 * anything; none of them is used. Everything that works for an object of this realm works for one of another realm.
 */

const typedArray: object = Object.getPrototypeOf(Uint8Array.prototype);
const nameOf = getter<string | undefined>(typedArray, Symbol.toStringTag);
const bufferOf = getter<ArrayBuffer>(typedArray, 'buffer');
const offsetOf = getter<number>(typedArray, 'byteOffset');
const lengthOf = getter<number>(typedArray, 'byteLength');
const bufferOfView = getter<ArrayBuffer>(DataView.prototype, 'buffer');
const offsetOfView = getter<number>(DataView.prototype, 'byteOffset');
const lengthOfView = getter<number>(DataView.prototype, 'byteLength');
/** Refuses a view whose buffer was detached, or became too short for it; the getters return 0 then. */
const { keys: validate } = typedArray as Uint8Array;
const { getTime } = Date.prototype;

/** A getter of a prototype, called with the object as `this`. It throws a TypeError for an object of another kind. */
export function getter<T>(prototype: object, name: string | symbol): (this: unknown) => T {
  return Object.getOwnPropertyDescriptor(prototype, name)?.get as () => T;
}

/** The name of a typed array's class, as `Uint8Array`; undefined for anything else. */
export function typedArrayName(value: unknown): string | undefined {
  return nameOf.call(value);
}

/** Whether it is a Uint8Array, or an object of a subclass. */
export function isBytes(value: unknown): value is Uint8Array {
  return nameOf.call(value) === 'Uint8Array';
}

/** How many bytes there are; -1 if their buffer was detached, or became too short for them. */
export function byteCount(bytes: Uint8Array): number {
  const count = lengthOf.call(bytes);
  return count === 0 && bytesUnder(bytes) === undefined ? -1 : count;
}

/** The bytes under a typed array or a DataView; undefined if the buffer was detached, or became too short for it. */
export function bytesUnder(view: ArrayBufferView): Uint8Array | undefined {
  try {
    if (nameOf.call(view) === undefined)
      return new Uint8Array(bufferOfView.call(view), offsetOfView.call(view), lengthOfView.call(view));
    validate.call(view as Uint8Array);
    return new Uint8Array(bufferOf.call(view), offsetOf.call(view), lengthOf.call(view));
  } catch {
    return undefined;
  }
}

/** The time of a Date, NaN for an invalid one; undefined for anything else. */
export function timeOf(value: object): number | undefined {
  try {
    return getTime.call(value as Date);
  } catch {
    return undefined;
  }
}
