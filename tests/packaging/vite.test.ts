// Vite, with no configuration: the README's first example, built and served as files, and from the development server,
// which bundles dependencies beforehand.

import { afterAll, beforeAll, expect, test } from 'vitest';
import { expectDurable, expectRefusal, expectSite } from './support/expectations.ts';
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

test('the development server runs it, its dependencies bundled beforehand', async () => {
  const vite = ['node_modules/vite/bin/vite.js', '--host', '127.0.0.1', '--port', '0'];
  const [, origin] = await project.serve(/(http:\/\/127\.0\.0\.1:\d+)/, 'node', ...vite);
  const [{ fetched }] = await expectDurable(browser, `${origin}/`);
  expect([...fetched.keys()].filter((path) => path.includes('/.vite/deps/varve'))).not.toEqual([]);
});
