// Deno takes the package by a plain `npm:` import, type-checks against its declarations, and runs with the permissions that
// the README states.

import { spawnSync } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { root } from '../../scripts/tools.mjs';
import { RUNTIMES } from './support/runtimes.ts';

const PROGRAM = `
import { open, listStores } from 'npm:varve@^0.1.0';
import { files } from 'npm:varve@^0.1.0/fs';

const storage = files('./data');
const db = await open<string, { title: string }>('notes', { storage });
await db.set('a', { title: 'Silt' }, { durability: 'strict' });
const note = await db.get('a');
console.log(db.storage.kind, note?.title, await listStores({ storage }));
await db.close();
`;

let project: string;

beforeAll(() => {
  project = mkdtempSync(join(tmpdir(), 'varve-deno-'));
  const installed = join(project, 'node_modules', 'varve');
  mkdirSync(installed, { recursive: true });
  cpSync(join(root, 'package.json'), join(installed, 'package.json'));
  cpSync(join(root, 'dist'), join(installed, 'dist'), { recursive: true });
  writeFileSync(join(project, 'package.json'), '{ "dependencies": { "varve": "^0.1.0" } }');
  writeFileSync(join(project, 'main.ts'), PROGRAM);
});

afterAll(() => rmSync(project, { recursive: true, force: true }));

/** Runs Deno in the project. */
function deno(...given: string[]): { status: number | null; stdout: string; stderr: string } {
  const [runtime] = RUNTIMES.filter(({ name }) => name === 'deno');
  if (runtime === undefined) throw new Error('Deno is not installed: run `npm ci`.');
  const options = { cwd: project, encoding: 'utf8', env: { ...process.env, NO_COLOR: '1' } } as const;
  return spawnSync(runtime.command, given, options);
}

const ALLOWED = ['--no-prompt', '--allow-read=./data,./node_modules/varve', '--allow-write=./data'];

test('a plain npm: import runs with leave to read and write the data, and to read the package', () => {
  const { status, stdout, stderr } = deno('run', ...ALLOWED, 'main.ts');
  expect([status, stderr]).toEqual([0, '']);
  expect(stdout).toBe('files Silt [ "notes" ]\n');
  expect(readdirSync(join(project, 'data'))).toEqual(['notes']);
});

test('without leave to write it says so', () => {
  const { status, stderr } = deno('run', '--no-prompt', '--allow-read=./data,./node_modules/varve', 'main.ts');
  expect(status).toBe(1);
  expect(stderr).toContain('may not be read and written');
});

test('the declarations hold up to its compiler', () => {
  const { status, stderr } = deno('check', 'main.ts');
  expect([status, stderr.replace(/^Check .*\n/, '')]).toEqual([0, '']);
});
