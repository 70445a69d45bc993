/**
 * Strings to UTF-8 and back, optimized for short ASCII.
 *
 * Invariant: a written string reads back as the same string, or is refused before it is written. Lone surrogates have no UTF-8
 * (`isWellFormed`), and a leading byte order mark is content.
 *
 * For short strings a loop over char codes is faster than `TextEncoder` and `TextDecoder`, in Chromium up to five times.
 */

const encoder = new TextEncoder();
const decoder = new TextDecoder('utf-8', { ignoreBOM: true });
/** Throws a TypeError for bytes that are not UTF-8. */
export const strict: TextDecoder = new TextDecoder('utf-8', { ignoreBOM: true, fatal: true });
const LONE_SURROGATE = /\p{Surrogate}/u;
/** Longest string that is written char by char; for longer ones `encodeInto` is faster. */
const LOOP_CHARS_MAX = 64;
/** Longest run of bytes that is read without the decoder. */
const LOOP_BYTES_MAX = 36;

/** Strings of ES2024. */
interface WellFormed {
  isWellFormed(): boolean;
}

/** False for a string with a surrogate that has no partner. */
export function isWellFormed(text: string): boolean {
  return (text as Partial<WellFormed>).isWellFormed?.() ?? !LONE_SURROGATE.test(text);
}

/**
 * Writes ASCII text and returns the end, or -1 when a char is not ASCII or the text is long: then use `writeUtf8`.
 * Writes past the end of `into` have no effect: compare the result with its length.
 */
export function writeShortAscii(text: string, into: Uint8Array, at: number): number {
  const length = text.length;
  if (length > LOOP_CHARS_MAX) return -1;
  for (let i = 0; i < length; i++) {
    const code = text.charCodeAt(i);
    if (code > 127) return -1;
    into[at + i] = code;
  }
  return at + length;
}

/** Writes UTF-8 and returns the end, or -1 when there is no room. */
export function writeUtf8(text: string, into: Uint8Array, at: number): number {
  if (at > into.length) return -1;
  const { read, written } = encoder.encodeInto(text, into.subarray(at));
  return read === text.length ? at + written : -1;
}

/** Reads UTF-8: well-formed, or of anybody if `by` is `strict`. */
export function readUtf8(bytes: Uint8Array, start: number, end: number, by: TextDecoder = decoder): string {
  let text = '';
  if (end - start > LOOP_BYTES_MAX) return by.decode(bytes.subarray(start, end));
  // Four at a time: a call with four is as fast as with one. Chars after the end are removed again.
  for (let i = start; i < end; i += 4) {
    const [a, b, c, d] = [bytes[i], bytes[i + 1], bytes[i + 2], bytes[i + 3]] as [number, number, number, number];
    if ((a | b | c | d) > 127) return by.decode(bytes.subarray(start, end));
    text += String.fromCharCode(a, b, c, d);
  }
  return text.slice(0, end - start);
}
