// The entry points of the package: its exports of js/src, as package.json lists them.

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { root } from './tools.mjs';

/** @type {{ exports: Record<string, string | { types: string }> }} */
const { exports } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));

/** The exports with their files below js/src, as `['./fs', 'fs.ts']`: entry points, and scripts of workers, whose names end in `.js`. */
export const EXPORTED = Object.entries(exports).flatMap(([name, target]) =>
  typeof target === 'string' ? [] : [[name, target.types.replace(/^\.\/dist\/(.*)\.d\.ts$/, '$1.ts')]],
);
