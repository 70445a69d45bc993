// The projects of examples/, started as their READMEs say and used as a person would; the Durable Object in worker.test.ts.

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Locator, Page } from 'playwright';
import { expect, onTestFinished, test } from 'vitest';
import { root } from '../../scripts/tools.mjs';
import { exampleFile, startExample } from './support/example.ts';
import { Browser } from './support/page.ts';

/** Arguments of Vite: a free port. */
const VITE = '--host 127.0.0.1 --port 0';

const browser = Browser.forFile();

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

test.for([
  ['docs/recipes/undo.md', 'svelte/src/undo.ts'],
  ['docs/recipes/prefix-search.md', 'collections/src/notes.ts'],
  ['docs/guide/cloudflare.md', 'durable-object/src/index.ts'],
  ['docs/guide/cloudflare.md', 'durable-object/wrangler.toml'],
  ['docs/guide/deno-kv.md', 'deno-kv/main.ts'],
  ['docs/guide/deno-kv.md', 'deno-kv/deno.json'],
] as const)('%s shows %s', ([page, file]) => {
  expect(readFileSync(join(root, page), 'utf8')).toContain(`\n${exampleFile(file)}\`\`\`\n`);
});

test('vanilla: a note is in every tab, also after a reload, until it is deleted', async () => {
  const url = await startExample('vanilla', VITE);
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
  const page = await visit(await startExample('react', VITE));
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
  const page = await visit(await startExample('svelte', VITE));
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
  const url = await startExample('service-worker', VITE);
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

test('collections: a search follows what is written, in every tab', async () => {
  const url = await startExample('collections', VITE);
  const [page, other] = [await visit(url), await visit(url)];
  await other.getByLabel('Search').fill('mud');
  for (const text of ['Mud of a lake', 'Lakes', 'Clay, mud']) {
    await page.getByLabel('New note').fill(text);
    await page.getByRole('button', { name: 'Add' }).click();
    await expectTexts(page.locator('li').first(), [text]);
  }
  await expectTexts(other.locator('li'), ['Mud of a lake', 'Clay, mud']);
  await other.getByLabel('Search').fill('lak mu');
  await expectTexts(other.locator('li'), ['Mud of a lake']);
});

test('Node: a short link is made once, followed and counted', async () => {
  const url = await startExample('node-server', '', 'PORT=0');
  const put = (name: string, body: string): Promise<number> =>
    fetch(`${url}/${name}`, { method: 'PUT', body }).then(({ status }) => status);
  const follow = async (name: string): Promise<unknown[]> => {
    const { status, headers } = await fetch(`${url}/${name}`, { redirect: 'manual' });
    return [status, headers.get('location')];
  };
  expect(await put('silt', 'https://example.com/silt')).toBe(201);
  expect(await put('silt', 'https://example.com/other')).toBe(409);
  expect(await put('clay', 'nowhere')).toBe(400);
  for (const visit of await Promise.all(Array.from({ length: 10 }, () => follow('silt')))) {
    expect(visit).toEqual([302, 'https://example.com/silt']);
  }
  expect(await follow('clay')).toEqual([404, null]);
  expect(await (await fetch(url)).text()).toBe('10 silt https://example.com/silt\n');
});

test('Deno KV: notes are kept, with a store that is opened for requests', async () => {
  const url = await startExample('deno-kv', '', 'DENO_SERVE_ADDRESS=tcp:127.0.0.1:0', 'DENO_DIR=.deno');
  const post = (body: string): Promise<number> => fetch(url, { method: 'POST', body }).then(({ status }) => status);
  expect(await post('first')).toBe(201);
  expect(await Promise.all(Array.from({ length: 10 }, (_, i) => post(`note ${i}`)))).toEqual(Array(10).fill(201));
  const notes = (await (await fetch(url)).json()) as string[];
  expect([notes.length, notes.at(-1)]).toEqual([11, 'first']);
});
