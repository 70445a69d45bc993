// Bundlers that do not follow URLs, with the lines of the guide: the files of the package are copied. And the errors when they were
// not copied, or are elsewhere.

import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { root } from '../../scripts/tools.mjs';
import { readmeBlock } from '../support/readme.ts';
import { RUNTIMES } from '../support/runtimes.ts';
import { expectRefusal, expectSite } from './support/expectations.ts';
import { Browser, exampleScript, pageWith } from './support/page.ts';
import { Project } from './support/project.ts';
import { POLICY, withSite } from './support/site.ts';

/** esbuild alone. */
const ALONE = `
  import { build } from 'esbuild';
  await build({ entryPoints: ['main.js'], bundle: true, format: 'esm', outdir: 'alone' });
`;

const browser = Browser.forFile();
const project = Project.forFile({ 'main.js': exampleScript() }, ['esbuild']);

test.for(['esbuild', 'rollup', 'bun'])(
  "the guide's lines for %s run the example under a strict policy",
  async (tool) => {
    rmSync(project.path('dist'), { recursive: true, force: true });
    const [, build = ''] = new RegExp(`^${tool} (.*)$`, 'm').exec(readmeBlock('sh', 'node-resolve')) ?? [];
    const said = await project.run('sh', '-c', `"${commandOf(tool)}" ${build}`);
    expect(said).not.toMatch(/warn|\(!\)/i);
    await project.run('sh', '-c', readmeBlock('sh', '*-worker.js'));
    project.write({ 'dist/index.html': pageWith('/main.js') });
    await expectSite(browser, project.path('dist'));
    await expectRefusal(browser, project.path('dist'));
  },
);

/** The program of a bundler: Bun's works without the scripts of its package, too. */
function commandOf(tool: string): string {
  return RUNTIMES.find(({ name }) => name === tool)?.command ?? join(root, 'node_modules', '.bin', tool);
}

test('the error for a worker that was not copied names it', async () => {
  project.write({ 'build.mjs': ALONE, 'alone/index.html': pageWith('/main.js') });
  await project.run('node', 'build.mjs');
  await withSite(project.path('alone'), POLICY, async ({ origin }) => {
    const { failure } = await browser.load(`${origin}/`);
    expect(failure).toEqual({ code: 'VARVE_UNAVAILABLE', message: expect.stringContaining('engine-worker.js') });
  });
});

test('worker and wasm may lie elsewhere', async () => {
  const call = readmeBlock('js', "worker: '/assets/engine-worker.js'").replaceAll(
    '/assets/',
    '/node_modules/varve/dist/',
  );
  const { options = '' } = /open\('notes', \{(?<options>.*?)\}\)/s.exec(call)?.groups ?? {};
  const script = exampleScript()
    .replace(/const db = await open\('notes'\);/, () => call)
    .replace(/open\('other', \{/, (start) => `${start}${options}, `);
  expect(script).toContain('/node_modules/varve/dist/varve.wasm');
  project.write({ 'main.js': script, 'build.mjs': ALONE, 'index.html': pageWith('/alone/main.js') });
  await project.run('node', 'build.mjs');
  await expectSite(browser, project.folder);
});
