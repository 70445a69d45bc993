// The projects of examples/, each in a fresh folder with the dependencies that it names and no others. A test starts one as its
// README says, and uses it as a person would.

import { cpSync, readFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import type { Locator, Page } from 'playwright';
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import { version } from '../../package.json' with { type: 'json' };
import { env, root } from '../../scripts/tools.mjs';
import { Browser } from './support/page.ts';
import { Project } from './support/project.ts';
import { blocksOf } from './support/readme.ts';

const EXAMPLES = join(root, 'examples');
const VITE = ['--host', '127.0.0.1', '--port', '0'];

let browser: Browser;

beforeAll(async () => {
  browser = await Browser.start();
});

afterAll(() => browser?.close());

/** Checks an example and starts it with more arguments; resolves with the address at which it serves. */
async function start(name: string, ...more: string[]): Promise<string> {
  const { scripts, dependencies, devDependencies } = JSON.parse(
    readFileSync(join(EXAMPLES, name, 'package.json'), 'utf8'),
  );
  const { varve, ...tools } = { ...dependencies, ...devDependencies };
  expect(varve).toBe(`^${version}`);
  const project = Project.create({}, Object.keys(tools));
  onTestFinished(() => project.remove());
  const filter = (path: string): boolean => !['node_modules', 'dist'].includes(basename(path));
  cpSync(join(EXAMPLES, name), project.folder, { recursive: true, filter });
  const shell = (line: string): [command: string, ...args: string[]] => ['env', `PATH=${env.PATH}`, 'sh', '-c', line];
  if (scripts.check) await project.run(...shell(scripts.check));
  const [url] = await project.serve(/http:\/\/[\w.]+:\d+/, ...shell(['exec', scripts.start, ...more].join(' ')));
  return url;
}

/** Opens a page of an example, which must complain about nothing while the test runs. */
async function visit(url: string): Promise<Page> {
  const { page, complaints } = await browser.page();
  onTestFinished(async () => {
    await page.close();
    expect(complaints).toEqual([]);
  });
  await page.goto(url);
  return page;
}

/** Waits until the texts of a page contain these, one each. */
const expectTexts = (shown: Locator, texts: readonly string[]): Promise<void> =>
  expect
    .poll(() => shown.allInnerTexts(), { timeout: 60_000 })
    .toEqual(texts.map((text) => expect.stringContaining(text)));

test.for([['docs/recipes/undo.md', 'svelte/src/undo.ts']])('%s shows %s', ([page, file]) => {
  expect(blocksOf(page!).map(([, code]) => code)).toContain(readFileSync(join(EXAMPLES, file!), 'utf8'));
});

test('vanilla: a note is in every tab, also after a reload, until it is deleted', async () => {
  const url = await start('vanilla', ...VITE);
  const [page, other] = [await visit(url), await visit(url)];
  for (const text of ['Silt', 'Clay']) {
    await page.getByLabel('New note').fill(text);
    await page.getByRole('button', { name: 'Add' }).click();
    await expectTexts(page.locator('li').first(), [text]);
  }
  await expectTexts(other.locator('li'), ['Clay', 'Silt']);
  await page.reload();
  await page.getByRole('button', { name: 'Delete' }).first().click();
  for (const tab of [page, other]) await expectTexts(tab.locator('li'), ['Silt']);
});

test('React: a task goes to the other list', async () => {
  const page = await visit(await start('react', ...VITE));
  for (const text of ['Silt', 'Clay']) {
    await page.getByLabel('New task').fill(text);
    await page.getByRole('button', { name: 'Add' }).click();
    await page.getByText(text).waitFor();
  }
  await page.getByRole('button', { name: 'Done' }).first().click();
  await expectTexts(page.locator('h1, li'), ['1 to do', 'Clay']);
  await page.getByLabel('Show what is done').check();
  await expectTexts(page.locator('h1, li'), ['1 to do', 'Silt']);
});

test('Svelte: a change is taken back, and made again after a reload', async () => {
  const page = await visit(await start('svelte', ...VITE));
  const filled = page.locator('[aria-pressed=true]');
  const expectFilled = (count: number): Promise<void> => expectTexts(filled, Array(count).fill(''));
  await page.getByLabel('Pixel 1', { exact: true }).click();
  await page.getByLabel('Pixel 64').click();
  await expectFilled(2);
  await page.getByRole('button', { name: 'Undo' }).click();
  await expectFilled(1);
  await page.reload();
  await page.getByRole('button', { name: 'Redo' }).click();
  await expectFilled(2);
  await page.getByLabel('Pixel 1', { exact: true }).click();
  await expectFilled(1);
  expect(await page.getByRole('button', { name: 'Redo' }).isDisabled()).toBe(true);
});

test('service worker: pushed messages are in the page, also those that came without one', async () => {
  const url = await start('service-worker', ...VITE);
  const page = await visit(url);
  await page.context().grantPermissions(['notifications']);
  const devtools = await page.context().newCDPSession(page);
  const registered = new Promise<string>((resolve) => {
    devtools.on('ServiceWorker.workerVersionUpdated', ({ versions }) => {
      const active = versions.find(({ status }) => status === 'activated');
      if (active) resolve(active.registrationId);
    });
  });
  await devtools.send('ServiceWorker.enable');
  const registrationId = await registered;
  const push = (data: string): Promise<unknown> =>
    devtools.send('ServiceWorker.deliverPushMessage', { origin: url, registrationId, data });
  await push('Silt');
  await expectTexts(page.locator('li'), ['Silt']);
  await page.goto(`${url}/sw.js`);
  await push('Clay');
  const shown = (): Promise<string[]> =>
    page.evaluate(async () => {
      const [registration] = await navigator.serviceWorker.getRegistrations();
      return (await registration!.getNotifications()).map(({ title }) => title);
    });
  await expect.poll(shown, { timeout: 60_000 }).toEqual(expect.arrayContaining(['Silt', 'Clay']));
  await page.goto(url);
  await expectTexts(page.locator('li'), ['Clay', 'Silt']);
});
