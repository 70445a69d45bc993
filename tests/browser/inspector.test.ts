// `varve/inspector` in a page without a framework: what it loads, what it shows, and that all of it works with the keyboard.

import type { Page } from 'playwright';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { Store } from '../../js/src/index.ts';
import { newProfile, type OpenPage, type Profile } from './support/profile.ts';

type Db = Store<unknown, unknown>;

let profile: Profile;
/** A tab with the store `notes`, which it leads. */
let app: OpenPage;

beforeAll(async () => {
  profile = await newProfile();
  app = await profile.openPage('/blank.html');
  await openStore(app.page, 'notes', 'structured');
  await app.page.evaluate(async () => {
    const { db } = globalThis as unknown as { db: Db };
    await db.setMany([
      [['note', 1], 'silt'],
      [['note', 2], 'sand'],
      ['zebra', 1],
    ]);
    await db.set(['note', 2], 'sand', { expiresAt: Date.UTC(2100) });
  });
});

afterAll(() => profile?.close());

/** Opens a store in a page, as `db`. The code is a text, so that nothing rewrites its import. */
async function openStore(page: Page, name: string, codec: 'structured' | 'json'): Promise<void> {
  await page.evaluate(
    `import('/varve/index.js').then(async ({ open, ${codec} }) => {
      globalThis.db = await open('${name}', { values: ${codec} });
    })`,
  );
}

/** Puts an inspector into a page. */
async function addInspector(page: Page): Promise<void> {
  await page.evaluate(`import('/varve/inspector.js').then(() => {
    document.body.append(document.createElement('varve-inspector'));
  })`);
}

const ready = (page: Page): Promise<unknown> => page.waitForSelector('#panel[data-state="ready"]');

test('closed it loads nothing; opened with the keyboard it shows, follows and changes the store of another tab', async () => {
  const { page, errors } = await profile.openPage('/blank.html');
  const loaded: string[] = [];
  page.on('request', (request) => loaded.push(new URL(request.url()).pathname));
  await addInspector(page);
  expect(loaded).toEqual(['/varve/inspector.js']);
  await page.keyboard.press('Tab');
  await page.keyboard.press('Enter');
  await ready(page);
  expect(loaded).toContain('/varve/index.js');
  expect(await page.locator('#store option').allTextContents()).toEqual(['notes']);
  await page.locator('#sharing', { hasText: 'Another tab leads' }).waitFor();
  const keys = page.locator('#keys-list .entry-key');
  expect(await keys.allTextContents()).toEqual(['"zebra"', '["note", 1]', '["note", 2]']);

  // The arrow keys go from tab to tab, and from entry to entry.
  await page.locator('#tab-keys').focus();
  await page.keyboard.press('ArrowLeft');
  expect(await page.getAttribute('#tab-changes', 'aria-selected')).toBe('true');
  await page.locator('#changes-count', { hasText: 'as they are committed' }).waitFor();
  await app.page.evaluate(() => (globalThis as unknown as { db: Db }).db.set(['note', 3], 'clay'));
  await page.locator('#changes-list', { hasText: '["note", 3]"clay"' }).waitFor();
  await page.keyboard.press('Home');
  await expect.poll(() => keys.allTextContents()).toContain('["note", 3]');
  await page.locator('#keys-list button').first().focus();
  await app.page.evaluate(() => (globalThis as unknown as { db: Db }).db.delete(['note', 1]));
  await expect.poll(() => keys.allTextContents()).toEqual(['"zebra"', '["note", 2]', '["note", 3]']);
  await page.keyboard.press('ArrowDown');
  await page.keyboard.press('Enter');
  await expect.poll(() => page.inputValue('#editor-value')).toBe('"sand"');
  await page.keyboard.press('ControlOrMeta+A');
  await page.keyboard.type('"gravel"');
  await page.keyboard.press('Tab');
  await page.keyboard.press('Enter');
  await page.locator('#editor-status', { hasText: 'Saved' }).waitFor();
  const saved = await app.page.evaluate(() => (globalThis as unknown as { db: Db }).db.getEntry(['note', 2]));
  expect(saved).toMatchObject({ value: 'gravel', expiresAt: new Date(Date.UTC(2100)) });

  // The button deletes the keys of the list, whatever the form says meanwhile.
  await page.selectOption('#range-kind', 'prefix');
  await page.fill('#range-from', '["note"]');
  await page.click('#range-show');
  await expect.poll(() => keys.allTextContents()).toEqual(['["note", 2]', '["note", 3]']);
  await page.selectOption('#range-kind', 'between');
  await page.fill('#range-from', '');
  await page.click('#delete-range');
  await page.click('#delete-yes');
  await expect.poll(() => keys.allTextContents()).toEqual(['"zebra"']);

  // Taken out of the page, it leaves the store.
  await page.evaluate(() => document.querySelector('varve-inspector')?.remove());
  const clients = (): Promise<unknown> =>
    app.page.evaluate(async () => (await (globalThis as unknown as { db: Db }).db.stats()).sharing?.clients);
  await expect.poll(clients).toBe(1);
  expect([...errors, ...app.errors]).toEqual([]);
});

