// publint and are-the-types-wrong on the tarball, and JSR's checker on its folder, strictly. The package is ESM only, and declares that: it does not support
// resolutions without `exports` (node10) and `require` of a CommonJS file (node16-cjs). That is attw's profile `esm-only`.

import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { checkPackage, createPackageFromTarballData } from '@arethetypeswrong/core';
import { publint } from 'publint';
import { formatMessage } from 'publint/utils';
import { expect, inject, test } from 'vitest';
import { JSR, JSR_WARNING, stageJsr } from '../../scripts/jsr.mjs';
import { env } from '../../scripts/tools.mjs';

const NOT_FOR_ESM = new Set(['node10', 'node16-cjs']);
/** Files that are fetched, not imported. */
const FETCHED = ['./varve.wasm', './varve-tools.wasm'];

test('publint finds no fault', async () => {
  const data = readFileSync(inject('tarball'));
  const tarball = data.buffer.slice(data.byteOffset, data.byteOffset + data.byteLength);
  const { messages, pkg } = await publint({ pack: { tarball }, strict: true, level: 'suggestion' });
  expect(pkg?.['name']).toBe('varve');
  expect(messages.map((message) => formatMessage(message, pkg as never))).toEqual([]);
});

test('the types are right', async () => {
  const data = createPackageFromTarballData(readFileSync(inject('tarball')));
  const result = await checkPackage(data, { excludeEntrypoints: FETCHED });
  if (!result.types) throw new Error('attw found no types.');
  expect(Object.keys(result.entrypoints)).toEqual(
    expect.arrayContaining(['.', './synchronous', './cloudflare', './engine-worker.js']),
  );
  expect(
    result.problems.filter((problem) => !('resolutionKind' in problem) || !NOT_FOR_ESM.has(problem.resolutionKind)),
  ).toEqual([]);
});

test('JSR would take the package', () => {
  stageJsr();
  const dry = ['publish', '--dry-run', '--allow-dirty'];
  const { status, stderr } = spawnSync('deno', dry, { cwd: JSR, env: { ...env, NO_COLOR: '1' }, encoding: 'utf8' });
  const faults = stderr.match(/^(warning|error)\S*/gim);
  expect(faults).toEqual([JSR_WARNING]);
  expect(stderr).toContain('Dry run complete');
  expect(status).toBe(0);
});
