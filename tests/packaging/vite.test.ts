// Vite, with no configuration: the README's first example, built and served as files. examples.test.ts has its development server.

import { afterAll, beforeAll, test } from 'vitest';
import { expectRefusal, expectSite } from './support/expectations.ts';
import { Browser, exampleScript, pageWith } from './support/page.ts';
import { Project } from './support/project.ts';

let browser: Browser;
let project: Project;

beforeAll(async () => {
  browser = await Browser.start();
  project = Project.create({ 'index.html': pageWith('/main.js'), 'main.js': exampleScript() }, ['vite']);
});

afterAll(async () => {
  await browser?.close();
  project?.remove();
});

test('a build runs the example under a strict policy', async () => {
  await project.run('node', 'node_modules/vite/bin/vite.js', 'build');
  await expectSite(browser, project.path('dist'));
  await expectRefusal(browser, project.path('dist'));
});
