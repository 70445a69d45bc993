// Parcel 2, with no configuration but that of the guide for entry points other than `varve`. Its page has an inline import map.

import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { root } from '../../scripts/tools.mjs';
import { readmeBlock } from '../support/readme.ts';
import { expectSite } from './support/expectations.ts';
import { Browser, exampleScript, pageWith } from './support/page.ts';
import { Project } from './support/project.ts';
import { POLICY } from './support/site.ts';

const PARCEL = join(root, 'node_modules', 'parcel', 'lib', 'bin.js');

test('a build runs the example, under a policy that allows its import map', async () => {
  const project = Project.forTest({ 'index.html': pageWith('./main.js'), 'main.js': exampleScript() });
  const browser = Browser.forTest();
  await project.run('node', PARCEL, 'build', 'index.html', '--no-source-maps');
  const [, map = ''] =
    /<script type=importmap>(.*?)<\/script>/s.exec(readFileSync(project.path('dist', 'index.html'), 'utf8')) ?? [];
  const hash = `'sha256-${createHash('sha256').update(map).digest('base64')}'`;
  await expectSite(browser, project.path('dist'), POLICY.replace("script-src 'self'", `script-src 'self' ${hash}`));
});

test('the setting of the guide makes it find the other entry points', async () => {
  const setting = JSON.parse(readmeBlock('json', 'packageExports'));
  const script = "import { collection } from 'varve/collections'; export { collection };";
  const project = Project.forTest({ 'package.json': JSON.stringify({ name: 'fresh', ...setting }), 'main.js': script });
  expect(await project.run('node', PARCEL, 'build', 'main.js', '--no-source-maps')).toContain('Built');
});
