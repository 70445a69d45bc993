// Deno accepts the package by a plain `npm:` import and checks programs against its types. It needs exactly the permissions that the
// guide states. Without one of them, the error is a VarveError that names it.

import { spawnSync } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { hostname, tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { root } from '../../scripts/tools.mjs';
import { RUNTIMES } from '../support/runtimes.ts';

const FILES = `
import { open, listStores, VarveError } from 'npm:varve@^0.1.0';
import { files } from 'npm:varve@^0.1.0/fs';

const storage = files('./data');
try {
  const db = await open<string, { title: string }>('notes', { storage });
  await db.set('a', { title: 'Silt' }, { durability: 'strict' });
  const note = await db.get('a');
  console.log(db.storage.kind, note?.title, await listStores({ storage }));
  await db.close();
} catch (error) {
  if (!(error instanceof VarveError)) throw error;
  console.log(error.code, error.message);
}
`;

/** Two more permissions show it two things: the free space on the disk, and the machine's name, which is in the name of the claim. */
const SYS = `
import { files } from 'npm:varve@^0.1.0/fs';

const device = await files('./data').open('sys', { lockTimeout: 0 });
const claims = [...Deno.readDirSync('./data/sys')].map(({ name }) => name).filter((name) => name.startsWith('lock.'));
console.log(JSON.stringify({ free: typeof (await device.freeBytes?.()), hosts: claims.map((name) => name.split('.').at(-1)) }));
await device.closeAll();
`;

const KV = `
import { open, listStores } from 'npm:varve@^0.1.0';
import { denoKv } from 'npm:varve@^0.1.0/deno-kv';

const kv = await Deno.openKv('./kv.db');
const storage = denoKv(kv);
const db = await open<string, { title: string }>('notes', { storage });
await db.set('a', { title: 'Silt' }, { durability: 'strict' });
const note = await db.get('a');
console.log(db.storage.kind, note?.title, await listStores({ storage }));
await db.close();
kv.close();
`;

let project: string;

beforeAll(() => {
  project = mkdtempSync(join(tmpdir(), 'varve-deno-'));
  const installed = join(project, 'node_modules', 'varve');
  mkdirSync(installed, { recursive: true });
  mkdirSync(join(project, 'data'));
  cpSync(join(root, 'package.json'), join(installed, 'package.json'));
  cpSync(join(root, 'dist'), join(installed, 'dist'), { recursive: true });
  writeFileSync(join(project, 'package.json'), '{ "dependencies": { "varve": "^0.1.0" } }');
  for (const [name, program] of Object.entries({ files: FILES, sys: SYS, kv: KV })) {
    writeFileSync(join(project, `${name}.ts`), program);
  }
});

afterAll(() => rmSync(project, { recursive: true, force: true }));

/** Runs Deno in the project. */
function deno(...given: string[]): { status: number | null; stdout: string; stderr: string } {
  const options = { cwd: project, encoding: 'utf8', env: { ...process.env, NO_COLOR: '1' } } as const;
  return spawnSync(command(), given, options);
}

function command(): string {
  const [runtime] = RUNTIMES.filter(({ name }) => name === 'deno');
  if (runtime === undefined) throw new Error('Deno is not installed: run `npm ci`.');
  return runtime.command;
}

const READ = '--allow-read=./data,./node_modules/varve';
const WRITE = '--allow-write=./data';

test('a plain npm: import runs with permission to read and write the data, and to read the package', () => {
  const { status, stdout, stderr } = deno('run', '--no-prompt', READ, WRITE, 'files.ts');
  expect([status, stderr]).toEqual([0, '']);
  expect(stdout).toBe('files Silt [ "notes" ]\n');
  expect(readdirSync(join(project, 'data'))).toEqual(['notes']);
});

test.each([
  ['any leave', [], '--allow-read'],
  ['leave to write', [READ], '--allow-write'],
  ['leave to read the data', ['--allow-read=./node_modules/varve', WRITE], '--allow-read'],
  ['leave to read the package', ['--allow-read=./data', WRITE], 'varve.wasm", run again with the --allow-read'],
])('without %s the error names the missing permission', (_, given, missing) => {
  const { status, stdout, stderr } = deno('run', '--no-prompt', ...given, 'files.ts');
  expect([status, stderr]).toEqual([0, '']);
  expect(stdout).toMatch(/^VARVE_UNSUPPORTED .*Requires (read|write) access/);
  expect(stdout).toContain(missing);
});

test('permission for hostname and statfs is useful, and neither is needed', () => {
  const seen = (...more: string[]): unknown => {
    const { status, stdout, stderr } = deno('run', '--no-prompt', READ, WRITE, ...more, 'sys.ts');
    expect([status, stderr]).toEqual([0, '']);
    return JSON.parse(stdout);
  };
  expect(seen()).toEqual({ free: 'undefined', hosts: [''] });
  const host = hostname().replace(/[^\w-]/g, '-');
  expect(seen('--allow-sys=hostname,statfs')).toEqual({ free: 'number', hosts: [host] });
});

test('a store in Deno KV needs permission for the file of the database, and to read the package', () => {
  const [database, both] = ['./kv.db', './kv.db,./node_modules/varve'];
  const given = ['run', '--no-prompt', '--unstable-kv', `--allow-read=${both}`, `--allow-write=${database}`, 'kv.ts'];
  const { status, stdout, stderr } = deno(...given);
  expect([status, stderr]).toEqual([0, '']);
  expect(stdout).toBe('deno-kv Silt [ "notes" ]\n');
});

test('the declarations pass its compiler', { timeout: 180_000 }, () => {
  const { status, stderr } = deno('check', '--unstable-kv', 'files.ts', 'sys.ts', 'kv.ts');
  expect([status, stderr.replace(/^Check .*\n/gm, '')]).toEqual([0, '']);
});
