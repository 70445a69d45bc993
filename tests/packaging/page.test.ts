// A page without a bundler: the installed package is served unchanged, and found through an import map.

import { createHash } from 'node:crypto';
import { expect, test } from 'vitest';
import { readmeBlock } from '../support/readme.ts';
import { expectRefusal, expectSite } from './support/expectations.ts';
import { Browser, exampleScript, pageWith } from './support/page.ts';
import { Project } from './support/project.ts';
import { POLICY, POLICY_WITHOUT_WASM } from './support/site.ts';

const PATH = '/node_modules/varve/dist/index.js';

const browser = Browser.forFile();
const project = Project.forFile();

test("a module script imports the package's file, under a strict policy", async () => {
  const script = exampleScript().replace("from 'varve'", `from '${PATH}'`);
  project.write({ 'main.js': script, 'index.html': pageWith('/main.js') });
  await expectSite(browser, project.folder);
  await expectRefusal(browser, project.folder);
});

test('an import map, whose hash the policy allows, names the file', async () => {
  const map = readmeBlock('html', 'importmap');
  const [, text = ''] = /<script type="importmap">(.*?)<\/script>/s.exec(map) ?? [];
  expect(JSON.parse(text)).toEqual({ imports: { varve: PATH } });
  project.write({ 'main.js': exampleScript(), 'index.html': pageWith('/main.js', map) });
  const hash = `'sha256-${createHash('sha256').update(text).digest('base64')}'`;
  const allow = (policy: string): string => policy.replace("script-src 'self'", `script-src 'self' ${hash}`);
  await expectSite(browser, project.folder, allow(POLICY));
  await expectRefusal(browser, project.folder, allow(POLICY_WITHOUT_WASM));
});
