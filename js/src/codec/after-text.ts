/** The end of the keys that begin with a string or with bytes. It has no dependencies: collections use it without the codec. */

import type { Key } from '../types.ts';

/** The lowest key after all strings that begin with this one, or after all bytes that begin with these. */
export function afterText(prefix: string | Uint8Array): Key {
  if (typeof prefix === 'string') {
    const points = Array.from(prefix, (point) => point.codePointAt(0) as number);
    const next = incremented(points, 0x10ffff);
    // One by one: a call has no room for all code points of a long text.
    return next === undefined ? Number.NEGATIVE_INFINITY : next.map((point) => String.fromCodePoint(point)).join('');
  }
  const next = incremented([...prefix], 0xff);
  return next === undefined ? '' : Uint8Array.from(next);
}

/** The lowest list of numbers after all lists that begin with this one. */
function incremented(numbers: number[], max: number): number[] | undefined {
  while (numbers.at(-1) === max) numbers.pop();
  const last = numbers.pop();
  // After the last code point before the surrogates comes the first one behind them.
  return last === undefined ? undefined : [...numbers, last === 0xd7ff ? 0xe000 : last + 1];
}
