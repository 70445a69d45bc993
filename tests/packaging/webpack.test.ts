// webpack 5: it finds workers and wasm by their URLs. Its only setting permits the engine's size.

import { afterAll, beforeAll, expect, test } from 'vitest';
import { expectRefusal, expectSite } from './support/expectations.ts';
import { Browser, exampleScript, pageWith } from './support/page.ts';
import { Project } from './support/project.ts';

/** webpack without its command line, and without terser, which takes longer than all else here; other builds here are minified. */
const BUILD = `
  import webpack from 'webpack';
  const performance = { maxAssetSize: 280_000 };
  webpack({ mode: 'production', entry: './main.js', performance, optimization: { minimize: false } }, (error, stats) => {
    if (error) throw error;
    console.log(stats.toString({ all: false, errors: true, warnings: true }));
    process.exitCode = stats.hasErrors() ? 1 : 0;
  });
`;

let browser: Browser;
let project: Project;

beforeAll(async () => {
  browser = await Browser.start();
  project = Project.create({ 'main.js': exampleScript(), 'build.mjs': BUILD }, ['webpack']);
});

afterAll(async () => {
  await browser?.close();
  project?.remove();
});

test('a build without a warning runs the example under a strict policy', async () => {
  expect((await project.run('node', 'build.mjs')).trim()).toBe('');
  project.write({ 'dist/index.html': pageWith('/main.js') });
  await expectSite(browser, project.path('dist'));
  await expectRefusal(browser, project.path('dist'));
});
