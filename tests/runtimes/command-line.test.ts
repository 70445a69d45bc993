// The command `varve` of the built package, run as a process, as its users run it.

import { type ChildProcess, spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { serve } from 'srvx';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { root } from '../../scripts/tools.mjs';

const DIST = join(root, 'dist');
const built = (file: string): string => pathToFileURL(join(DIST, file)).href;
const { deriveKey, open }: typeof import('varve') = await import(/* @vite-ignore */ built('index.js'));
const { files }: typeof import('varve/fs') = await import(/* @vite-ignore */ built('fs.js'));
const { bearer, createHandler }: typeof import('varve/http') = await import(/* @vite-ignore */ built('http.js'));

interface Result {
  readonly exit: number | null;
  readonly out: string;
  readonly err: string;
}

let folder: string;
let running: ChildProcess | undefined;

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'varve-command-'));
});
afterEach(() => running?.kill('SIGKILL'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** Starts the command in the folder; resolves with what it has printed when it has ended. */
function start(args: readonly string[]): ChildProcess & { result: Promise<Result> } {
  const child = spawn(process.execPath, [join(DIST, 'cli.js'), ...args], { cwd: folder, env: { ...process.env } });
  running = child;
  let [out, err] = ['', ''];
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    out += text;
  });
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    err += text;
  });
  const result = new Promise<Result>((resolve) => child.on('close', (exit) => resolve({ exit, out, err })));
  return Object.assign(child, { result });
}

function varve(...args: string[]): Promise<Result> {
  return withInput('', ...args);
}

function withInput(input: string | Uint8Array, ...args: string[]): Promise<Result> {
  const child = start(args);
  child.stdin?.end(input);
  return child.result;
}

const file = (name: string, text: string | Uint8Array): string => {
  writeFileSync(join(folder, name), text);
  return name;
};
/** A text that no compression removes. */
const markOf = (i: number): string => createHash('sha256').update(String(i)).digest('base64url').slice(0, 20);
const lines = (count: number): string =>
  Array.from({ length: count }, (_, i) => `${JSON.stringify({ key: ['n', i], value: { i, mark: markOf(i) } })}\n`).join(
    '',
  );

/** Changes a bit of every place where the files of a store have a text. */
function flip(store: string, text: string): void {
  for (const name of readdirSync(store)) {
    const path = join(store, name);
    const bytes = readFileSync(path);
    for (let at = bytes.indexOf(text); at >= 0; at = bytes.indexOf(text)) bytes[at]! ^= 1;
    writeFileSync(path, bytes);
  }
}

describe('entries', () => {
  test('a value is set, read, scanned and deleted', async () => {
    expect(await varve('set', 'data/notes', '["note",42]', '{"title":"Silt"}')).toEqual({
      exit: 0,
      out: '["note",42] is set.\n',
      err: 'Made a new store at data/notes.\n',
    });
    expect((await varve('set', 'data/notes', 'word', '007')).err).toBe('');
    expect(JSON.parse((await withInput('{"n":1}\n', 'set', 'data/notes', '12', '-', '--json')).out)).toEqual({
      sequence: 3,
      durability: 'strict',
    });
    await varve(
      'set',
      'data/notes',
      '{"date":"2026-01-31T12:00:00.000Z"}',
      '--file',
      file('bytes', new Uint8Array([0, 255])),
    );

    expect((await varve('get', 'data/notes', '["note", 42]')).out).toBe('{\n  "title": "Silt"\n}\n');
    expect((await varve('get', 'data/notes', 'word', '--raw')).out).toBe('007');
    expect(JSON.parse((await varve('get', 'data/notes', '12', '--json')).out)).toEqual({
      key: 12,
      value: { n: 1 },
      sequence: 3,
    });
    expect(await varve('get', 'data/notes', 'none')).toEqual({
      exit: 1,
      out: '',
      err: 'varve: There is no key "none".\n',
    });

    expect((await varve('scan', 'data/notes')).out.split('\n')).toEqual([
      '"word"  "007"',
      '12  {"n":1}',
      '{"date":"2026-01-31T12:00:00.000Z"}  Uint8Array(2) [ 0, 255 ]',
      '["note",42]  {"title":"Silt"}',
      '',
    ]);
    const scanned = await varve('scan', 'data/notes', '--reverse', '--limit', '2', '--json');
    expect(
      scanned.out
        .trim()
        .split('\n')
        .map((line) => JSON.parse(line)),
    ).toEqual([
      { key: ['note', 42], value: { title: 'Silt' } },
      { key: { date: '2026-01-31T12:00:00.000Z' }, bytes: 'AP8=' },
    ]);
    expect((await varve('scan', 'data/notes', '--prefix', '["note"]', '--keys-only')).out).toBe('["note",42]\n');

    expect((await varve('delete', 'data/notes', 'word', 'none')).out).toBe('1 key is deleted. 1 key was not there.\n');
    expect((await varve('delete', 'data/notes', '--prefix', '["note"]', '--json')).exit).toBe(0);
    expect((await varve('scan', 'data/notes', '--count', '--json')).out).toBe('{"count":2}\n');
  });

  test('ls and stats show what there is', async () => {
    await varve('set', 'shelf/a b', 'k', '1');
    expect((await varve('ls', 'shelf')).out).toMatch(/^shelf\/a%20b {2}\d+ kB\n$/);
    expect(JSON.parse((await varve('ls', 'shelf', '--json')).out)).toEqual([
      { name: 'a b', path: 'shelf/a%20b', bytes: expect.any(Number) },
    ]);
    expect((await varve('stats', 'shelf/a%20b')).out).toMatch(/^entries +1\non disk +\d+ kB\n/);
    expect(JSON.parse((await varve('stats', 'shelf/a b', '--json')).out)).toMatchObject({
      name: 'a b',
      entries: 1,
      recovery: { state: 'clean' },
    });
  });
});

