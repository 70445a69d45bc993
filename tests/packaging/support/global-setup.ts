// Runs once, before all packaging tests. It packs the built package (`npm pack`), and installs the tarball (`npm install`) in a fresh
// project outside of the repository, as a user would. Every test's project begins as a copy of that one.

import { existsSync, mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TestProject } from 'vitest/node';
import { root } from '../../../scripts/tools.mjs';
import { npm } from './npm.ts';

declare module 'vitest' {
  interface ProvidedContext {
    /** The packed package. */
    tarball: string;
    /** The project that has installed it. */
    template: string;
  }
}

const PACKAGE = { name: 'fresh', private: true, type: 'module' };

export function setup(project: TestProject): () => void {
  if (!existsSync(join(root, 'dist', 'varve.wasm'))) {
    throw new Error('The package is not built: run `npm run test:packaging`, or `npm run build` first.');
  }
  const folder = realpathSync(mkdtempSync(join(tmpdir(), 'varve-packed-')));
  const tarball = pack(folder);
  const template = join(folder, 'template');
  mkdirSync(template);
  writeFileSync(join(template, 'package.json'), JSON.stringify(PACKAGE));
  npm(['install', '--ignore-scripts', tarball], template);
  project.provide('tarball', tarball);
  project.provide('template', template);
  return () => rmSync(folder, { recursive: true, force: true });
}

/** Packs the dist that the test run has built: `prepack`, which would build it again, is skipped. */
function pack(folder: string): string {
  const said = npm(['pack', '--ignore-scripts', '--pack-destination', folder], root);
  return join(folder, said.trim().split('\n').at(-1) ?? '');
}
