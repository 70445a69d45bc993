// SvelteKit, without configuration: the guide's page opens a store in `onMount`. Its server renders the page first, and imports the package
// for that.

import { onTestFinished, test } from 'vitest';
import { readmeBlock } from '../support/readme.ts';
import { expectDurable } from './support/expectations.ts';
import { Browser, exampleScript } from './support/page.ts';
import { Project } from './support/project.ts';

/** The guide's page, which runs the example when it is mounted. */
function page(): string {
  const example = exampleScript().replace("import { open } from 'varve';", '');
  return readmeBlock('svelte', 'onMount').replace(/const db = [^}]*/, () => example);
}

const FILES = {
  'vite.config.mjs': "import { sveltekit } from '@sveltejs/kit/vite'; export default { plugins: [sveltekit()] };",
  'src/app.html': '<!doctype html><html lang="en"><head>%sveltekit.head%</head><body>%sveltekit.body%</body></html>',
  'src/routes/+page.svelte': page(),
};
const TOOLS = ['@sveltejs/kit', '@sveltejs/vite-plugin-svelte', 'svelte', 'vite'];
const VITE = ['node', 'node_modules/vite/bin/vite.js'] as const;

test('a page runs the example', async () => {
  const project = Project.create(FILES, TOOLS);
  onTestFinished(() => project.remove());
  const browser = await Browser.start();
  onTestFinished(() => browser.close());
  await project.run(...VITE, 'build');
  const [origin] = await project.serve(
    /http:\/\/127\.0\.0\.1:\d+/,
    ...VITE,
    'preview',
    '--host',
    '127.0.0.1',
    '--port',
    '0',
  );
  await expectDurable(browser, `${origin}/`);
});