describe('mistakes', () => {
  beforeAll(() => varve('set', 'data/mistakes', 'a', '1'));

  test.each([
    [2, 'There is no command gte. The commands are ls, get,', ['gte']],
    [2, "Unknown option '--prefx'. `varve scan --help`", ['scan', 'data/notes', '--prefx', 'a']],
    [2, 'KEY is missing. Usage: varve get STORE KEY', ['get', 'data/notes']],
    [2, 'b is one argument too many', ['get', 'data/notes', 'a', 'b']],
    [2, '[1, is not JSON', ['get', 'data/notes', '[1,']],
    [2, 'A key cannot be null', ['get', 'data/notes', '[null]']],
    [2, '--limit is an integer from 0, not all.', ['scan', 'data/notes', '--limit', 'all']],
    [2, 'Name keys to delete, or a range', ['delete', 'data/notes']],
    [2, '--into is the name of the new store', ['repair', 'data/mistakes', '--into', 'data/b']],
    [2, 'data is a folder: name a file in it.', ['export', 'data/mistakes', 'data']],
    [2, 'needs the folder of a store', ['check', 'http://localhost:1']],
    [3, 'There is no store at data/none.', ['get', 'data/none', 'a']],
    [3, 'There is no store at data. It is a folder of stores: name one of them, such as data/', ['scan', 'data']],
    [3, 'There is no folder none.', ['ls', 'none']],
    [3, 'There is no file none.csv.', ['import', 'data/none', 'none.csv']],
    [6, 'http://127.0.0.1:9 cannot be reached', ['get', 'http://127.0.0.1:9', 'a']],
  ])('exit code %i: %s', async (exit, message, args) => {
    const result = await varve(...args);
    expect(result).toMatchObject({ exit, out: '', err: expect.stringContaining(message) });
    expect(readdirSync(join(folder, 'data'))).not.toContain('none');
  });

  test('with --json an error is JSON, with its code', async () => {
    const { exit, err } = await varve('get', 'data/none', '{"date":"yesterday"}', '--json');
    expect(exit).toBe(2);
    expect(JSON.parse(err)).toEqual({ error: { code: 'VARVE_INVALID_KEY', message: expect.any(String), exit: 2 } });
    const none = JSON.parse((await varve('check', 'data/none', '--json')).err);
    expect(none.error).toMatchObject({ code: 'VARVE_NOT_FOUND', exit: 3 });
    const taken = JSON.parse((await varve('repair', 'data/mistakes', '--into', 'mistakes', '--json')).err);
    expect(taken.error).toMatchObject({ code: 'VARVE_EXISTS', exit: 2 });
  });

  test('a locked store names its holder', async () => {
    const db = await open('held', { storage: files(join(folder, 'data')) });
    const result = await varve('get', 'data/held', 'a', '--lock-timeout', '0');
    await db.close();
    expect(result.exit).toBe(4);
    expect(result.err).toContain(`varve: Process ${process.pid} has the store "held" open.`);
  });
});

