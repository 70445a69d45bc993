/** The list of derived keys, as bytes: it reads back, and one of a later layout is refused. */

import { expect, test } from 'vitest';
import { readDerivations } from '../../js/src/transaction/derived.ts';
import { code } from './support/stores.ts';

const unhex = (digits: string): Uint8Array => new Uint8Array(Buffer.from(digits.replaceAll(' ', ''), 'hex'));
const FIRST = '01000000 03000000 02000000 7061 01000000 ff 02000000 7062';
const SECOND = '00000000 01000000 00000000';

test('statements read back', () => {
  expect(readDerivations(undefined)).toEqual([]);
  expect(readDerivations(unhex(`${FIRST} ${SECOND}`))).toEqual([
    { source: unhex('7061'), marks: [unhex('ff')], derived: [unhex('7062')] },
    { source: unhex(''), marks: [], derived: [] },
  ]);
});

// They gave a RangeError, or other prefixes.
test.each([
  ['a higher part of the marks', '00000100 01000000 00000000'],
  ['no source', '00000000 00000000'],
  ['more marks than runs', '03000000 02000000 00000000 00000000'],
  ['a run beyond the end', '00000000 01000000 02000000 70'],
  ['runs without end', '00000000 ffffffff'],
  ['a part of a number', '000000'],
])('%s is of a later layout', (_, bytes) => {
  expect(() => readDerivations(unhex(bytes))).toThrow(code('VARVE_VERSION'));
  expect(() => readDerivations(unhex(`${FIRST} ${bytes}`))).toThrow(code('VARVE_VERSION'));
});
