// The pages of the demo beside the cities: all keys, the engine live, and the experiments that break a store.
// Each test has its own site, and so its own origin and stores.

import { readFile } from 'node:fs/promises';
import type { Page } from 'playwright';
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest';
import { violationsOf } from './support/axe.ts';
import { buildDemo, DemoSite } from './support/demo-site.ts';
import { newProfile, type Profile } from './support/profile.ts';

let folder: string;
let profile: Profile;
let site: DemoSite;

beforeAll(async () => {
  folder = await buildDemo('test-demo-pages');
  profile = await newProfile();
});

afterAll(() => profile?.close());

beforeEach(async () => {
  site = await DemoSite.start(profile, folder);
});

afterEach(async () => {
  await site.close();
  expect(site.errors).toEqual([]);
});

async function openPage(path: string): Promise<Page> {
  const page = await site.open(path);
  await page.waitForSelector(':is(body, #panel)[data-state="ready"]');
  return page;
}

/** Waits until an element's text has some words. */
async function untilText(page: Page, selector: string, words: string): Promise<void> {
  await page.locator(selector, { hasText: words }).waitFor({ state: 'attached' });
}

/** Passes the page a file to import. */
async function chooseFile(page: Page, name: string, content: string | Buffer): Promise<void> {
  await page.setInputFiles('#import-file', { name, mimeType: 'text/plain', buffer: Buffer.from(content) });
}

function keysShown(page: Page): Promise<string[]> {
  return page.locator('#keys-list .entry-key').allTextContents();
}

/** Saves the shown entries in a format; returns the file. */
async function save(page: Page, format: string): Promise<Buffer> {
  await page.selectOption('#export-format', format);
  const [download] = await Promise.all([page.waitForEvent('download'), page.click('#export-save')]);
  expect(download.suggestedFilename()).toMatch(new RegExp(`\\.${format}$`));
  return readFile(await download.path());
}

async function chooseStore(page: Page, name: string): Promise<void> {
  await page.selectOption('#store', name);
  await page.waitForSelector('#panel[data-state="ready"]');
}

const RIVERS = 'id,name,km\n10,Rhine,1233\n20,Danube,2850\n30,Broken\n40,Aare,288\n10,Again,1\n';

test('rows of a CSV file become entries; bad rows are listed with their lines, and nothing is written before the visitor asks', async () => {
  const page = await openPage('keys.html');
  await chooseFile(page, 'rivers.csv', RIVERS);
  await page.waitForSelector('section.import[data-state="looked"]');
  expect(await page.locator('#import-bad li').allTextContents()).toEqual([
    'line 4: It has 2 fields, and the first line has 3.',
    'line 6: It has the same key as line 2, ["rivers", 10].',
  ]);
  expect(await page.textContent('#import-write')).toBe('Import 3 rows, leave out 2');
  expect(await keysShown(page)).toEqual([]);
  await page.click('#import-cancel');
  expect(await keysShown(page)).toEqual([]);

  await chooseFile(page, 'rivers.csv', RIVERS);
  await page.waitForSelector('section.import[data-state="looked"]');
  await page.selectOption('#import-column', 'name');
  await page.click('#import-write');
  await untilText(page, '#import-status', '4 rows stored');
  await untilText(page, '#keys-count', '4 in all');
  // With names as keys, no two rows have the same key.
  expect(await keysShown(page)).toEqual([
    '["rivers", "Aare"]',
    '["rivers", "Again"]',
    '["rivers", "Danube"]',
    '["rivers", "Rhine"]',
  ]);
  expect(await violationsOf(page)).toEqual([]);
  await page.reload();
  await untilText(page, '#keys-count', '4 in all');
});

