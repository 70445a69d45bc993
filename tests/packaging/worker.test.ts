// A project of a Cloudflare Worker: the README's object, bundled as wrangler bundles (one script, wasm files beside it), in a
// real workerd. The process is killed, and the next one finds what was written.

import { readFileSync } from 'node:fs';
import { build } from 'esbuild';
import { Miniflare, type MiniflareOptions } from 'miniflare';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { ObjectNamespace } from '../../js/src/cloudflare/platform.ts';
import { Project } from './support/project.ts';
import { readmeBlock } from './support/readme.ts';

let project: Project;
let options: MiniflareOptions;

beforeAll(async () => {
  project = Project.create({ 'src/index.ts': readmeBlock('ts', 'export class Notes extends VarveObject') });
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
  const settings = readmeBlock('toml', 'durable_objects');
  const setting = (name: string): string => new RegExp(`^${name} = \\[?"(.*?)"`, 'm').exec(settings)?.[1] ?? '';
  expect(setting('new_sqlite_classes')).toBe(setting('class_name'));
  const wasm = project.list('out').filter((file) => file.endsWith('.wasm'));
  options = {
    modules: [
      { type: 'ESModule', path: 'index.js', contents: readFileSync(project.path('out', 'index.js'), 'utf8') },
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
});

afterAll(() => project?.remove());

test("the README's object answers, and keeps the written values", async () => {
  for (const [run, count] of [1, 2].entries()) {
    const workerd = new Miniflare(options);
    try {
      const response = await workerd.dispatchFetch('http://worker/');
      expect(await response.json()).toEqual({ title: 'Silt' });
      const namespace = (await workerd.getDurableObjectNamespace('NOTES')) as unknown as ObjectNamespace;
      const stub = namespace.get(namespace.idFromName('ada')) as { add(id: number, note: object): Promise<number> };
      expect(await stub.add(run, { title: 'Clay' })).toBe(count + 1);
    } finally {
      await workerd.dispose();
    }
  }
});
