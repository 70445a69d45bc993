// webpack 5 and Rspack 2, which has the interface of webpack: they find workers and wasm by their URLs. The only setting permits the
// engine's size, of which webpack warns.

import { expect, test } from 'vitest';
import { expectRefusal, expectSite } from './support/expectations.ts';
import { Browser, exampleScript, pageWith } from './support/page.ts';
import { Project } from './support/project.ts';

/** The bundler without its command line, and without a minifier, which takes longer than all else here; other builds here are minified. */
const build = (bundler: string): string => `
  import bundler from '${bundler}';
  const performance = { maxAssetSize: 310_000 };
  bundler({ mode: 'production', entry: './main.js', performance, optimization: { minimize: false } }, (error, stats) => {
    if (error) throw error;
    console.log(stats.toString({ all: false, errors: true, warnings: true }));
    process.exitCode = stats.hasErrors() ? 1 : 0;
  });
`;

const browser = Browser.forFile();
const project = Project.forFile({ 'main.js': exampleScript() }, ['webpack', '@rspack/core']);

test.for(['webpack', '@rspack/core'])(
  'a build of %s without a warning runs the example under a strict policy',
  async (bundler) => {
    project.write({ 'build.mjs': build(bundler) });
    expect((await project.run('node', 'build.mjs')).trim()).toBe('');
    project.write({ 'dist/index.html': pageWith('/main.js') });
    await expectSite(browser, project.path('dist'));
    await expectRefusal(browser, project.path('dist'));
  },
);