test('a malformed file gets an error, and a prefix that has keys is named', async () => {
  const page = await openPage('keys.html');
  await chooseFile(page, 'broken.json', '[\n {"id": 1},\n {"id" 2}\n]');
  await untilText(page, '#import-error', 'line 3');
  expect(await page.getAttribute('section.import', 'data-state')).toBe('idle');
  // A spreadsheet had saved it in another encoding: the import kept a replacement character in place of each letter with a mark.
  await chooseFile(page, 'latin.csv', Buffer.from('id,name\n1,Z\u00fcrich\n', 'latin1'));
  await untilText(page, '#import-error', 'It is not UTF-8');
  expect(await page.getAttribute('section.import', 'data-state')).toBe('idle');
  await page.click('section.import summary');
  await page.fill('#import-paste', '{"id":1}\n{"id":2}\n');
  await page.click('#import-read');
  await page.waitForSelector('section.import[data-state="looked"]');
  await page.fill('#import-prefix', 'mine');
  await page.click('#import-write');
  await untilText(page, '#keys-count', '2 in all');
  await page.click('#import-read');
  await page.fill('#import-prefix', 'mine');
  await untilText(page, '#import-present', '2 keys have this prefix already.');
});

test('an export is imported again unchanged, in each format', async () => {
  const page = await openPage('keys.html');
  await chooseFile(page, 'rivers.csv', RIVERS);
  await page.click('#import-write');
  await untilText(page, '#keys-count', '3 in all');
  const json = await save(page, 'json');
  const lines = await save(page, 'jsonl');
  const own = await save(page, 'varve');
  const csv = await save(page, 'csv');
  expect(csv.toString().split(/\r?\n/).slice(0, 2)).toEqual(['(key),id,name,km', '"[""rivers"", 10]",10,Rhine,1233']);

  for (const [name, content] of Object.entries({ 'a.json': json, 'a.jsonl': lines, 'a.varve': own })) {
    await chooseStore(page, 'scratch');
    await untilText(page, '#keys-status', 'No such keys');
    await chooseFile(page, name, content);
    if (name !== 'a.varve') await page.click('#import-write');
    await untilText(page, '#keys-count', '3 in all');
    expect(await keysShown(page)).toEqual(['["rivers", 10]', '["rivers", 20]', '["rivers", 40]']);
    expect((await save(page, 'json')).toString()).toBe(json.toString());
    await page.selectOption('#range-kind', 'all');
    await page.click('#delete-range');
    await page.click('#delete-yes');
    await untilText(page, '#export-status', 'Deleted in');
    await chooseStore(page, 'cities');
    await untilText(page, '#keys-count', '3 in all');
  }
});

// Story: an import of an export ended while the dialog asked about one range. The list showed all keys then, and all were deleted.
test('the range that the dialog asks about is deleted, although an import ends meanwhile', async () => {
  const page = await openPage('keys.html');
  await chooseFile(page, 'rivers.csv', RIVERS);
  await page.click('#import-write');
  await untilText(page, '#keys-count', '3 in all');
  const own = await save(page, 'varve');
  await page.selectOption('#range-kind', 'between');
  await page.fill('#range-from', '["rivers", 30]');
  await page.click('#range-show');
  await untilText(page, '#keys-count', '1 in all');
  await page.click('#delete-range');
  await chooseFile(page, 'a.varve', own);
  await untilText(page, '#import-status', '3 entries imported and verified in');
  await untilText(page, '#keys-count', '3 in all');
  await page.click('#delete-yes');
  await untilText(page, '#keys-count', '2 in all');
  expect(await keysShown(page)).toEqual(['["rivers", 10]', '["rivers", 20]']);
});

test('an import of an export that is cancelled says that what was imported stays', async () => {
  const page = await openPage('keys.html');
  const text = 'silt '.repeat(4000);
  await chooseFile(
    page,
    'long.csv',
    ['id,text', ...Array.from({ length: 200 }, (_, id) => `${id},${text}`)].join('\n'),
  );
  await page.click('#import-write');
  await untilText(page, '#keys-count', '200 in all');
  const own = await save(page, 'varve');
  await chooseStore(page, 'scratch');
  await untilText(page, '#keys-status', 'No such keys');
  await page.locator('#import-status').evaluate((status) => {
    const cancel = (status.getRootNode() as ParentNode).querySelector('#import-cancel');
    const clicked = (): void => void (status.textContent?.includes('verified') && (cancel as HTMLElement).click());
    new MutationObserver(clicked).observe(status, { childList: true, characterData: true, subtree: true });
  });
  await chooseFile(page, 'a.varve', own);
  await untilText(page, '#import-status', 'what was imported before stays');
});

