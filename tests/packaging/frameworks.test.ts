// Next.js with the App Router, SvelteKit and Nuxt, without configuration: the guide's page for each opens a store in the browser. Their
// servers render the page first, and import the package for that.

import { test } from 'vitest';
import { readmeBlock } from '../support/readme.ts';
import { expectDurable } from './support/expectations.ts';
import { Browser, exampleScript } from './support/page.ts';
import { Project } from './support/project.ts';

const IMPORT = "import { open } from 'varve';";
const EXAMPLE = exampleScript().replace(IMPORT, '');

/** The guide's component for Next.js, whose effect runs the example. */
const component = () =>
  `${readmeBlock('jsx', IMPORT).replace(/const opening = [\s\S]*?undefined\);/, () => 'run();')} async function run() { ${EXAMPLE} }`;

/** The guide's page for Svelte or Vue, which runs the example when it is mounted. */
const page = (kind: string, marker: string) => readmeBlock(kind, marker).replace(/const db = [^}]*/, () => EXAMPLE);

const NEXT = ['NEXT_TELEMETRY_DISABLED=1', process.execPath, 'node_modules/next/dist/bin/next'];
const VITE = [process.execPath, 'node_modules/vite/bin/vite.js'];
const NUXT = ['NUXT_TELEMETRY_DISABLED=1', process.execPath, 'node_modules/nuxt/bin/nuxt.mjs'];

interface Framework {
  readonly name: string;
  readonly files: Readonly<Record<string, string>>;
  readonly tools: readonly string[];
  readonly build: readonly string[];
  readonly serve: readonly string[];
}

const FRAMEWORKS: readonly Framework[] = [
  {
    name: 'Next.js',
    files: {
      // Next looks no further than its root for the tools, which are links here.
      'next.config.mjs': "export default { turbopack: { root: '/' } };",
      'app/layout.js': 'export default ({ children }) => <html lang="en"><body>{children}</body></html>;',
      'app/page.js': "import { Title } from './title.js'; export default () => <Title />;",
      'app/title.js': component(),
    },
    tools: ['next', 'react', 'react-dom'],
    build: [...NEXT, 'build'],
    serve: [...NEXT, 'start', '-H', '127.0.0.1', '-p', '0'],
  },
  {
    name: 'SvelteKit',
    files: {
      'vite.config.mjs': "import { sveltekit } from '@sveltejs/kit/vite'; export default { plugins: [sveltekit()] };",
      'src/app.html':
        '<!doctype html><html lang="en"><head>%sveltekit.head%</head><body>%sveltekit.body%</body></html>',
      'src/routes/+page.svelte': page('svelte', 'onMount'),
    },
    tools: ['@sveltejs/kit', '@sveltejs/vite-plugin-svelte', 'svelte', 'vite'],
    build: [...VITE, 'build'],
    serve: [...VITE, 'preview', '--host', '127.0.0.1', '--port', '0'],
  },
  {
    name: 'Nuxt',
    files: { 'app/app.vue': page('vue', 'onMounted') },
    tools: ['nuxt', 'vue'],
    build: [...NUXT, 'build'],
    serve: ['HOST=127.0.0.1', 'PORT=0', process.execPath, '.output/server/index.mjs'],
  },
];

test.each(FRAMEWORKS)('a page of $name runs the example', async ({ files, tools, build, serve }) => {
  const project = Project.forTest(files, tools);
  const browser = Browser.forTest();
  await project.run('env', ...build);
  const [origin] = await project.serve(/http:\/\/127\.0\.0\.1:\d+/, 'env', ...serve);
  await expectDurable(browser, `${origin}/`);
});
