// The budget of sizes: which files count, and which sizes fail it.

import { randomBytes } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import manifest from '../package.json' with { type: 'json' };
import { GZIP_BYTES_MAX, problemsOf, sizesOf } from './sizes.mjs';

let folder = '';

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'varve-sizes-'));
});

afterEach(() => rmSync(folder, { recursive: true }));

/** Bytes that do not compress. @param {number} length */
const noise = (length) => randomBytes(length);

describe('sizes', () => {
  test('are those of an entry with all that it loads at once, and of wasm files', () => {
    const [entry, chunk, later] = [noise(1000), noise(2000), noise(4000)];
    writeFileSync(join(folder, 'index.js'), entry);
    writeFileSync(join(folder, 'chunk-A.js'), chunk);
    writeFileSync(join(folder, 'chunk-B.js'), later);
    writeFileSync(join(folder, 'varve.wasm'), noise(500));
    writeFileSync(join(folder, 'index.js.map'), noise(500));
    writeFileSync(join(folder, 'index.d.ts'), noise(500));
    const sizes = sizesOf(folder, { 'index.js': ['index.js', 'chunk-A.js'] });
    expect(sizes.map(({ name, raw }) => [name, raw])).toEqual([
      ['index.js', 3000],
      ['varve.wasm', 500],
    ]);
    expect(sizes[0]?.gzip).toBe(gzipSync(Buffer.concat([entry, chunk]), { level: 9 }).length);
  });

  test('over a budget are a problem, by how much; at the budget they are none', () => {
    writeFileSync(join(folder, 'index.js'), noise(1000));
    const [{ gzip } = { gzip: 0 }] = sizesOf(folder, {});
    const judge = (/** @type {number} */ budget) => problemsOf(sizesOf(folder, {}, new Map([['index.js', budget]])));
    expect(judge(gzip)).toEqual([]);
    expect(judge(gzip - 7)).toEqual(['index.js is 7 bytes over its budget.']);
  });

  test('of a first visit are a problem when it loads too many files', () => {
    const chunks = ['A', 'B', 'C', 'D', 'E'].map((letter) => `chunk-${letter}.js`);
    for (const name of ['index.js', ...chunks]) writeFileSync(join(folder, name), noise(10));
    const judge = (/** @type {number} */ count) =>
      problemsOf(sizesOf(folder, { 'index.js': ['index.js', ...chunks.slice(0, count)] }));
    expect(judge(4)).toEqual([]);
    expect(judge(5)).toEqual(['A first visit loads 6 files.']);
  });

  test('without a budget are a problem', () => {
    writeFileSync(join(folder, 'new.js'), noise(10));
    expect(problemsOf(sizesOf(folder, {}))).toEqual(['new.js has no budget.']);
  });
});

test('every entry point of the package has a budget, and the command', () => {
  const targets = Object.values(manifest.exports).map((target) =>
    typeof target === 'string' ? target : target.default,
  );
  const files = [...targets, ...Object.values(manifest.bin)]
    // npm wants commands without the `./` of entry points.
    .map((target) => target.replace(/^\.\//, ''))
    .filter((target) => target.startsWith('dist/'))
    .map((target) => target.slice('dist/'.length));
  expect([...GZIP_BYTES_MAX.keys()].sort()).toEqual(files.sort());
});
