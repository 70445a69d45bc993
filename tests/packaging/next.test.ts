// Next.js with the App Router: the guide's client component opens a store, without configuration. Its server renders the page first,
// and imports the package for that.

import { afterAll, beforeAll, test } from 'vitest';
import { readmeBlock } from '../support/readme.ts';
import { expectDurable } from './support/expectations.ts';
import { Browser, exampleScript } from './support/page.ts';
import { Project } from './support/project.ts';

const LAYOUT = 'export default ({ children }) => <html lang="en"><body>{children}</body></html>;';
const PAGE = "import { Title } from './title.js'; export default () => <Title />;";
/** Next looks no further than its root for the tools, which are links here. */
const CONFIG = "export default { turbopack: { root: '/' } };";
const NEXT = ['NEXT_TELEMETRY_DISABLED=1', process.execPath, 'node_modules/next/dist/bin/next'];

let browser: Browser;
let project: Project;

beforeAll(async () => {
  browser = await Browser.start();
  const files = {
    'next.config.mjs': CONFIG,
    'app/layout.js': LAYOUT,
    'app/page.js': PAGE,
    'app/title.js': component(),
  };
  project = Project.create(files, ['next', 'react', 'react-dom']);
});

afterAll(async () => {
  await browser?.close();
  project?.remove();
});

/** The guide's component, whose effect runs the example. */
function component(): string {
  const imported = "import { open } from 'varve';";
  const block = readmeBlock('jsx', imported).replace(/open\('notes'\)\..*;/, 'run();');
  return `${block} async function run() { ${exampleScript().replace(imported, '')} }`;
}

test('a client component runs the example', async () => {
  await project.run('env', ...NEXT, 'build');
  const [, origin] = await project.serve(
    /(http:\/\/127\.0\.0\.1:\d+)/,
    'env',
    ...NEXT,
    'start',
    '-H',
    '127.0.0.1',
    '-p',
    '0',
  );
  await expectDurable(browser, `${origin}/`);
});