test('a store of the page is shown with its codecs, and stays open; by its name it is read with the chosen codec', async () => {
  const { page, errors } = await profile.openPage('/blank.html');
  await openStore(page, 'coded', 'json');
  await page.evaluate(() => (globalThis as unknown as { db: Db }).db.set('a', { depth: 3 }));
  await addInspector(page);
  const show = (traits: object): Promise<unknown> =>
    page.evaluate((given) => Object.assign(document.querySelector('varve-inspector') as object, given), traits);
  await page.evaluate(() => {
    const { db } = globalThis as unknown as { db: Db };
    Object.assign(document.querySelector('varve-inspector') as object, { store: db, open: true });
  });
  await ready(page);
  expect(await page.textContent('#opened')).toContain('Opened by the page');
  await page.locator('#keys-list', { hasText: '{"depth":3}' }).waitFor();
  await show({ open: false });
  expect(await page.evaluate(() => (globalThis as unknown as { db: Db }).db.get('a'))).toEqual({ depth: 3 });

  await page.evaluate(() => document.querySelector('varve-inspector')?.setAttribute('name', 'coded'));
  await page.evaluate(() => Object.assign(document.querySelector('varve-inspector') as object, { store: undefined }));
  await show({ open: true });
  await page.locator('#alert', { hasText: 'VARVE_' }).waitFor();
  await page.selectOption('#codec', 'json');
  await page.locator('#keys-list', { hasText: '{"depth":3}' }).waitFor();
  expect(await page.isHidden('#alert')).toBe(true);
  expect(errors).toEqual([]);
});

// Story: the page gave another store, or none. The panel compared the one that it left with the new one, and closed it.
test('a store of the page stays open when the page takes it back', async () => {
  const { page, errors } = await profile.openPage('/blank.html');
  await openStore(page, 'given', 'structured');
  await addInspector(page);
  await page.evaluate(async () => {
    const { db } = globalThis as unknown as { db: Db };
    await db.set('a', 1);
    const inspector = document.querySelector('varve-inspector') as Element;
    inspector.setAttribute('name', 'given');
    Object.assign(inspector, { store: db, open: true });
  });
  await page.locator('#opened', { hasText: 'Opened by the page' }).waitFor();
  await page.evaluate(() => Object.assign(document.querySelector('varve-inspector') as object, { store: undefined }));
  await page.locator('#opened', { hasText: 'Opened in' }).waitFor();
  expect(await page.evaluate(() => (globalThis as unknown as { db: Db }).db.get('a'))).toBe(1);
  expect(errors).toEqual([]);
});

