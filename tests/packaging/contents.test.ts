// The content of the tarball. It has the wanted files and no other, and its size has a limit, so that growth is noticed. No file names
// this machine, and none does what a strict policy refuses.

import { readFileSync, statSync } from 'node:fs';
import { homedir } from 'node:os';
import { basename, join } from 'node:path';
import { expect, inject, test } from 'vitest';
import { root } from '../../scripts/tools.mjs';
import { readTarball } from './support/tarball.ts';

const TARBALL_BYTES_MAX = 1560 * 1024;

const ENTRIES = [
  ...['index', 'inline', 'synchronous', 'fs', 'deno-kv', 'cloudflare', 'shards', 'storage-adapter'],
  ...['testing', 'http', 'collections', 'react', 'async-storage', 'unstorage', 'idb-keyval', 'abstract-level', 'yjs'],
  ...['automerge', 'zero', 'inspector'],
];
/** The workers, by the place of their declarations. */
const WORKERS = [
  'server/engine-worker',
  'share/broker-worker',
  'compactor/compactor-worker',
  'compactor/file-compactor-worker',
  'engine/encryption-worker',
  'storage/indexeddb/indexeddb-worker',
  'tools/repair-worker',
];
/** The scripts of repairs and of key slots, which have no maps. */
const WITHOUT_MAP = ['dist/repair-worker.js', 'dist/encryption-worker.js'];
/** The command: a script without declarations and without a map. */
const COMMAND = 'dist/cli.js';
const SCRIPTS = [...ENTRIES, ...WORKERS].map((name) => `dist/${basename(name)}.js`);

const files = readTarball(inject('tarball'));
const names = [...files.keys()];
const text = (name: string): string => files.get(name)?.toString() ?? '';
/** The scripts that have code of js/src. */
const scripts = names.filter((name) => name.endsWith('.js') && names.includes(`${name}.map`));

test('the licences, the README, scripts with their maps, declarations and wasm, and nothing else', () => {
  const others = names.filter((name) => !/^dist\/(chunk-[\w-]+\.js(\.map)?|[\w/-]+\.d\.ts)$/.test(name));
  expect(others.sort()).toEqual(
    [
      ...[
        'package.json',
        'README.md',
        'LICENSE-APACHE',
        'LICENSE-MIT',
        'THIRD-PARTY.txt',
        COMMAND,
        'dist/varve.wasm',
        'dist/varve-tools.wasm',
      ],
      // An entry with types alone has an empty script.
      ...SCRIPTS.flatMap((name) => (text(name) === '' || WITHOUT_MAP.includes(name) ? [name] : [name, `${name}.map`])),
    ].sort(),
  );
  expect(names.filter((name) => /test|fixture/.test(name) && !name.startsWith('dist/testing'))).toEqual([]);
  expect(statSync(inject('tarball')).size).toBeLessThan(TARBALL_BYTES_MAX);
});

test('every place that package.json names is there, and nothing has to be installed with it', () => {
  const { bin, exports, sideEffects, dependencies, peerDependenciesMeta, optionalDependencies } = JSON.parse(
    text('package.json'),
  );
  const places = JSON.stringify([exports, sideEffects]).match(/\.\/[\w./-]+(?=")/g) ?? [];
  const targets = places.filter((place) => place.startsWith('./dist/') || place === './package.json');
  expect(targets.length).toBeGreaterThan(20);
  for (const target of targets) expect(names).toContain(target.slice(2));
  // With `./` before it, `npm publish` removes the command.
  expect(bin).toEqual({ varve: COMMAND });
  expect([dependencies, optionalDependencies]).toEqual([undefined, undefined]);
  expect(peerDependenciesMeta).toEqual({
    'abstract-level': { optional: true },
    react: { optional: true },
    yjs: { optional: true },
  });
});

test('side effects are those of workers, and of the element', () => {
  const scripts = ['inspector', ...WORKERS].map((name) => `./dist/${basename(name)}.js`);
  expect(JSON.parse(text('package.json')).sideEffects).toEqual(scripts);
});

test('every declaration is reached from an entry, and imports what is there', () => {
  const declarations = names.filter((name) => name.endsWith('.d.ts'));
  const imported = new Set([...ENTRIES, ...WORKERS, 'global'].map((name) => `dist/${name}.d.ts`));
  for (const name of imported) {
    expect(names).toContain(name);
    for (const [, path = ''] of text(name).matchAll(/(?:from |import\()'(\.[^']+)'/g)) {
      imported.add(join(name, '..', path.replace(/\.js$/, '.d.ts')).replaceAll('\\', '/'));
    }
  }
  expect(declarations.sort()).toEqual([...imported].sort());
});

test('a page without a bundler loads three scripts, and no code of later use', () => {
  const loaded = new Set(['dist/index.js']);
  for (const name of loaded) {
    for (const [, path = ''] of text(name).matchAll(/\b(?:from|import)\s*["'](\.\/[^"']+)["']/g))
      loaded.add(join('dist', path));
  }
  expect([...loaded].filter((name) => !names.includes(name))).toEqual([]);
  expect(loaded.size).toBe(3);
});

test('source maps carry their sources, by relative paths', () => {
  for (const name of scripts) {
    const { sources, sourcesContent } = JSON.parse(text(`${name}.map`)) as Record<string, string[]>;
    expect(sources?.filter((source) => !/^\.\.\/(js|node_modules)\//.test(source))).toEqual([]);
    expect(sourcesContent?.length).toBe(sources?.length);
  }
});

test('nothing names the machine that it was built on', () => {
  const places = [root, homedir()].filter((place) => place.length > 1).map((place) => Buffer.from(place));
  for (const [name, bytes] of files) {
    for (const place of places) expect(bytes.includes(place), `${name} names ${place}`).toBe(false);
  }
});

test('no script evaluates text as code', () => {
  for (const name of [...scripts, COMMAND]) {
    expect(
      text(name).match(/\beval\s*\(|\bFunction\s*\(|\bimportScripts\b|\bset(Timeout|Interval)\s*\(\s*["'`]/g),
      name,
    ).toBeNull();
  }
});

test('the licences are those of the repository, and name everything that is built in', () => {
  for (const name of ['LICENSE-APACHE', 'LICENSE-MIT', 'THIRD-PARTY.txt']) {
    expect(text(name)).toBe(readFileSync(join(root, name), 'utf8'));
  }
  const sources = scripts.flatMap((name) => (JSON.parse(text(`${name}.map`)) as { sources: string[] }).sources);
  const libraries = new Set(sources.map((source) => /node_modules\/((?:@[^/]+\/)?[^/]+)/.exec(source)?.[1] ?? 'varve'));
  expect([...libraries].sort()).toEqual(['idb', 'papaparse', 'varve']);
  // The command has no map. .dependency-cruiser.mjs allows it no other library than papaparse.
  const crates = ['varve', 'varve-cipher', 'varve-host', 'varve-wasm', 'varve-tools'];
  for (const crate of crates) {
    const manifest = readFileSync(join(root, 'crates', crate, 'Cargo.toml'), 'utf8');
    const [, dependencies = ''] = /^\[dependencies\]$(.*?)(^\[|$(?![\s\S]))/ms.exec(manifest) ?? [];
    for (const [, name = ''] of dependencies.matchAll(/^([\w-]+)\b/gm)) if (!crates.includes(name)) libraries.add(name);
  }
  expect(libraries.size).toBeGreaterThan(4);
  for (const library of libraries) expect(text('THIRD-PARTY.txt')).toContain(library);
});
