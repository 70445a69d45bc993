// A bundle that imports one thing contains little of the rest. Its size is judged, and sentences of the other parts may not be in it.

import { readFileSync } from 'node:fs';
import { type BuildOptions, build } from 'esbuild';
import { expect, test } from 'vitest';
import { Project } from './support/project.ts';

/** Texts of the page's end of a worker, and of every module that runs the engine. */
const CLIENT = 'The engine worker did not start';
const ENGINE = 'a compaction writes new tables';

const project = Project.forFile();

const OPTIONS = { bundle: true, minify: true, format: 'esm', external: ['node:*'] } satisfies BuildOptions;

/** Bundles one import, with everything that it may load later. */
async function whole(what: string, from: string): Promise<string> {
  return bundled(`import { ${what} } from '${from}';\nconsole.log(${what});`);
}

async function bundled(code: string): Promise<string> {
  project.write({ 'main.js': code });
  const { outputFiles } = await build({
    ...OPTIONS,
    absWorkingDir: project.folder,
    entryPoints: ['main.js'],
    write: false,
    logOverride: { 'ignored-bare-import': 'silent' },
  });
  return outputFiles[0]?.text ?? '';
}

/** Bundles one import; returns the text of what loads with it at once. */
async function atOnce(what: string, from: string): Promise<string> {
  project.write({ 'main.js': `import { ${what} } from '${from}';\nconsole.log(${what});` });
  const { metafile } = await build({
    ...OPTIONS,
    absWorkingDir: project.folder,
    entryPoints: ['main.js'],
    outdir: 'out',
    splitting: true,
    metafile: true,
  });
  const loaded = new Set(['out/main.js']);
  for (const file of loaded) {
    for (const { path, kind, external } of metafile.outputs[file]?.imports ?? []) {
      if (kind === 'import-statement' && !external) loaded.add(path);
    }
  }
  return [...loaded].map((file) => readFileSync(project.path(file), 'utf8')).join('');
}

test.for(['varve', 'varve/inline', 'varve/synchronous', 'varve/fs'])(
  'an error class of %s is bundled alone',
  async (entry) => {
    const text = await whole('VarveError', entry);
    expect(text).toContain('VarveError');
    expect(text.length).toBeLessThan(2000);
  },
);

test('each API bundles only its own access to the engine', async () => {
  const page = await atOnce('open', 'varve');
  const inline = await atOnce('open', 'varve/inline');
  const sync = await atOnce('open', 'varve/synchronous');
  expect([page.includes(CLIENT), page.includes(ENGINE)]).toEqual([true, false]);
  expect([inline.includes(CLIENT), inline.includes(ENGINE)]).toEqual([true, true]);
  expect([sync.includes(CLIENT), sync.includes(ENGINE)]).toEqual([false, true]);
});

test('codecs are bundled without a store, and an import of nothing is empty', async () => {
  const codec = await whole('bytes', 'varve');
  expect([codec.includes(CLIENT), codec.includes(ENGINE)]).toEqual([false, false]);
  const entries = [
    'varve',
    'varve/synchronous',
    'varve/http',
    'varve/collections',
    'varve/async-storage',
    'varve/unstorage',
  ];
  expect((await bundled(entries.map((entry) => `import '${entry}';`).join(''))).trim()).toBe('');
});

test('collections are bundled without a store', async () => {
  const collections = await whole('collection', 'varve/collections');
  expect([collections.includes(CLIENT), collections.includes(ENGINE)]).toEqual([false, false]);
  expect(collections).toContain('has no index');
});

test('a worker that is imported stays whole', async () => {
  expect(await bundled("import 'varve/engine-worker.js';")).toContain(ENGINE);
});