test('entries are added, changed and deleted by their typed keys; an error is shown at its field', async () => {
  const page = await openPage('keys.html');
  for (const key of ['["note", 2]', '["note", 10]', '["note", {"bigint":"7"}]', 'zebra']) {
    await page.click('#editor-new');
    await page.fill('#editor-key', key);
    await page.fill('#editor-value', '{"text": "silt"}');
    await page.click('#editor-save');
    await untilText(page, '#editor-status', 'Saved');
  }
  await untilText(page, '#keys-count', '4 in all');
  expect(await keysShown(page)).toEqual(['"zebra"', '["note", 2]', '["note", 10]', '["note", {"bigint":"7"}]']);
  await page.locator('#keys-list button').nth(2).click();
  // The entry saved last also has the title of a saved entry, so the title does not show which entry is being read.
  await expect.poll(() => page.inputValue('#editor-key')).toBe('["note", 10]');
  await page.fill('#editor-value', '{"text": sand}');
  await page.click('#editor-save');
  expect(await page.textContent('#editor-error')).toContain('The value is not JSON');
  await page.fill('#editor-value', '"sand"');
  await page.click('#editor-save');
  await untilText(page, '#keys-list', '"sand"');

  await page.selectOption('#range-kind', 'between');
  await page.fill('#range-from', '["note", 3]');
  await page.fill('#range-to', '["note", {"bigint":"7"}]');
  await page.click('#range-show');
  await untilText(page, '#keys-count', '2 in all');
  await page.fill('#range-from', '["note"');
  await page.click('#range-show');
  expect(await page.textContent('#range-error')).toContain('not JSON');
  await page.click('#editor-delete');
  await untilText(page, '#editor-status', 'was deleted');
  await page.selectOption('#range-kind', 'all');
  await untilText(page, '#keys-count', '3 in all');
});

test('a change of an entry that another tab changed meanwhile is refused', async () => {
  const [first, second] = [await openPage('keys.html'), await openPage('keys.html')];
  const write = async (page: Page, value: string): Promise<void> => {
    await page.fill('#editor-value', value);
    await page.click('#editor-save');
  };
  await first.fill('#editor-key', 'shared');
  await write(first, '1');
  await untilText(first, '#editor-status', 'Saved');
  await second.reload();
  await second.locator('#keys-list button').click();
  await untilText(second, '#editor-title', 'Entry');
  await write(first, '2');
  await untilText(first, '#keys-list', '2');
  await write(second, '3');
  await untilText(second, '#editor-error', 'Another tab or page changed this entry meanwhile');
  await second.locator('#keys-list button').click();
  await expect.poll(() => second.inputValue('#editor-value')).toBe('2');
});

test('the picture shows written entries in memtable, log and levels, and also in words', async () => {
  const page = await openPage('live.html');
  await page.fill('#live-writes', '10');
  await page.click('#live-run');
  const tables = (level: number): string => `#live-picture [data-level="${level}"]:not([data-tables="0"])`;
  await page.waitForSelector(tables(0));
  await untilText(page, '#live-story', 'Flush:');
  await page.waitForSelector(tables(6));
  await untilText(page, '#live-story', 'merged into level 6');
  await page.click('#live-run');
  await untilText(page, '#live-status', 'Paused after');
  await page.click('#live-compact');
  await untilText(page, '#live-status', 'Merged in');
  await page.waitForSelector('#live-picture [data-level="0"][data-tables="0"]');
  const drawn = Number(await page.getAttribute('#live-picture [data-level="6"]', 'data-tables'));
  expect(await page.locator('#live-picture [data-level="6"] .table').count()).toBe(drawn);
  await untilText(page, '#live-summary', `level 6: ${drawn} table`);
  // Reads ask for the keys that were never written, and the filters recognize nearly all of them.
  expect(await page.textContent('#live-filters')).toMatch(/; [1-9][\d,]* avoided in all$/);

  expect(await violationsOf(page)).toEqual([]);
  await page.click('#tab-changes');
  await page.click('#live-half');
  await untilText(page, '#changes-list', 'delete range');
  expect(await violationsOf(page)).toEqual([]);
  await page.click('#tab-engine');

  // A paused picture does not move on.
  await page.click('#live-hold');
  const held = await page.textContent('#live-summary');
  await page.click('#live-empty');
  await untilText(page, '#live-status', 'The store is empty');
  expect(await page.textContent('#live-summary')).toBe(held);
  await page.click('#live-hold');
  await untilText(page, '#live-summary', 'no tables yet');
});

