/** Errors: the numbers shared with the engine, and the way through a worker boundary. */

import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { codeNumber, toWire, VarveError } from '../../js/src/errors.ts';
import { PENDING } from '../../js/src/wasm/call.ts';

/** The codes of the engine, read from its source: { Corrupt: 1, ... }. */
function engineCodes(): [string, number][] {
  const source = readFileSync(new URL('../../crates/varve/src/error.rs', import.meta.url), 'utf8');
  const body = source.slice(source.indexOf('pub enum Code {'), source.indexOf('impl Error'));
  return [...body.matchAll(/^\s+(\w+) = (\d+),/gm)].map(([, name, number]) => [name as string, Number(number)]);
}

describe('codes', () => {
  test('are the numbers of the engine', () => {
    const codes = engineCodes();
    expect(codes.length).toBeGreaterThanOrEqual(12);
    for (const [name, number] of codes) {
      if (name === 'Pending') {
        // The host of the engine makes the call again: no caller gets this.
        expect(number).toBe(PENDING);
        continue;
      }
      const code = `VARVE_${name.replaceAll(/(?<=[a-z])(?=[A-Z])/g, '_').toUpperCase()}`;
      expect(VarveError.fromNumber(number, '').code).toBe(code);
      expect(codeNumber(VarveError.fromNumber(number, '').code)).toBe(number);
    }
  });

  test('that the engine does not have are internal', () => {
    for (const number of [0, 99, -1]) expect(VarveError.fromNumber(number, 'x').code).toBe('VARVE_INTERNAL');
    expect(codeNumber('VARVE_UNSUPPORTED')).toBe(0);
  });
});

describe('a VarveError', () => {
  test('is an Error with a name, a code, a sentence and a cause', () => {
    const error = new VarveError('VARVE_LOCKED', 'Held elsewhere.', { cause: 5 });
    expect(error).toBeInstanceOf(Error);
    expect(error).toMatchObject({ name: 'VarveError', code: 'VARVE_LOCKED', message: 'Held elsewhere.', cause: 5 });
    expect(String(error)).toBe('VarveError: Held elsewhere.');
  });

  test('crosses a worker boundary', () => {
    const wire = structuredClone(toWire(new VarveError('VARVE_RETRY', 'Later.')));
    expect(VarveError.fromWire(wire)).toMatchObject({ code: 'VARVE_RETRY', message: 'Later.' });
    expect(toWire(new RangeError('odd')).code).toBe('VARVE_INTERNAL');
    expect(toWire('text').message).toContain('text');
  });
});
