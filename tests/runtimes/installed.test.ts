// A runtime that is not installed is left out of every list of tests: that none is left out in silence is a test of its own.

import { expect, test } from 'vitest';
import { RUNTIMES } from './support/runtimes.ts';

test('the tests run on Node, Bun and Deno, or on the one that VARVE_RUNTIME names', () => {
  const { VARVE_RUNTIME: one } = process.env;
  expect(RUNTIMES.map(({ name }) => name)).toEqual(one === undefined ? ['node', 'bun', 'deno'] : [one]);
});
