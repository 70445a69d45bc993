// The example of a Durable Object, bundled as wrangler bundles (one script, wasm files beside it), in a real workerd. The process is
// killed, and the next one finds what was written.

import { readFileSync } from 'node:fs';
import { build } from 'esbuild';
import { Miniflare } from 'miniflare';
import { expect, test } from 'vitest';
import { exampleFile, exampleProject } from './support/example.ts';

test('an object keeps the notes of each user', async () => {
  const project = await exampleProject('durable-object');
  await build({
    absWorkingDir: project.folder,
    entryPoints: ['src/index.ts'],
    outdir: 'out',
    bundle: true,
    format: 'esm',
    target: 'es2022',
    conditions: ['workerd', 'worker', 'browser'],
    external: ['cloudflare:*'],
    loader: { '.wasm': 'copy' },
  });
  const settings = exampleFile('durable-object', 'wrangler.toml');
  const setting = (name: string): string => new RegExp(`^${name} = \\[?"(.*?)"`, 'm').exec(settings)?.[1] ?? '';
  expect(setting('new_sqlite_classes')).toBe(setting('class_name'));
  const wasm = project.list('out').filter((file) => file.endsWith('.wasm'));
  const options = {
    modules: [
      { type: 'ESModule' as const, path: 'index.js', contents: readFileSync(project.path('out', 'index.js'), 'utf8') },
      ...wasm.map((path) => ({
        type: 'CompiledWasm' as const,
        path,
        contents: readFileSync(project.path('out', path)),
      })),
    ],
    compatibilityDate: setting('compatibility_date'),
    durableObjects: { NOTES: { className: setting('class_name'), useSQLite: true } },
    durableObjectsPersist: project.path('objects'),
  };
  for (const id of [1, 2]) {
    const workerd = new Miniflare(options);
    try {
      const added = await workerd.dispatchFetch('http://worker/ada', {
        method: 'POST',
        body: `{ "title": "Silt ${id}" }`,
      });
      expect([added.status, await added.json()]).toEqual([201, { id }]);
      const newest = [{ title: 'Silt 2' }, { title: 'Silt 1' }].slice(2 - id);
      expect(await (await workerd.dispatchFetch('http://worker/ada')).json()).toEqual(newest);
      expect(await (await workerd.dispatchFetch('http://worker/bob')).json()).toEqual([]);
    } finally {
      await workerd.dispose();
    }
  }
});
