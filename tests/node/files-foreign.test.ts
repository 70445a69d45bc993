/** A directory of stores that also contains other things: only stores are listed, and only stores are deleted. */

import * as fs from 'node:fs';
import { hostname, tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { files } from '../../js/src/fs.ts';
import { deleteStore, listStores, open } from '../../js/src/index.ts';
import { wasm } from './support/engine.ts';

let directory: string;

beforeEach(() => {
  directory = fs.mkdtempSync(join(tmpdir(), 'varve-foreign-'));
});

afterEach(() => fs.rmSync(directory, { recursive: true, force: true }));

const storage = () => files(directory);
const at = (...path: string[]): string => join(directory, ...path);

async function make(name: string): Promise<void> {
  const db = await open(name, { storage: storage(), wasm });
  await db.set('a', 1);
  await db.close();
}

/** A folder and a file with names that stores could have, and links. */
function addForeign(): void {
  fs.mkdirSync(at('src', 'slot-0001'), { recursive: true });
  fs.writeFileSync(at('src', 'slot-1'), 'no slot');
  fs.mkdirSync(at('empty'));
  fs.writeFileSync(at('Makefile'), 'no folder');
  fs.symlinkSync(at('nowhere'), at('broken'));
  fs.symlinkSync(at('loop'), at('loop'));
}

describe('a folder or file that is no store', () => {
  test('is not listed', async () => {
    addForeign();
    expect(await listStores({ storage: storage() })).toEqual([]);
    await make('notes');
    expect(await listStores({ storage: storage() })).toEqual(['notes']);
  });

  test('is not deleted, not even touched', async () => {
    addForeign();
    const before = fs.readdirSync(directory, { recursive: true }).sort();
    for (const name of ['src', 'empty', 'Makefile', 'broken', 'loop', 'nowhere']) {
      expect(await deleteStore(name, { storage: storage() })).toBe(false);
    }
    expect(fs.readdirSync(directory, { recursive: true }).sort()).toEqual(before);
  });
});

describe('a store with something else in its folder', () => {
  test.each(['.DS_Store', 'slot-0002.bak', 'lock'])(
    '(%s) is deleted; the folder stays, and the error gives the reason',
    async (name) => {
      await make('notes');
      fs.writeFileSync(at('notes', name), 'of somebody else');
      await expect(deleteStore('notes', { storage: storage() })).rejects.toMatchObject({
        code: 'VARVE_IO',
        message: expect.stringContaining(
          `The store "notes" is deleted, but its folder ${at('notes')} stays: ${name} in it`,
        ),
      });
      expect(fs.readdirSync(at('notes'))).toEqual([name]);
      expect(fs.readFileSync(at('notes', name), 'utf8')).toBe('of somebody else');
      expect(await listStores({ storage: storage() })).toEqual([]);
      expect(await deleteStore('notes', { storage: storage() })).toBe(false);
    },
  );

  test('opens, keeps it, and is a new store after it was deleted', async () => {
    await make('notes');
    fs.writeFileSync(at('notes', '.DS_Store'), '');
    await expect(deleteStore('notes', { storage: storage() })).rejects.toMatchObject({ code: 'VARVE_IO' });
    const db = await open('notes', { storage: storage(), wasm });
    expect([db.recovery.state, await db.has('a')]).toEqual(['new', false]);
    await db.close();
    expect(fs.existsSync(at('notes', '.DS_Store'))).toBe(true);
  });
});

test('a store behind a symbolic link is listed and opened, and refused to be deleted before anything of it is gone', async () => {
  await make('notes');
  const elsewhere = at('elsewhere.d');
  fs.renameSync(at('notes'), elsewhere);
  fs.symlinkSync(elsewhere, at('notes'));
  expect(await listStores({ storage: storage() })).toEqual(['notes']);
  await expect(deleteStore('notes', { storage: storage() })).rejects.toMatchObject({
    code: 'VARVE_UNSUPPORTED',
    message: expect.stringContaining(`${at('notes')} is a symbolic link`),
  });
  const db = await open('notes', { storage: storage(), wasm });
  expect(await db.get('a')).toBe(1);
  await db.close();
});

test('a folder with only a claim, as a killed deletion leaves it, is listed and deleted', async () => {
  fs.mkdirSync(at('notes'));
  // Of an earlier process that had the pid of this one.
  fs.writeFileSync(at('notes', `lock.${process.pid}.1.0.0.0.0123456789abcdef.${hostname()}`), '');
  expect(await listStores({ storage: storage() })).toEqual(['notes']);
  expect(await deleteStore('notes', { storage: storage() })).toBe(true);
  expect(fs.readdirSync(directory)).toEqual([]);
});
