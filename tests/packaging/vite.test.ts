// Vite, with no configuration: the README's first example, built and served as files. examples.test.ts has its development server.

import { test } from 'vitest';
import { expectRefusal, expectSite } from './support/expectations.ts';
import { Browser, exampleScript, pageWith } from './support/page.ts';
import { Project } from './support/project.ts';

const browser = Browser.forFile();
const project = Project.forFile({ 'index.html': pageWith('/main.js'), 'main.js': exampleScript() }, ['vite']);

test('a build runs the example under a strict policy', async () => {
  await project.run('node', 'node_modules/vite/bin/vite.js', 'build');
  await expectSite(browser, project.path('dist'));
  await expectRefusal(browser, project.path('dist'));
});
