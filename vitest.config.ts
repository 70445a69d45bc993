// Five projects: `js` (the TypeScript in Node), `browser` (the built package in a real Chromium, driven from Node),
// `engines` (the same in Chromium, Firefox and WebKitGTK), `runtimes` (the built package on server runtimes), `packaging` (the
// packed package in projects of users). Two files run at a time, each with its own browsers, folders and ports.

import { fileURLToPath } from 'node:url';
import { defineConfig } from 'vitest/config';
import { BaseSequencer, type TestSpecification } from 'vitest/node';
import { EXPORTED } from './scripts/entries.mjs';

// Vitest's reporter of failures uses Map.groupBy, which Node 20 does not have yet.
Map.groupBy ??= <K, T>(items: Iterable<T>, keyOf: (item: T, index: number) => K): Map<K, T[]> => {
  const groups = new Map<K, T[]>();
  let index = 0;
  for (const item of items) {
    const key = keyOf(item, index++);
    const group = groups.get(key);
    if (group) group.push(item);
    else groups.set(key, [item]);
  }
  return groups;
};

/** The names of the files that take longest, the longest first. */
const LONGEST = [
  'life',
  'full-storage',
  'store',
  'api-fuzz',
  'turn',
  'docs',
  'bench-page',
  'soak',
  'demo',
  'refused-commits',
];

/** Begins with the files that take longest: one that begins last would run alone. */
class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const rank = ({ moduleId }: TestSpecification): number =>
      [...LONGEST, ''].findIndex((name) => name === '' || moduleId.endsWith(`/${name}.test.ts`));
    return (await super.sort(files)).sort((a, b) => rank(a) - rank(b));
  }
}

const path = (file: string): string => fileURLToPath(new URL(file, import.meta.url));

const alias = [
  { find: /^cloudflare:workers$/, replacement: path('tests/node/support/workers.ts') },
  // The build of Solid for pages: the one for servers follows nothing.
  { find: /^solid-js$/, replacement: path('node_modules/solid-js/dist/solid.js') },
  ...EXPORTED.map(([name, file]) => ({
    find: new RegExp(`^varve${name.slice(1)}$`),
    replacement: path(`js/src/${file}`),
  })),
];

export default defineConfig({
  test: {
    maxWorkers: 2,
    sequence: { sequencer: LongestFirst },
    projects: [
      {
        resolve: { alias },
        test: {
          name: 'js',
          // A test that hangs ends some day; a busy machine is no failure.
          testTimeout: 300_000,
          hookTimeout: 60_000,
          include: [
            'js/src/**/*.test.ts',
            'tests/node/**/*.test.ts',
            'scripts/**/*.test.mjs',
            'docs/.vitepress/*.test.ts',
            'bench/**/*.test.ts',
          ],
        },
      },
      {
        test: {
          name: 'browser',
          include: ['tests/browser/**/*.test.ts'],
          globalSetup: ['tests/browser/support/global-setup.ts'],
          testTimeout: 300_000,
          hookTimeout: 60_000,
        },
      },
      {
        test: {
          name: 'engines',
          include: ['tests/engines/**/*.test.ts'],
          globalSetup: ['tests/engines/support/global-setup.ts'],
          testTimeout: 300_000,
          hookTimeout: 300_000,
        },
      },
      {
        test: {
          name: 'runtimes',
          include: ['tests/runtimes/**/*.test.ts'],
          testTimeout: 300_000,
          hookTimeout: 60_000,
        },
      },
      {
        test: {
          name: 'packaging',
          include: ['tests/packaging/**/*.test.ts'],
          globalSetup: ['tests/packaging/support/global-setup.ts'],
          // Bundlers take their time on a busy machine.
          testTimeout: 900_000,
          hookTimeout: 600_000,
        },
      },
    ],
  },
});
