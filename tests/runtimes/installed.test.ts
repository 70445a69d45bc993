// Every list of tests omits a runtime that is not installed. This test makes sure that none is omitted silently.

import { expect, test } from 'vitest';
import { RUNTIMES } from '../support/runtimes.ts';

test('the tests run on Node, Bun and Deno, or on the one that VARVE_RUNTIME names', () => {
  const { VARVE_RUNTIME: one } = process.env;
  expect(RUNTIMES.map(({ name }) => name)).toEqual(one === undefined ? ['node', 'bun', 'deno'] : [one]);
});