// Story: the page opened its store while the panel listed the stores of the origin. The panel then showed the first of these.
test('a store that the page gives while the panel opens is shown', async () => {
  const { page, errors } = await profile.openPage('/blank.html');
  await openStore(page, 'another', 'structured');
  await openStore(page, 'given', 'structured');
  await addInspector(page);
  await page.evaluate(() => document.querySelector('varve-inspector')?.toggleAttribute('open'));
  await ready(page);
  await page.evaluate(async () => {
    const { db } = globalThis as unknown as { db: Db };
    const inspector = document.querySelector('varve-inspector') as Element;
    inspector.toggleAttribute('open', false);
    inspector.toggleAttribute('open', true);
    // Now the panel has begun to list the stores, which takes longer.
    for (let turn = 0; turn < 20; turn++) await Promise.resolve();
    Object.assign(inspector, { store: db });
  });
  await page.locator('#opened', { hasText: 'Opened by the page' }).waitFor();
  expect(await page.inputValue('#store')).toBe('given');
  expect(errors).toEqual([]);
});

// Stories: the arrow keys went over a store to the next one. It was shown, but the choice named the one between. And a leader that
// did not answer refused the close of a store: the next one was never opened.
test('the last of several choices is shown and named, also if a store cannot be closed', async () => {
  const { page, errors } = await profile.openPage('/blank.html');
  await openStore(page, 'another', 'structured');
  await openStore(page, 'given', 'structured');
  await addInspector(page);
  const choose = (...names: string[]): Promise<void> =>
    page.locator('#store').evaluate((select: HTMLSelectElement, chosen: string[]) => {
      for (const name of chosen) {
        select.value = name;
        select.dispatchEvent(new Event('change'));
      }
    }, names);
  await page.evaluate(() => {
    const inspector = document.querySelector('varve-inspector') as Element;
    inspector.setAttribute('name', 'notes');
    inspector.toggleAttribute('open', true);
  });
  await ready(page);
  await choose('given', 'another');
  await ready(page);
  expect(await page.inputValue('#store')).toBe('another');

  await page.evaluate(() => {
    const store = Object.getPrototypeOf((globalThis as unknown as { db: Db }).db) as Pick<Db, 'close'>;
    const { close } = store;
    store.close = async function (this: Db) {
      store.close = close;
      await close.call(this);
      throw new Error('The leader does not answer.');
    };
  });
  await choose('given');
  await ready(page);
  expect(await page.inputValue('#store')).toBe('given');
  expect(await page.isHidden('#alert')).toBe(true);
  expect(errors).toEqual([]);
});

// Story: the panel was closed while it deleted a store. When that was done, it opened the next one, and kept it open unseen.
test('a panel that is closed while it deletes a store opens no other', async () => {
  const { page, errors } = await profile.openPage('/blank.html');
  await addInspector(page);
  await page.evaluate(() => {
    const inspector = document.querySelector('varve-inspector') as Element;
    inspector.setAttribute('name', 'doomed');
    inspector.toggleAttribute('open', true);
  });
  await ready(page);
  await page.click('#delete-store');
  await page.locator('#panel').evaluate(async (panel: HTMLElement) => {
    const [yes, dialog] = ['#drop-store-yes', '#drop-store-dialog'].map((id) => panel.querySelector(id) as HTMLElement);
    const closed = new Promise((resolve) => dialog?.addEventListener('close', resolve));
    yes?.click();
    await closed;
    document.querySelector('varve-inspector')?.toggleAttribute('open', false);
  });
  const stores = (): Promise<unknown> =>
    page.evaluate(`import('/varve/index.js').then(({ listStores }) => listStores())`);
  await expect.poll(stores, { timeout: 60_000 }).not.toContain('doomed');
  await page.waitForTimeout(1000);
  expect(await page.textContent('#opened')).toBe('');
  expect(errors).toEqual([]);
});

