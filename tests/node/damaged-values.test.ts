/** Damaged structured values: the result is always a value or an error, within bounds. */

import { describe, expect, test } from 'vitest';
import { structured } from '../../js/src/codec/values.ts';
import type { VarveError } from '../../js/src/errors.ts';
import { Random } from './support/random.ts';

const unhex = (digits: string): Uint8Array => new Uint8Array(Buffer.from(digits.replaceAll(' ', ''), 'hex'));

describe('damaged values', () => {
  test.each([
    ['nothing', ''],
    ['bytes missing', '01 82 01'],
    ['bytes left over', '01 01 01'],
    ['an array longer than its bytes', '01 9a ffffffff 01'],
    ['a text longer than its bytes', '01 7b 001fffffffffffff 41'],
    ['a length out of range', '01 9b ffffffffffffffff'],
    ['an indefinite length', '01 9f 01 ff'],
    ['a time that is no number', '01 c1 f5'],
    ['a time that is a text', '01 c1 61 41'],
    ['a reference to nothing', '01 d81d 00'],
    ['a shared number', '01 d81c 01'],
    ['half an element', '01 d845 43 010203'],
    ['a regular expression that is none', '01 d81b 83 66 526567457870 61 28 60'],
    ['a name that is no text', '01 a1 01 01'],
  ])('%s is reported', (_, encoded) => {
    expect(() => structured.decode(unhex(encoded))).toThrow(expect.objectContaining({ code: 'VARVE_INVALID_VALUE' }));
  });

  // A value of a later version was taken for one of another codec.
  test.each([
    ['a tag byte', '05 00'],
    ['a simple value', '01 f8 20'],
    ['a short float', '01 81 f9 3c00'],
    ['a tag', '01 d9 ffff 01'],
    ['a type', '01 d81b 82 61 41 01'],
    ['more parts of a type', '01 d81b 83 64 44617465 00 00'],
  ])('%s of a later version is no damage', (_, encoded) => {
    expect(() => structured.decode(unhex(encoded))).toThrow(expect.objectContaining({ code: 'VARVE_VERSION' }));
  });

  test('nesting without end is reported, in every type that nests', () => {
    for (const step of [
      '81',
      'd81c',
      'a1',
      'a16161',
      'd81b82',
      'd90103a1',
      'd9010281',
      'c1',
      'd81b84654572726f72616161',
      'c2',
    ]) {
      const encoded = unhex(`01${step.repeat(300_000)}`);
      expect(() => structured.decode(encoded)).toThrow(expect.objectContaining({ code: 'VARVE_INVALID_VALUE' }));
    }
  });

  test('any change of the bytes gives a value or an error, and never hangs', () => {
    const random = new Random(12);
    const shared = { s: 1 };
    const encoded = structured.encode({
      a: [1, 2.5, 'x', shared],
      m: new Map([[shared, new Set([1n])]]),
      d: new Date(1),
      e: new Error('e'),
    });
    for (let i = 0; i < 3000; i++) {
      const changed = encoded.slice(0, random.below(8) === 0 ? random.below(encoded.length) : undefined);
      if (changed.length > 1) changed[1 + random.below(changed.length - 1)] = random.below(256);
      try {
        structured.decode(changed);
      } catch (error) {
        if (!['VARVE_INVALID_VALUE', 'VARVE_VERSION'].includes((error as VarveError).code)) throw error;
      }
    }
  });
});
