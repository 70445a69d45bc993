// Exports of the built package. Chromium writes a store to OPFS. It goes through files of Node, Deno and Bun and back to Chromium.
// All reads give the same answers everywhere.

import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { digest } from '../support/digest.ts';
import { bundleProgram, RUNTIMES, run } from '../support/runtimes.ts';
import { newProfile, type Profile } from './support/profile.ts';

let profile: Profile;
let program: string;
const directory = mkdtempSync(join(tmpdir(), 'varve-export-'));

beforeAll(async () => {
  profile = await newProfile();
  program = await bundleProgram('import.ts');
});

afterAll(async () => {
  await profile.close();
  rmSync(directory, { recursive: true, force: true });
});

test('a store goes from Chromium to every server runtime and back, and is read the same', async () => {
  const { page, errors } = await profile.openPage();
  await page.evaluate(`globalThis.digest = ${digest}`);
  const written = await page.evaluate(async () => {
    const db = await varve.open('from', { version: 5 });
    await db.setMany(everyType());
    for (let i = 0; i < 3000; i++) {
      const value = i % 3 === 0 ? new Uint8Array(i) : { n: i, at: new Date(i), text: 'x'.repeat(i % 100) };
      await db.set(['n', i], value, { expiresIn: i % 5 === 0 ? 3_600_000 + i : undefined });
      if (i === 1500) await db.compact();
    }
    const bytes = new Uint8Array(
      await new Response(db.export() as ReadableStream<Uint8Array<ArrayBuffer>>).arrayBuffer(),
    );
    const hash = await (globalThis as unknown as { digest: (of: typeof db) => Promise<string> }).digest(db);
    const kind = db.storage.kind;
    await db.close();
    let binary = '';
    for (const byte of bytes) binary += String.fromCharCode(byte);
    return { kind, hash, base64: btoa(binary) };
  });
  expect(written.kind).toBe('opfs');
  const first = join(directory, 'chromium.varve');
  writeFileSync(first, Buffer.from(written.base64, 'base64'));

  // Each runtime imports the export of the one before into files, opens the store again, and exports it.
  let file = first;
  for (const runtime of RUNTIMES) {
    const into = join(directory, `${runtime.name}.varve`);
    const seen = await run(runtime, program, directory, { name: runtime.name, file, into });
    expect([runtime.name, seen]).toEqual([
      runtime.name,
      { bytes: statSync(first).size, hash: written.hash, kind: 'files' },
    ]);
    file = into;
  }

  const back = await page.evaluate(async (base64) => {
    const bytes = Uint8Array.from(atob(base64), (char) => char.charCodeAt(0));
    const db = await varve.open('back');
    const file = new Blob([bytes]);
    const cut = db.import(file.slice(0, bytes.length / 2).stream()).catch((error: { code: string }) => error.code);
    const code = await cut;
    await db.close();
    const reopened = await varve.open('back');
    const { resumedAt } = await reopened.import(file);
    const hash = await (globalThis as unknown as { digest: (of: typeof db) => Promise<string> }).digest(reopened);
    await reopened.close();
    const upgraded = await varve.open('back', { version: 5, upgrade: () => Promise.reject(new Error('upgraded')) });
    await upgraded.close();
    return { code, resumedAt, hash };
  }, readFileSync(file).toString('base64'));
  expect(back.code).toBe('VARVE_CORRUPT');
  expect(back.resumedAt).toBeGreaterThan(72);
  expect(back.hash).toBe(written.hash);
  expect(errors).toEqual([]);
});