// Story: two quick clicks, and the answer to the first one came last. The editor then showed, and saved, another entry than the list.
test('the editor shows the entry that was chosen last', async () => {
  const { page, errors } = await profile.openPage('/blank.html');
  await openStore(page, 'chosen', 'structured');
  await addInspector(page);
  await page.evaluate(async () => {
    const { db } = globalThis as unknown as { db: Db };
    await db.setMany([
      ['a', 'first'],
      ['b', 'second'],
    ]);
    const { getEntry } = db;
    db.getEntry = async (key) => {
      const entry = await getEntry.call(db, key);
      if (key === 'a') await new Promise((resolve) => Object.assign(globalThis, { release: resolve }));
      return entry;
    };
    const inspector = document.querySelector('varve-inspector') as Element;
    inspector.setAttribute('name', 'chosen');
    Object.assign(inspector, { store: db, open: true });
  });
  await ready(page);
  const entry = (text: string) => page.locator('#keys-list button', { hasText: text });
  await entry('"a"').click();
  await entry('"b"').click();
  await expect.poll(() => page.inputValue('#editor-value')).toBe('"second"');
  await page.evaluate(async () => {
    (globalThis as unknown as { release(): void }).release();
    for (let turn = 0; turn < 20; turn++) await Promise.resolve();
  });
  expect(await page.inputValue('#editor-value')).toBe('"second"');
  expect(errors).toEqual([]);
});

test('it asks for the passphrase of an encrypted store until one opens it, and forgets it', async () => {
  const { page, errors } = await profile.openPage('/blank.html');
  await page.evaluate(
    `import('/varve/index.js').then(async ({ deriveKey, open }) => {
      await using db = await open('secret', { encryption: { key: await deriveKey('correct horse') } });
      await db.set('a', 'hidden');
    })`,
  );
  await addInspector(page);
  await page.evaluate(() => document.querySelector('varve-inspector')?.setAttribute('name', 'secret'));
  const show = (open: boolean): Promise<unknown> =>
    page.evaluate((given) => Object.assign(document.querySelector('varve-inspector') as object, { open: given }), open);
  for (let time = 0; time < 2; time++) {
    await show(true);
    for (const passphrase of ['wrong', 'correct horse']) {
      await page.waitForSelector('#unlock:not([hidden])');
      expect(await page.textContent('#alert')).toContain('VARVE_KEY');
      expect(await page.inputValue('#passphrase')).toBe('');
      await page.keyboard.type(passphrase);
      await page.keyboard.press('Enter');
    }
    await ready(page);
    await page.locator('#keys-list', { hasText: 'hidden' }).waitFor();
    expect(await page.isHidden('#unlock')).toBe(true);
    // Another codec opens the store again, with the same passphrase.
    await page.selectOption('#codec', 'json');
    await page.locator('#keys-list', { hasText: 'VARVE_' }).or(page.locator('#alert:not([hidden])')).first().waitFor();
    expect(await page.isHidden('#unlock')).toBe(true);
    await page.selectOption('#codec', 'structured');
    await page.locator('#keys-list', { hasText: 'hidden' }).waitFor();
    await show(false);
  }
  expect(errors).toEqual([]);
});

test('it makes a store, and deletes one if the developer agrees, also where another tab has it open', async () => {
  const { page, errors } = await profile.openPage('/blank.html');
  await addInspector(page);
  await page.evaluate(() => document.querySelector('varve-inspector')?.toggleAttribute('open'));
  await ready(page);
  const stores = (): Promise<string[]> => page.locator('#store option').allTextContents();
  const before = await stores();
  await page.click('#new-store');
  await page.keyboard.type('made');
  await page.keyboard.press('Enter');
  await page.locator('#sharing', { hasText: 'has it to itself' }).waitFor();
  await expect.poll(stores, { timeout: 60_000 }).toEqual([...before, 'made'].sort());
  expect(await page.inputValue('#store')).toBe('made');
  await page.click('#delete-store');
  expect(await page.textContent('#drop-store-title')).toBe('Delete the store made?');
  await page.keyboard.press('Escape');
  expect(await page.isHidden('#drop-store-dialog')).toBe(true);
  for (const name of ['made', 'notes']) {
    await page.selectOption('#store', name);
    await page.click('#delete-store');
    await page.locator('#drop-store-title', { hasText: name }).waitFor();
    await page.click('#drop-store-yes');
    await expect.poll(stores, { timeout: 60_000 }).not.toContain(name);
  }
  expect(await stores()).toEqual(before.filter((name) => name !== 'notes'));
  const get = app.page.evaluate(() => (globalThis as unknown as { db: Db }).db.get('zebra'));
  await expect(get).rejects.toThrow('The store is closed');
  expect(errors).toEqual([]);
});
