// `varve/yjs` in two tabs, also below an editor, and `migrate` of it and of `varve/idb-keyval` in tabs that are closed in its midst, over
// real stores.

import type { Page } from 'playwright';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type {} from './fixtures/yjs.ts';
import { newProfile, type OpenPage, type Profile } from './support/profile.ts';

let profile: Profile;
const opened: OpenPage[] = [];

beforeAll(async () => {
  profile = await newProfile();
});

afterAll(async () => {
  await profile?.close();
  // The editor sets style attributes, which the policy of the site forbids.
  const ofStyles = /^Applying inline style violates/;
  expect(opened.flatMap(({ errors }) => errors).filter((error) => !ofStyles.test(error))).toEqual([]);
});

async function openTab(): Promise<Page> {
  const tab = await profile.openPage('/yjs.html');
  opened.push(tab);
  return tab.page;
}

/** Opens a document as the global `text`, and writes at its end. */
const write = (tab: Page, name: string, written: string): Promise<void> =>
  tab.evaluate(
    async ([name, written]) => {
      const { Doc, yjs } = globalThis.adapters;
      const doc = new Doc();
      await new yjs.VarvePersistence(name as string, doc).whenSynced;
      globalThis.text = doc.getText('text');
      globalThis.text.insert(globalThis.text.length, written as string);
    },
    [name, written],
  );

const shown = (tab: Page): Promise<string> => tab.evaluate(() => globalThis.text.toString());

test('two tabs write one document, and see what the other one writes; it is there when both are gone', async () => {
  const [first, second] = [await openTab(), await openTab()];
  await write(first, 'shared', 'from the first, ');
  await write(second, 'shared', 'from the second');
  for (const tab of [first, second]) await expect.poll(() => shown(tab)).toBe('from the first, from the second');
  // The first tab leads.
  await first.close();
  await second.evaluate(() => globalThis.text.insert(0, 'now '));
  const third = await openTab();
  await write(third, 'shared', '!');
  for (const tab of [second, third]) await expect.poll(() => shown(tab)).toBe('now from the first, from the second!');
  await second.close();
  await third.close();
  const fourth = await openTab();
  await write(fourth, 'shared', '');
  expect(await shown(fourth)).toBe('now from the first, from the second!');
  await fourth.close();
});

/** Shows the documents `left` and `right` in editors. */
const openEditors = (tab: Page): Promise<unknown> =>
  tab.evaluate(() => Promise.all(['left', 'right'].map((name) => globalThis.adapters.edit(name))));

/** Types at the end of an editor, all at once: what takes longer than half a second is undone in parts. */
async function type(tab: Page, name: string, typed: string): Promise<void> {
  await tab.locator(`#${name} .cm-content`).press('Control+End');
  await tab.keyboard.insertText(typed);
}

/** Waits until the editors of both tabs show these texts. */
async function expectTexts(tabs: readonly Page[], left: string, right: string): Promise<void> {
  const shown = () => Promise.all(tabs.map((tab) => tab.locator('.cm-content').allTextContents()));
  await expect.poll(shown, { timeout: 60_000 }).toEqual(tabs.map(() => [left, right]));
}

test('editors in two tabs show what the other one types, undo only their own, and have both documents after a reload', async () => {
  const [first, second] = [await openTab(), await openTab()];
  const tabs = [first, second];
  await Promise.all(tabs.map(openEditors));
  await type(first, 'left', 'silt');
  await expectTexts(tabs, 'silt', '');
  await type(second, 'left', ' and loam');
  await type(second, 'right', 'clay');
  await expectTexts(tabs, 'silt and loam', 'clay');
  await first.locator('#left .cm-content').press('Control+z');
  await expectTexts(tabs, ' and loam', 'clay');
  await Promise.all(tabs.map((tab) => tab.reload()));
  await Promise.all(tabs.map(openEditors));
  await expectTexts(tabs, ' and loam', 'clay');
  await type(first, 'right', '!');
  await expectTexts(tabs, ' and loam', 'clay!');
  for (const tab of tabs) await tab.close();
});

/** Moves in a tab of its own, which is closed after the first part. */
async function cutOff(move: () => Promise<unknown>): Promise<void> {
  const tab = await openTab();
  let resolve = (): void => undefined;
  const moved = new Promise<void>((done) => (resolve = done));
  await tab.exposeFunction('moved', () => resolve());
  await tab.evaluate(() => {
    // The second part is never read, so the tab cannot be ready before it is closed.
    const { getAll } = IDBObjectStore.prototype;
    let parts = 0;
    IDBObjectStore.prototype.getAll = function (...args) {
      return ++parts === 1 ? getAll.apply(this, args) : ({} as IDBRequest);
    };
  });
  const moving = tab.evaluate(move).catch(() => undefined);
  await moved;
  await tab.close();
  await moving;
}

test('data of idb-keyval and y-indexeddb is moved once, also after a tab was closed in the midst of it', async () => {
  const tab = await openTab();
  await tab.evaluate(async () => {
    const { Doc, IndexeddbPersistence, oldKeyval } = globalThis.adapters;
    const entries = Array.from({ length: 300 }, (_, i): [IDBValidKey, unknown] => [i, { i, at: new Date(i) }]);
    await oldKeyval.setMany([...entries, ['file', new File(['content'], 'a.txt', { type: 'text/plain' })]]);
    const doc = new Doc();
    const old = await new IndexeddbPersistence('note', doc).whenSynced;
    for (let i = 0; i < 300; i++) doc.getMap('map').set(`${i}`, i);
    await old.set('seen', 1);
    await old.destroy();
  });
  await cutOff(() => globalThis.adapters.keyval.migrate({ onProgress: globalThis.moved }));
  await cutOff(() => globalThis.adapters.yjs.migrate('note', { onProgress: globalThis.moved }));
  const seen = await tab.evaluate(async () => {
    const { Doc, keyval, oldKeyval, yjs } = globalThis.adapters;
    const partly = (await keyval.keys()).length;
    const reports = [
      [await keyval.migrate(), await keyval.migrate()],
      [await yjs.migrate('note'), await yjs.migrate('note')],
    ];
    const doc = new Doc();
    const persistence = await new yjs.VarvePersistence('note', doc).whenSynced;
    const file = await keyval.get<File>('file');
    const [ours, theirs] = [await keyval.entries(), await oldKeyval.entries()];
    return {
      partly,
      reports,
      isSame: JSON.stringify(ours) === JSON.stringify(theirs),
      size: ours.length,
      file: [file?.name, file?.type, await file?.text()],
      doc: Object.values(doc.getMap('map').toJSON()).sort((a, b) => a - b),
      custom: await persistence.get('seen'),
    };
  });
  expect(seen.partly).toBeGreaterThan(0);
  expect(seen.partly).toBeLessThan(301);
  expect(seen).toMatchObject({ isSame: true, size: 301, file: ['a.txt', 'text/plain', 'content'], custom: 1 });
  const [keys, document] = seen.reports;
  expect(keys).toEqual([
    { copied: 301 - seen.partly, state: 'copied' },
    { copied: 0, state: 'before' },
  ]);
  expect(document).toEqual([
    { copied: expect.any(Number), state: 'copied' },
    { copied: 0, state: 'before' },
  ]);
  // The tab that was closed has copied the others.
  expect(document?.[0]?.copied).toBeGreaterThan(0);
  expect(document?.[0]?.copied).toBeLessThan(302);
  expect(seen.doc).toEqual(Array.from({ length: 300 }, (_, i) => i));
  await tab.close();
});
