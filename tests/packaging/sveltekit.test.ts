// SvelteKit, without configuration: a page that opens a store in `onMount`. Its server renders the page first, and imports the package
// for that.

import { onTestFinished, test } from 'vitest';
import { expectDurable } from './support/expectations.ts';
import { Browser, exampleScript } from './support/page.ts';
import { Project } from './support/project.ts';

const IMPORTED = "import { open } from 'varve';";

const FILES = {
  'vite.config.mjs': "import { sveltekit } from '@sveltejs/kit/vite'; export default { plugins: [sveltekit()] };",
  'src/app.html': '<!doctype html><html lang="en"><head>%sveltekit.head%</head><body>%sveltekit.body%</body></html>',
  'src/routes/+page.svelte': `<script>
    import { onMount } from 'svelte';
    ${IMPORTED}
    onMount(async () => { ${exampleScript().replace(IMPORTED, '')} });
  </script>`,
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
