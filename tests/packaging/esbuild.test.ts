// esbuild, with the configuration of the README; and the errors when its files were not copied, or are elsewhere.

import { afterAll, beforeAll, expect, test } from 'vitest';
import { expectRefusal, expectSite } from './support/expectations.ts';
import { Browser, exampleScript, pageWith } from './support/page.ts';
import { Project } from './support/project.ts';
import { readmeBlock } from './support/readme.ts';
import { POLICY, withSite } from './support/site.ts';

/** esbuild without the README's configuration. */
const ALONE = `
  import { build } from 'esbuild';
  await build({ entryPoints: ['main.js'], bundle: true, format: 'esm', outdir: 'alone' });
`;

let browser: Browser;
let project: Project;

beforeAll(async () => {
  browser = await Browser.start();
  project = Project.create({ 'main.js': exampleScript() }, ['esbuild']);
});

afterAll(async () => {
  await browser?.close();
  project?.remove();
});

test("the README's build runs the example under a strict policy", async () => {
  project.write({
    'build.mjs': readmeBlock('js', "import { build } from 'esbuild';"),
    'dist/index.html': pageWith('/main.js'),
  });
  await project.run('node', 'build.mjs');
  await expectSite(browser, project.path('dist'));
  await expectRefusal(browser, project.path('dist'));
});

test('the error for a worker that was not copied names it', async () => {
  project.write({ 'build.mjs': ALONE, 'alone/index.html': pageWith('/main.js') });
  await project.run('node', 'build.mjs');
  await withSite(project.path('alone'), POLICY, async ({ origin }) => {
    const { failure } = await browser.load(`${origin}/`);
    expect(failure).toEqual({ code: 'VARVE_UNSUPPORTED', message: expect.stringContaining('engine-worker.js') });
  });
});

test('worker and wasm may lie elsewhere', async () => {
  const call = readmeBlock('js', "worker: '/assets/engine-worker.js'").replaceAll(
    '/assets/',
    '/node_modules/varve/dist/',
  );
  const script = exampleScript().replace(/const db = await open\('notes'\);/, () => call);
  expect(script).toContain('/node_modules/varve/dist/varve.wasm');
  project.write({ 'main.js': script, 'build.mjs': ALONE, 'index.html': pageWith('/alone/main.js') });
  await project.run('node', 'build.mjs');
  await expectSite(browser, project.folder);
});