describe('care', () => {
  test('a sound store is checked and compacted; damage is found, and the rest is saved', async () => {
    await varve('import', 'care/notes', file('care.jsonl', lines(3000)));
    // The size that was reported had room in it that closing gives back.
    const compacted = JSON.parse((await varve('compact', 'care/notes', '--json')).out) as { after: number };
    const files = readdirSync(join(folder, 'care/notes')).map(
      (name) => statSync(join(folder, 'care/notes', name)).size,
    );
    expect(compacted.after).toBe(files.reduce((sum, bytes) => sum + bytes, 0));
    expect((await varve('compact', 'care/notes')).out).toMatch(/ before, .* now\.\n$/);
    expect((await varve('check', 'care/notes')).out).toMatch(/^Sound: 1 table \(3,000 entries\), /);
    flip(join(folder, 'care/notes'), markOf(1500));

    const checked = await varve('check', 'care/notes', '--json');
    expect(checked.exit).toBe(5);
    expect(JSON.parse(checked.out)).toMatchObject({ ok: false, problems: [{ kind: 'block' }] });
    // The exit code was 0 where nobody read the list of the damage.
    const unread = start(['check', 'care/notes']);
    unread.stdout?.destroy();
    expect((await unread.result).exit).toBe(5);
    const repaired = await varve('repair', 'care/notes', '--into', 'saved');
    expect(repaired.exit).toBe(5);
    expect(repaired.out).toMatch(
      /^table \d+, byte \d+ .*; entries can be missing\n2,[\d,]+ entries are in the new store care\/saved\.\n/,
    );
    const saved = JSON.parse((await varve('scan', 'care/saved', '--count', '--json')).out) as { count: number };
    expect(saved.count).toBeGreaterThan(1000);
    expect(saved.count).toBeLessThan(3000);
    expect((await varve('repair', 'care/notes', '--into', 'saved')).err).toContain(
      'There is a store at care/saved already.',
    );
  });
});