test('nothing moves in the picture for a visitor who wants no motion', async () => {
  const page = await site.open('live.html');
  await page.emulateMedia({ reducedMotion: 'reduce' });
  await page.waitForSelector('#panel[data-state="ready"]');
  await page.locator('#live-picture .motion').evaluate((layer) => {
    new MutationObserver(() => console.error('something moves')).observe(layer, { childList: true });
  });
  await page.fill('#live-writes', '10');
  await page.click('#live-run');
  await page.waitForSelector('#live-picture [data-level="6"]:not([data-tables="0"])');
});

/** Runs an experiment; returns its steps, each as its kind and its words. */
async function run(page: Page, id: string): Promise<string[]> {
  await page.click(`#${id}-run`);
  await page.waitForSelector(`#${id}:is([data-state="done"], [data-state="failed"])`);
  return page
    .locator(`#${id}-timeline li`)
    .evaluateAll((steps) => steps.map((step) => `${step.getAttribute('data-kind')} ${step.textContent}`));
}

/** The steps of one kind. */
function ofKind(steps: readonly string[], kind: string): string {
  return steps.filter((step) => step.startsWith(`${kind} `)).join('\n');
}

test('a worker that is killed is replaced, and every acknowledged write is there', async () => {
  const page = await openPage('break.html');
  for (let round = 0; round < 2; round++) {
    const steps = await run(page, 'kill');
    expect(ofKind(steps, 'wrong')).toBe('');
    expect(ofKind(steps, 'done')).toContain('started another worker');
    expect(ofKind(steps, 'reported')).toMatch(/Recovery found the store "(replayed|torn)"/);
    expect(ofKind(steps, 'verified')).toContain('All 1,200 acknowledged writes are there');
    expect(await page.locator('#kill-strip .kill').count()).toBe(1);
  }
});

test('a flipped byte is reported, the rest is salvaged, and only the reported keys are lost', async () => {
  const page = await openPage('break.html');
  const steps = await run(page, 'flip');
  expect(ofKind(steps, 'wrong')).toBe('');
  expect(ofKind(steps, 'broken')).toContain('was flipped');
  expect(ofKind(steps, 'reported')).toMatch(/VARVE_CORRUPT|check\(\), over/);
  expect(ofKind(steps, 'done')).toContain('repair() wrote what it could read');
  expect(ofKind(steps, 'verified')).toMatch(/entries are there/);
  expect(await violationsOf(page)).toEqual([]);
});

test('a full disk is reported, loses nothing, accepts deletes, and accepts writes when there is room', async () => {
  const page = await openPage('break.html');
  const steps = await run(page, 'full');
  expect(ofKind(steps, 'wrong')).toBe('');
  expect(ofKind(steps, 'reported')).toContain('VARVE_STORAGE_FULL');
  expect(ofKind(steps, 'done')).toContain('20 writes succeeded');
  expect(ofKind(steps, 'verified')).toContain('No refused write is there');
  expect(ofKind(steps, 'verified')).toContain('Nothing was lost');
});

test('a store that is encrypted shows no note in its files any more, and only its passphrase opens it', async () => {
  const page = await openPage('encrypt.html');
  const steps = await run(page, 'encrypt');
  expect(ofKind(steps, 'wrong')).toBe('');
  expect(ofKind(steps, 'reported')).toMatch(/Its files show "A secret of the lake" \d+ times/);
  expect(await page.textContent('#encrypt-before')).toContain('A secret of');
  expect(await page.textContent('#encrypt-after')).not.toContain('A secret of');
  expect(ofKind(steps, 'reported').match(/Opening it/g)).toHaveLength(3);
  expect(ofKind(steps, 'verified')).toContain('200 of 200 notes');
  expect(await violationsOf(page)).toEqual([]);
});
