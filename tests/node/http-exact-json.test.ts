/** JSON over HTTP is accepted in full or refused: no member and no digit is lost. */

import fc from 'fast-check';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { InexactJson, parseExactJson } from '../../js/src/http/exact-json.ts';
import { problem, type Served, serve } from './support/http.ts';

let http: Served;

beforeEach(async () => {
  http = await serve();
});
afterEach(() => http.db.close());

const JSON_BODY = { 'content-type': 'application/json' };
const INEXACT = [
  '{"a":1,"a":1}',
  '{"a":1,"\\u0061":2}',
  '[{"b":{"c":[{"__proto__":1,"__proto__":2}]}}]',
  '1e400',
  '-1e400',
  '1e-400',
  '[12345678901234567890]',
  '{"id":9007199254740993}',
  '0.1234567890123456789',
];
const EXACT = [
  '{"a":{"a":1},"b":[{"a":1},{"a":2}]}',
  '{"a\\"":1,"a":2,"\\\\":"{\\"a\\":1,\\"a\\":1}"}',
  '["a","a",{"x":"a,\\"a\\":"}]',
  '9007199254740991',
  '12345678901234567000',
  '1.50e+3',
  '-0.0',
  '0e999',
  '100e-2',
  '5e-324',
  '0.10000000000000001',
  '1.7976931348623157e308',
  '0.000001',
];

describe('JSON that JSON.parse would lose or change', () => {
  test('is refused as a value, and nothing is written', async () => {
    for (const body of INEXACT) {
      const answer = await problem(await http.send('PUT', '/kv/v', { body, headers: JSON_BODY }));
      expect(answer, body).toMatchObject({ status: 400, code: 'VARVE_INVALID_VALUE' });
    }
    expect(await http.db.count()).toBe(0);
  });

  test('is refused in a batch, whichever member it is', async () => {
    await http.db.set('secret', 1);
    const bodies = [
      '[{"op":"delete","key":"a","key":"secret"}]',
      '[{"op":"get","op":"delete","key":"secret"}]',
      '[{"op":"deleteRange","range":{"gte":"t","gte":"a"}}]',
      '[{"op":"set","key":9007199254740993,"value":1}]',
      '[{"op":"set","key":{"bytes":"","bytes":"AA=="},"value":1}]',
      '[{"op":"set","key":"a","value":1,"expiresIn":1e400}]',
      '[{"op":"delete","key":"secret","ifSequence":1.00000000000000000000001}]',
    ];
    for (const body of bodies) {
      for (const query of ['', '?atomic=true']) {
        const answer = await problem(await http.send('POST', `/batch${query}`, { body, headers: JSON_BODY }));
        expect(answer.status, body).toBe(400);
      }
    }
    expect(await http.db.getMany(['secret', 'a'])).toEqual([1, undefined]);
    expect(await http.db.count()).toBe(1);
  });

  test('is refused as a key in a query', async () => {
    await http.db.set(9007199254740992, 1);
    for (const key of ['9007199254740993', '1e400', '{"number":"-Infinity","number":"Infinity"}', '[1,[1e-400]]']) {
      for (const path of [`/kv?key=${encodeURIComponent(key)}`, `/range?gte=${encodeURIComponent(key)}`]) {
        const answer = await problem(await http.send('DELETE', path));
        expect(answer, key).toMatchObject({ status: 400, code: 'VARVE_INVALID_KEY' });
      }
    }
    expect(await http.db.count()).toBe(1);
  });

  test('is named in the error', async () => {
    const refusal = async (body: string) =>
      (await problem(await http.send('PUT', '/kv/v', { body, headers: JSON_BODY }))).detail;
    expect(await refusal('{"a":1,"a":2}')).toBe('The member "a" is given twice.');
    expect(await refusal('[1e400]')).toContain('The number 1e400');
    expect(await refusal('{"a":1,"a"}')).toBe('The body is not JSON in UTF-8.');
  });
});

test('JSON that a value can express is accepted, in every notation', () => {
  for (const text of EXACT) expect(parseExactJson(text)).toStrictEqual(JSON.parse(text));
});

test('the output of JSON.stringify is accepted', () => {
  const json = fc.oneof(fc.jsonValue(), fc.double({ noNaN: true, noDefaultInfinity: true }), fc.maxSafeInteger());
  fc.assert(
    fc.property(json, fc.constantFrom(0, 2), (value, indent) => {
      const text = JSON.stringify(value, null, indent);
      expect(parseExactJson(text)).toStrictEqual(JSON.parse(text));
    }),
    { numRuns: 500 },
  );
});

test('a number is taken exactly when the double that it becomes has all of its digits', () => {
  const digits = (max: number) => fc.stringMatching(new RegExp(`^[0-9]{1,${max}}$`));
  const literal = fc
    .tuple(fc.boolean(), digits(25), fc.option(digits(25)), fc.option(fc.integer({ min: -340, max: 320 })))
    .map(([minus, whole, fraction, power]) => {
      const exponent = power === null ? '' : `e${power}`;
      return `${minus ? '-' : ''}${BigInt(whole)}${fraction === null ? '' : `.${fraction}`}${exponent}`;
    });
  fc.assert(
    fc.property(literal, (text) => {
      expect(isTaken(text), text).toBe(isKept(text));
    }),
    { numRuns: 2000 },
  );
});

test('a member is given twice wherever two of one object have one name', () => {
  const name = fc.constantFrom('a', 'b', '\\u0061', '"', '\\', '__proto__', '');
  const names = fc.array(name, { maxLength: 4 });
  fc.assert(
    fc.property(names, names, (outer, inner) => {
      const object = (list: readonly string[], value: string) =>
        `{${list.map((name) => `${name.startsWith('\\u') ? `"${name}"` : JSON.stringify(name)}:${value}`).join(', ')}}`;
      const text = object(outer, `[${object(inner, '1')}, "a", ${object(inner, '"a"')}]`);
      const isTwice = (list: readonly string[]) =>
        new Set(list.map((name) => name.replace('\\u0061', 'a'))).size < list.length;
      expect(isTaken(text), text).toBe(!isTwice(outer) && (outer.length === 0 || !isTwice(inner)));
    }),
    { numRuns: 1000 },
  );
});

function isTaken(text: string): boolean {
  try {
    parseExactJson(text);
    return true;
  } catch (error) {
    if (error instanceof InexactJson) return false;
    throw error;
  }
}

/** With whole numbers only: whether the double, rounded to the last digit of the text, equals the text. */
function isKept(text: string): boolean {
  const [mantissa = '', exponent = '0'] = text.replace(/^-/, '').split('e');
  const [whole = '', fraction = ''] = mantissa.split('.');
  let said = BigInt(whole + fraction);
  let power = Number(exponent) - fraction.length;
  if (said === 0n) return true;
  for (; said % 10n === 0n; power++) said /= 10n;
  const double = Math.abs(Number(text));
  if (!Number.isFinite(double) || double === 0) return false;
  const { numerator, denominator } = ratioOf(double);
  const [above, below] = power >= 0 ? [1n, 10n ** BigInt(power)] : [10n ** BigInt(-power), 1n];
  const [top, bottom] = [numerator * above, denominator * below];
  // Within half of the last digit; a tie is rounded away from zero.
  const distance = 2n * (top - said * bottom);
  return distance >= -bottom && distance < bottom;
}

/** A double as a fraction. */
function ratioOf(double: number): { numerator: bigint; denominator: bigint } {
  let denominator = 1n;
  let value = double;
  while (!Number.isInteger(value)) {
    value *= 2;
    denominator *= 2n;
  }
  return { numerator: BigInt(value), denominator };
}