describe('files', () => {
  test('an export is imported again, and nothing is lost', async () => {
    await varve('import', 'files/notes', file('notes.jsonl', lines(2500)));
    await varve('set', 'files/notes', '["when"]', '--file', file('bytes', new Uint8Array([1, 2, 3])));
    expect((await varve('export', 'files/notes', 'notes.varve')).out).toMatch(
      /^2,501 entries, .* in notes\.varve\.\n$/,
    );
    expect((await varve('export', 'files/notes', 'notes.varve')).err).toContain('--force replaces it');
    expect((await varve('import', 'files/copy', 'notes.varve')).out).toBe('2,501 entries imported.\n');
    const one = await varve('export', 'files/notes', '--format', 'jsonl');
    expect(one.err).toMatch(/^2,501 entries, /);
    expect((await varve('scan', 'files/copy', '--json')).out).toBe(one.out);
    expect((await varve('import', 'files/copy', 'notes.varve')).err).toContain('--merge imports into it');
    expect(readdirSync(folder).filter((name) => name.endsWith('.part'))).toEqual([]);
  });

  test('CSV has keys in a column, or in the column that --key-field names', async () => {
    const rows = 'id,name,note\r\n7,Ann,"two\nlines, é"\r\n008,Bob,\r\n';
    await varve('import', 'files/people', file('people.csv', rows), '--key-field', 'id', '--prefix', '["person"]');
    const exported = await varve('export', 'files/people', '--format', 'csv');
    expect(exported.out).toBe(
      '(key),id,name,note\r\n"[""person"",""008""]",008,Bob,\r\n"[""person"",7]",7,Ann,"two\nlines, é"\r\n',
    );
    await varve('import', 'files/again', file('again.csv', exported.out));
    expect((await varve('scan', 'files/again')).out).toBe((await varve('scan', 'files/people')).out);
  });

  test('a file with a broken line imports nothing, and each broken line is named', async () => {
    const text = `${lines(2000)}{"key":["n",1]\n\n{"key":[null],"value":1}\n{"id":1}\n`;
    const { exit, out, err } = await varve('import', 'files/broken', file('broken.jsonl', text));
    expect({ exit, out }).toEqual({ exit: 2, out: '' });
    expect(err.split('\n')).toEqual([
      'varve: Nothing was imported: 3 lines of broken.jsonl cannot be read.',
      '  line 2001: It is not JSON.',
      expect.stringContaining('  line 2003: A key cannot be null.'),
      '  line 2004: It has no key. Name the field that is the key with --key-field.',
      '',
    ]);
    const csv = await varve('import', 'files/broken', file('broken.csv', '(key),a\n1,"x\ny"\n2\n3,z,z\n4,"z\n'));
    expect(csv.err).toMatch(
      /line 4: It has 1 fields.*\n {2}line 5: It has 3 fields.*\n {2}line 6: Quoted field unterminated/,
    );
    expect(readdirSync(join(folder, 'files'))).not.toContain('broken');
  });

  test('a broken line of standard input ends the import, which reports what it has imported', async () => {
    const result = await withInput(`${lines(1500)}{"key":\n`, 'import', 'files/piped', '-', '--format', 'jsonl');
    expect(result.exit).toBe(2);
    expect(result.err).toContain(
      'line 1501: It is not JSON. 1,000 entries were imported, up to line 1000; the rest was not.',
    );
    expect((await varve('scan', 'files/piped', '--count')).out).toBe('1000\n');
  });

  test('Ctrl-C ends an import cleanly, and reports what it has imported', async () => {
    const child = start(['import', 'files/cancelled', '-', '--format', 'jsonl']);
    // Then all of it is in the pipe, which is short, or with the command, which reads no more than it can write.
    await new Promise((resolve) => child.stdin?.write(lines(30_000), resolve));
    child.kill('SIGINT');
    const { exit, err } = await child.result;
    expect(exit).toBe(130);
    const [, text = ''] = /Cancelled\. ([\d,]+) entries were imported, up to line/.exec(err) ?? [];
    const imported = Number(text.replace(',', ''));
    expect(imported).toBeGreaterThan(1000);
    const { entries, recovery } = JSON.parse((await varve('stats', 'files/cancelled', '--json')).out);
    expect([entries, recovery.state]).toEqual([imported, 'clean']);
  });

  test('an import of an export that was cancelled goes on where it was', async () => {
    await varve('import', 'files/long', file('long.jsonl', lines(30_000)));
    await varve('export', 'files/long', 'long.varve');
    const bytes = readFileSync(join(folder, 'long.varve'));
    const child = start(['import', 'files/resumed', '-']);
    await new Promise((resolve) => child.stdin?.write(bytes.subarray(0, -1000), resolve));
    child.kill('SIGINT');
    const { exit, err } = await child.result;
    expect(exit).toBe(130);
    expect(err).toMatch(/entries are in the store\. Import the same export again/);
    const report = JSON.parse((await varve('import', 'files/resumed', 'long.varve', '--json')).out);
    expect(report.entries).toBe(30_000);
    expect(report.resumedAt).toBeGreaterThan(1000);
  });

  test('a damaged export is refused, with the place of the damage', async () => {
    await varve('import', 'files/small', file('small.jsonl', lines(10)));
    await varve('export', 'files/small', 'small.varve');
    const bytes = readFileSync(join(folder, 'small.varve'));
    bytes[bytes.length >> 1]! ^= 1;
    const { exit, err } = await varve('import', 'files/damaged', file('small.varve', bytes));
    expect(exit).toBe(5);
    expect(err).toMatch(/byte \d+.* Nothing was imported\.\n$/);
  });
});

