// `storageContract` under the test runner of each runtime, as the author of a storage runs it. Every clause is one test, and all pass.

import { spawnSync } from 'node:child_process';
import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { bundleProgram, RUNTIMES, type Runtime } from '../support/runtimes.ts';

/** The built module. */
const { storageContract }: typeof import('varve/testing') = await import(
  /* @vite-ignore */ fileURLToPath(new URL('../../dist/testing.js', import.meta.url))
);

/** A runner: how it is started, and how its report counts. */
interface Runner {
  arguments(runtime: Runtime, directory: string): string[];
  readonly passed: RegExp;
  readonly failed: RegExp;
}

const RUNNERS: Record<Runtime['name'], Runner> = {
  node: { arguments: () => ['--test', '--test-reporter=tap'], passed: /^# pass (\d+)$/m, failed: /^# fail (\d+)$/m },
  bun: { arguments: () => ['test', '--timeout=60000'], passed: /^ *(\d+) pass$/m, failed: /^ *(\d+) fail$/m },
  deno: {
    // Its permissions and the rest, but `test` instead of `run`.
    arguments: (runtime, directory) => ['test', ...runtime.arguments(directory).slice(1)],
    passed: /(\d+) passed/,
    failed: /(\d+) failed/,
  },
};

let directory: string;

beforeAll(() => {
  directory = mkdtempSync(join(tmpdir(), 'varve-runners-'));
});

afterAll(() => rmSync(directory, { recursive: true, force: true }));

/** How many clauses there are without loss of power and a full storage. */
function clauses(): number {
  let count = 0;
  storageContract({ test: () => count++, create: () => Promise.reject(new Error('No clause is run here.')) });
  return count;
}

test.each(RUNTIMES)('under the test runner of $name', { timeout: 180_000 }, async (runtime) => {
  const runner = RUNNERS[runtime.name];
  const program = await bundleProgram(`contract-under-${runtime.name}.ts`, '.test.mjs');
  const { status, stdout, stderr } = spawnSync(runtime.command, [...runner.arguments(runtime, directory), program], {
    cwd: directory,
    encoding: 'utf8',
    env: { ...process.env, NO_COLOR: '1' },
  });
  const report = stdout + stderr;
  expect([status, Number(runner.failed.exec(report)?.[1])], report).toEqual([0, 0]);
  expect(Number(runner.passed.exec(report)?.[1]), report).toBe(clauses());
  expect(clauses()).toBeGreaterThan(20);
  expect(readdirSync(directory)).toEqual([]);
});
