/**
 * Bigints as big-endian magnitudes, for keys and values.
 *
 * Invariant: a magnitude has no leading zero byte, and zero is the empty magnitude, so every bigint has one form.
 */

const NONE = new Uint8Array(0);

/** The bytes of the absolute value, most significant first. */
export function magnitudeOf(value: bigint): Uint8Array {
  if (value === 0n) return NONE;
  let digits = (value < 0n ? -value : value).toString(16);
  if (digits.length & 1) digits = `0${digits}`;
  const bytes = new Uint8Array(digits.length / 2);
  for (let i = 0; i < bytes.length; i++) bytes[i] = Number.parseInt(digits.slice(2 * i, 2 * i + 2), 16);
  return bytes;
}

/** The value of big-endian bytes, each xored with `flip`. */
export function bigintOf(bytes: Uint8Array, start: number, end: number, flip = 0): bigint {
  let digits = '0x0';
  for (let i = start; i < end; i++) digits += ((bytes[i] as number) ^ flip).toString(16).padStart(2, '0');
  return BigInt(digits);
}