test('an encrypted store opens with the file of its key, a passphrase or 32 bytes, and with no other', async () => {
  const bytes = new Uint8Array(32).fill(9);
  const db = await open('secret', { storage: files(folder), encryption: { key: await deriveKey('silt') } });
  await db.addEncryptionKey(bytes);
  await db.set('a', 1);
  await db.close();
  for (const name of [file('passphrase', 'silt\n'), file('bytes', bytes)]) {
    expect(await varve('get', 'secret', 'a', '--key-file', name)).toMatchObject({ exit: 0, out: '1\n' });
    expect((await varve('check', 'secret', '--key-file', name)).out).toMatch(
      /^Sound: 0 tables \(0 entries\), 1 log segment /,
    );
  }
  const blind = await varve('check', 'secret');
  expect(blind).toMatchObject({ exit: 0, out: expect.stringContaining('only its checksums were verified') });
  expect(await varve('check', 'secret', '--key-file', file('other', 'sand'))).toMatchObject({ exit: 6, out: '' });
  expect(await varve('repair', 'secret', '--key-file', 'bytes')).toMatchObject({ exit: 0 });
  expect(await varve('get', 'secret-repaired', 'a', '--key-file', 'passphrase')).toMatchObject({ exit: 0, out: '1\n' });
  const refused = async (exit: number, words: string, ...options: string[]): Promise<void> => {
    const result = await varve('get', 'secret', 'a', ...options);
    expect(result).toMatchObject({ exit, out: '' });
    expect(result.err).toContain(words);
  };
  await refused(6, 'Open it with its key: --key-file FILE.');
  await refused(6, 'The key is wrong', '--key-file', file('other', 'sand'));
  await refused(2, 'is empty', '--key-file', file('nothing', '\n'));
  await refused(3, 'cannot be read', '--key-file', 'missing');
});

test('an encrypted export is written and read with the file of its key, and not without', async () => {
  await varve('import', 'files/plain', file('plain.jsonl', lines(100)));
  const key = ['--export-key-file', file('export-key', 'silt\n')];
  expect(await varve('export', 'files/plain', 'sealed.varve', ...key)).toMatchObject({ exit: 0 });
  await varve('export', 'files/plain', 'plain.varve');
  const shows = (name: string): boolean => readFileSync(join(folder, name)).includes('mark');
  expect([shows('plain.varve'), shows('sealed.varve')]).toEqual([true, false]);
  const refused = async (exit: number, words: string, ...args: string[]): Promise<void> => {
    const result = await varve(...args);
    expect(result).toMatchObject({ exit, out: '' });
    expect(result.err).toContain(words);
  };
  const wrongKey = ['--export-key-file', file('wrong-key', 'sand')];
  await refused(6, '--export-key-file FILE. Nothing was imported.', 'import', 'files/open', 'sealed.varve');
  await refused(6, 'The key is wrong', 'import', 'files/open', 'sealed.varve', ...wrongKey);
  await refused(2, 'Only an export', 'import', 'files/open', 'plain.jsonl', ...key);
  await refused(2, 'Only an export', 'export', 'files/plain', 'sealed.csv', ...key);
  await refused(6, 'Import it without --export-key-file.', 'import', 'files/open', 'plain.varve', ...key);
  expect(await varve('import', 'files/open', 'sealed.varve', ...key)).toMatchObject({
    exit: 0,
    out: '100 entries imported.\n',
  });
  const all = (store: string): Promise<{ out: string }> => varve('scan', store, '--json');
  expect((await all('files/open')).out).toBe((await all('files/plain')).out);
});

test('bench measures a temporary store, and removes it', async () => {
  const { out } = await varve('bench', 'bench', '--entries', '300', '--json');
  const { timings, ...plan } = JSON.parse(out);
  expect(plan).toEqual({ entries: 300, valueBytes: 100, durability: 'relaxed' });
  expect(timings.map(({ operation }: { operation: string }) => operation)).toEqual([
    'set',
    'set 100 at once',
    'get',
    'scan 100',
  ]);
  for (const { p50, p95, p99 } of timings) expect(p50 > 0 && p50 <= p95 && p95 <= p99).toBe(true);
  expect((await varve('bench', 'bench', '--entries', '300')).out).toMatch(
    /^operation .*\nset +300 .*\nset 100 at once +3 /,
  );
  expect(readdirSync(join(folder, 'bench'))).toEqual([]);
});

test('a URL of varve/http is a store, too', async () => {
  const db = await open('served', { storage: 'memory' });
  const fetch = createHandler(db, { base: '/notes', authorize: bearer('secret') });
  const server = serve({ fetch, port: 0, hostname: '127.0.0.1', silent: true });
  await server.ready();
  const url = new URL('notes', server.url).href;
  process.env['VARVE_TOKEN'] = 'secret';
  try {
    await db.set('when', new Map([['a', new Date(0)]]));
    expect((await varve('set', url, '["note",42]', '{"title":"Silt"}')).out).toBe('["note",42] is set.\n');
    const got = await varve('get', url, '["note",42]', '--json');
    expect(JSON.parse(got.out)).toEqual({ key: ['note', 42], value: { title: 'Silt' }, sequence: 2 });
    expect((await varve('get', url, 'when')).out).toBe("Map(1) { 'a' => 1970-01-01T00:00:00.000Z }\n");
    expect((await varve('get', url, 'none')).exit).toBe(1);
    expect((await varve('get', `${url}/none`, 'none')).err).toContain('answered 404: There is nothing at this path');
    const imported = await varve('import', url, file('more.jsonl', lines(1200)), '--merge');
    expect(imported.out).toBe('1,200 entries imported.\n');
    expect((await varve('scan', url, '--prefix', '["n"]', '--count')).out).toBe('1200\n');
    const exported = await varve('export', url, '--format', 'csv', '--lt', '["n",1]', '--gte', '["n"]');
    expect(exported.out).toBe(`(key),i,mark\r\n"[""n"",0]",0,${markOf(0)}\r\n`);
    expect((await varve('delete', url, '--prefix', '["n"]')).exit).toBe(0);
    expect((await varve('scan', url, '--keys-only', '--reverse')).out).toBe('["note",42]\n"when"\n');
    const stats = JSON.parse((await varve('stats', url, '--json')).out);
    // The shape is that of a folder.
    const { sequence, memtable, levels } = await db.stats();
    expect(stats).toMatchObject({ name: 'served', entries: 2, sequence, memtable, levels });
    expect((await varve('stats', url)).out).toMatch(/^entries +2\non disk .*\nlast sequence +[\d,]+\nlog /);
    process.env['VARVE_TOKEN'] = 'wrong';
    const refused = await varve('get', url, 'when');
    expect(refused).toMatchObject({ exit: 6, err: expect.stringContaining('needs a token: set VARVE_TOKEN') });
  } finally {
    delete process.env['VARVE_TOKEN'];
    await server.close(true);
    await db.close();
  }
});

// The exit code was 0, and the file had the first bytes of the export.
test.skipIf(process.platform !== 'linux')('output that a file has no room for is a failure', async () => {
  const db = await open('large', { storage: 'memory' });
  const server = serve({ fetch: createHandler(db), port: 0, hostname: '127.0.0.1', silent: true });
  await server.ready();
  try {
    await db.setMany(Array.from({ length: 5000 }, (_, i) => [i, markOf(i)] as const));
    const script = 'trap \'\' XFSZ; ulimit -f 8; exec "$0" "$1" export "$2" > cut.jsonl';
    const child = spawn('sh', ['-c', script, process.execPath, join(DIST, 'cli.js'), server.url ?? ''], {
      cwd: folder,
    });
    running = child;
    let err = '';
    child.stderr.setEncoding('utf8').on('data', (text: string) => {
      err += text;
    });
    expect(await new Promise((resolve) => child.on('close', resolve))).toBe(6);
    expect(err).toContain('Standard output cannot be written: EFBIG');
  } finally {
    await server.close(true);
    await db.close();
  }
});

test('a reader that has enough, such as head, ends the command without an error', async () => {
  await varve('import', 'files/head', file('head.jsonl', lines(20_000)));
  const child = start(['scan', 'files/head']);
  child.stdout?.once('data', () => child.stdout?.destroy());
  expect(await child.result).toMatchObject({ exit: 0, err: '' });
});

// The command died of its own note that the store is new: nothing was written, and the exit code was 1.
test('standard error that nobody reads ends nothing', async () => {
  const child = start(['set', 'files/unread', 'a', '1']);
  child.stderr?.destroy();
  expect(await child.result).toMatchObject({ exit: 0, out: '"a" is set.\n' });
});

test('help and version', async () => {
  expect((await varve('--help')).out).toMatch(/varve import STORE FILE {2}/);
  expect((await varve('scan', '--help')).out).toContain('--prefix KEY');
  expect((await varve('--version')).out).toMatch(/^\d+\.\d+\.\d+\n$/);
  expect(await varve()).toMatchObject({ exit: 2, out: '' });
});
