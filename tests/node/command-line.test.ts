// The command `varve` from its sources, most of it over a store behind its handler. tests/runtimes/command-line.test.ts runs the built
// command as a process, over stores in files.

import {
  chmodSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { PassThrough, Readable } from 'node:stream';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { type Call, Flags } from '../../js/src/cli/command.ts';
import { recordsOf } from '../../js/src/cli/csv.ts';
import { set } from '../../js/src/cli/entries.ts';
import { Output } from '../../js/src/cli/output.ts';
import { encryptionOf } from '../../js/src/cli/place.ts';
import { run } from '../../js/src/cli/program.ts';
import { collection } from '../../js/src/collections.ts';
import { files } from '../../js/src/fs.ts';
import { open, type Store } from '../../js/src/index.ts';
import type { Key } from '../../js/src/types.ts';
import { wasm } from './support/engine.ts';
import { ORIGIN, type Served, serve } from './support/http.ts';

// The command opens stores with the engine of the package, which is beside the built code.
vi.mock('../../js/src/index.ts', async (original) => {
  const index = await original<typeof import('../../js/src/index.ts')>();
  return { ...index, open: (name: string, options: object) => index.open(name, { wasm, ...options }) };
});

interface Result {
  readonly exit: number;
  readonly out: string;
  readonly err: string;
}

let served: Served;
let folder: string;
let url: string;

beforeEach(async () => {
  served = await serve();
  folder = mkdtempSync(join(tmpdir(), 'varve-command-'));
  url = `${ORIGIN}/`;
  vi.stubGlobal('fetch', (to: string, init?: RequestInit) => served.handler(new Request(to, init)));
});

afterEach(async () => {
  vi.restoreAllMocks();
  vi.unstubAllGlobals();
  await served.db.close();
  rmSync(folder, { recursive: true, force: true });
});

/** Runs the command. `write` takes what it writes to standard output, and returns why that fails. */
async function command(args: string[], stdin: Readable, write: (text: string) => Error | undefined): Promise<Result> {
  let [out, err] = ['', ''];
  const listeners = process.listeners('SIGINT');
  vi.spyOn(process, 'stdin', 'get').mockReturnValue(stdin as typeof process.stdin);
  vi.spyOn(process.stderr, 'write').mockImplementation((text) => {
    err += text;
    return true;
  });
  vi.spyOn(process.stdout, 'write').mockImplementation(((text: string, done?: (error?: Error) => void) => {
    const error = write(String(text));
    if (error === undefined) out += text;
    done?.(error);
    return error === undefined;
  }) as typeof process.stdout.write);
  try {
    const exit = await run(args);
    return { exit, out, err };
  } finally {
    vi.restoreAllMocks();
    for (const signal of ['SIGINT', 'SIGTERM'] as const) {
      for (const listener of process.listeners(signal))
        if (!listeners.includes(listener)) process.off(signal, listener);
    }
  }
}

function varve(...args: string[]): Promise<Result> {
  return command(args, Readable.from([]), () => undefined);
}

function withInput(input: string | Uint8Array, ...args: string[]): Promise<Result> {
  return command(args, Readable.from([Buffer.from(input)]), () => undefined);
}

function file(name: string, content: string | Uint8Array): string {
  const path = join(folder, name);
  writeFileSync(path, content);
  return path;
}

const CSV_BY_ID = ['--format', 'csv', '--key-field', 'id'];
const failing = (code: string) => (): Error => Object.assign(new Error(`${code}: it failed`), { code });

// `varve export notes > file` left half of a file on a full disk, with the exit code 0.
test('only a reader that has enough ends the command with success; any other failure of its output is one', async () => {
  await served.db.set('a', 1);
  for (const args of [
    ['export', url],
    ['scan', url],
    ['get', url, 'a', '--json'],
  ]) {
    const full = await command(args, Readable.from([]), failing('ENOSPC'));
    expect(full.exit).toBe(6);
    expect(full.err).toContain('Standard output cannot be written: ENOSPC: it failed.');
    expect(await command(args, Readable.from([]), failing('EPIPE'))).toEqual({ exit: 0, out: '', err: '' });
  }
});

// Ctrl-C did nothing while `varve set notes key -` waited for its input.
test('a value from standard input is read until its end, or until a signal', async () => {
  expect((await withInput('{"n":1}\n', 'set', url, 'a', '-')).exit).toBe(0);
  expect(await served.db.get('a')).toEqual({ n: 1 });
  const abort = new AbortController();
  vi.spyOn(process, 'stdin', 'get').mockReturnValue(new PassThrough() as never);
  const call: Call = { args: [url, 'b', '-'], flags: new Flags({}), output: new Output(false), signal: abort.signal };
  const waiting = set.run(call);
  abort.abort(new Error('Ctrl-C'));
  await expect(waiting).rejects.toThrow('Ctrl-C');
  expect(await served.db.has('b')).toBe(false);
});

// Bytes became a text with U+FFFD in it.
test('standard input that is no text is refused as a value, and taken as a file', async () => {
  const bytes = Uint8Array.of(0x61, 0xff);
  const refused = await withInput(bytes, 'set', url, 'a', '-');
  expect(refused).toEqual({
    exit: 2,
    out: '',
    err: expect.stringContaining('`--file -` takes its bytes as the value'),
  });
  expect(await served.db.has('a')).toBe(false);
  expect((await withInput(bytes, 'set', url, 'a', '--file', '-')).exit).toBe(0);
  expect(await served.db.get('a')).toEqual(bytes);
});

// Every byte that is not UTF-8 became the same character, so each of several files opened the store.
test('a file with a key is 32 bytes or a text in UTF-8', async () => {
  const open = (content: string | Uint8Array) => encryptionOf(new Flags({ 'key-file': file('key', content) }));
  await expect(open(Uint8Array.of(0x70, 0xff))).rejects.toThrow('a key is 32 bytes, or a text in UTF-8');
  expect(await open(new Uint8Array(32).fill(255))).toEqual({ encryption: { key: new Uint8Array(32).fill(255) } });
  expect((await open('Schlüssel\n')).encryption).toBeDefined();
});

// A file passed the check, and its import then stopped halfway at a key that the prefix made too long, or at a value.
test('a file is checked with the prefix of its keys, and with the codec of its values', async () => {
  const path = file('rows.jsonl', `{"key":1,"value":"a"}\n{"key":"${'k'.repeat(65_000)}","value":2}\n`);
  const prefix = JSON.stringify(['p'.repeat(600)]);
  const long = await varve('import', url, path, '--prefix', prefix);
  expect(long).toMatchObject({
    exit: 2,
    err: expect.stringMatching(/^varve: Nothing was imported: 1 line of .*\n {2}line 2: /),
  });
  expect(await served.db.count()).toBe(0);
  const typed = await varve('import', join(folder, 'store'), path, '--values', 'utf8');
  expect(typed.exit).toBe(2);
  expect(typed.err).toContain('  line 2: The value is no string. The utf8 codec stores nothing else. --values names');
  expect(readdirSync(folder)).toEqual(['rows.jsonl']);
});

// With --force an export put a file in the place of a link and of /dev/null, and one with other permissions in the place of a file.
test('an export is written through links, keeps the permissions, and replaces nothing but files', async () => {
  await served.db.set('a', 1);
  const real = file('real.jsonl', 'old');
  chmodSync(real, 0o660);
  const link = join(folder, 'link.jsonl');
  symlinkSync('real.jsonl', link);
  const other = file('link.jsonl.part', 'mine');
  expect((await varve('export', url, link, '--force')).exit).toBe(0);
  expect(readFileSync(real, 'utf8')).toBe('{"key":"a","value":1}\n');
  expect(statSync(real).mode & 0o777).toBe(0o660);
  expect(readFileSync(other, 'utf8')).toBe('mine');
  expect(readdirSync(folder).sort()).toEqual(['link.jsonl', 'link.jsonl.part', 'real.jsonl']);
  expect((await varve('export', url, '/dev/null', '--force')).err).toContain('/dev/null is no regular file');
  expect(statSync('/dev/null').isCharacterDevice()).toBe(true);
  const dangling = join(folder, 'dangling.jsonl');
  symlinkSync('gone.jsonl', dangling);
  expect((await varve('export', url, dangling)).err).toContain('is a link to a file that is not there');
});

// All of the file was read into memory while the first rows were written. An error that came meanwhile was lost: the command ended with
// exit code 13, printed nothing, and left its store open.
test('CSV is read as fast as its rows are written, and an error meanwhile ends the import', async () => {
  const rows = `7,${'x'.repeat(60)}\r\n`.repeat(1500);
  let pieces = 0;
  async function* texts(): AsyncGenerator<string> {
    for (yield 'id,name\r\n'; pieces < 100; pieces++) yield rows;
  }
  for await (const { line } of recordsOf(texts())) {
    if (line < 2) continue;
    await new Promise((resolve) => setTimeout(resolve, 20));
    expect(pieces).toBeLessThan(10);
    break;
  }
  const input = Readable.from([Buffer.from(`id,name\r\n${rows}`), Buffer.from([0xff])]);
  const { exit, err } = await command(['import', url, '-', ...CSV_BY_ID], input, () => undefined);
  expect(exit).toBe(2);
  expect(err).toContain('This line or one after it is not UTF-8. 1,000 entries were imported, up to line 1001;');
});

// The line ends were guessed from the first piece of the input: every last value of a line got a carriage return at its end.
test('CSV from a pipe is the same, however short its pieces are', async () => {
  const pieces = ['\ufeff', 'id,na', 'me\r', '\n1,a\r\n2,b', '\r\n'].map((piece) => Buffer.from(piece));
  expect((await command(['import', url, '-', ...CSV_BY_ID], Readable.from(pieces), () => undefined)).exit).toBe(0);
  expect(await served.db.getMany([1, 2])).toEqual([
    { id: 1, name: 'a' },
    { id: 2, name: 'b' },
  ]);
});

// The object { value: 1 } was read as the number 1, because a column of this name had the values that are no objects.
test('an object with a field that is named value comes back from CSV', async () => {
  const again = async (key: string, value: unknown): Promise<unknown> => {
    await served.db.clear();
    await served.db.set(key, value);
    const path = join(folder, `${key}.csv`);
    expect((await varve('export', url, path)).exit).toBe(0);
    await served.db.clear();
    expect((await varve('import', url, path)).exit).toBe(0);
    return served.db.get(key);
  };
  expect(await again('object', { value: 1 })).toEqual({ value: 1 });
  expect(await again('plain', 1)).toBe(1);
});

// The only message of a scan whose server died was `terminated`.
test('a server that dies during a scan is named', async () => {
  const lines = ['{"key":1,"value":1}\n', '{"key":2,'];
  const dying = new ReadableStream({
    pull(controller) {
      const line = lines.shift();
      if (line !== undefined) return controller.enqueue(new TextEncoder().encode(line));
      controller.error(new TypeError('terminated', { cause: new Error('other side closed') }));
    },
  });
  vi.stubGlobal('fetch', async () => new Response(dying));
  const { exit, err } = await varve('scan', url);
  expect({ exit, err }).toEqual({ exit: 6, err: `varve: ${ORIGIN} broke off its answer: other side closed.\n` });
});

// Story: other answers that broke off still had the only message `terminated`.
test.each([
  ['get', 'a'],
  ['set', 'a', '1'],
  ['delete', 'a'],
  ['delete', '--prefix', 'a'],
  ['scan', '--count'],
  ['stats'],
])('a server that dies during the answer to %s is named', async (...args) => {
  const dying = () =>
    new ReadableStream({
      start: (controller) => controller.error(new TypeError('terminated', { cause: new Error('other side closed') })),
    });
  vi.stubGlobal('fetch', async () => new Response(dying(), { headers: { 'content-type': 'application/json' } }));
  const [command, ...others] = args as [string, ...string[]];
  const { exit, err } = await varve(command, url, ...others);
  expect({ exit, err }).toEqual({ exit: 6, err: `varve: ${ORIGIN} broke off its answer: other side closed.\n` });
});

// Story: a value or a key that was `--json`, behind `--`, also made the output JSON.
test('behind -- an option is a value', async () => {
  expect((await varve('set', url, 'flag', '--', '--json')).out).toBe('"flag" is set.\n');
  expect((await varve('set', url, '--json', '--', 'flag', '--help')).out).toMatch(/^\{"sequence":/);
  expect(await served.db.get('flag')).toBe('--help');
});

// An export wrote over a file with its own name and `.part`, and removed that when it failed.
test('an export that fails leaves the files that were there', async () => {
  const path = file('a.jsonl', 'old');
  file('a.jsonl.part', 'mine');
  vi.stubGlobal('fetch', async () => new Response(null, { status: 500 }));
  expect((await varve('export', url, path, '--force')).exit).toBe(6);
  expect(readFileSync(path, 'utf8')).toBe('old');
  expect(readdirSync(folder).sort()).toEqual(['a.jsonl', 'a.jsonl.part']);
});

// Story: `varve export notes notes.jsonl`, then a document was changed and one inserted, then `varve import notes notes.jsonl --merge`
// brought the old documents and index entries back. Two documents had one value of a unique index, and the exit code was 0.
test('rows that belong to a collection are refused, and nothing is written', async () => {
  const place = join(folder, 'notes');
  const lines = join(folder, 'notes.jsonl');
  const use = async (change: (notes: ReturnType<typeof notesOf>) => Promise<unknown>): Promise<void> => {
    await using db = await open('notes', { storage: files(folder) });
    await change(notesOf(db));
  };
  await use((notes) => notes.insert({ id: 1, slug: 'silt' }));
  expect((await varve('export', place, lines)).exit).toBe(0);
  await use(async (notes) => {
    await notes.put({ id: 1, slug: 'mud' });
    await notes.insert({ id: 2, slug: 'silt' });
  });
  const copy = readFileSync(lines, 'utf8');
  const why =
    'It belongs to a collection, whose indexes would not follow. Import an export of Varve, or call insertMany()';
  const rows = `{"key":["notes","other"],"value":1}\n${copy}`;
  for (const refused of [
    await varve('import', place, file('rows.jsonl', rows), '--merge'),
    await withInput(rows, 'import', place, '-', '--format', 'jsonl', '--merge'),
    await varve('import', place, file('rows.csv', 'id,slug\r\n3,"silt"\r\n'), '--merge', ...under('notes', 'doc')),
    await varve('import', place, file('by.csv', 'id,slug\r\nsilt,1\r\n'), '--merge', ...under('notes', 'by', 'slug')),
  ]) {
    expect(refused).toMatchObject({ exit: 2, err: expect.stringMatching(/Nothing was imported/) });
    expect(refused.err).toContain(`line 2: ${why}`);
  }
  expect((await varve('scan', place, '--count')).out).toBe('4\n');
  await use(async (notes) => {
    expect((await notes.get(1))?.slug).toBe('mud');
    expect((await notes.check()).ok).toBe(true);
  });
  // Beside the collection, and in a store without one, rows are only rows.
  expect(
    (await varve('import', place, file('other.jsonl', '{"key":["notes","other"],"value":1}\n'), '--merge')).exit,
  ).toBe(0);
  expect((await varve('import', join(folder, 'copy'), lines)).out).toBe('2 entries imported.\n');
});

const notesOf = (db: Store<Key, unknown>) =>
  collection<{ id: number; slug: string }>()(db, 'notes', {
    key: 'id',
    indexes: { slug: { of: 'slug', unique: true } },
  });
const under = (...prefix: string[]): string[] => ['--key-field', 'id', '--prefix', JSON.stringify(prefix)];

// Story: an object had a field `(key)`. Its CSV had that column twice, and the import of the file was refused.
test('CSV is not exported with two columns that an import cannot tell apart', async () => {
  for (const value of [{ '(key)': 1 }, { a: 1, ' a': 2 }, { '': 1, 'column 2': 2 }]) {
    await served.db.clear();
    await served.db.set('x', value);
    const refused = await varve('export', url, join(folder, 'x.csv'));
    expect(refused).toMatchObject({ exit: 2, err: expect.stringContaining('CSV would have two columns "') });
    expect(refused.err).toContain('Export JSON lines, which have all fields.');
    expect(readdirSync(folder)).toEqual([]);
  }
});

// Of a URL it had other names, without levels: a program had to know which of the two it asked.
test('stats --json has one shape, whether the store is in a folder or behind a URL', async () => {
  const place = join(folder, 'notes');
  expect((await varve('set', place, 'a', '1')).exit).toBe(0);
  expect((await varve('set', url, 'a', '1')).exit).toBe(0);
  const { recovery, ...local } = JSON.parse((await varve('stats', place, '--json')).out);
  const remote = JSON.parse((await varve('stats', url, '--json')).out);
  expect(recovery).toMatchObject({ state: 'clean' });
  expect(remote).toMatchObject({ name: 'http', entries: 1, levels: expect.any(Array) });
  const { sharing, origin, ...numbers } = remote;
  expect(Object.keys(numbers).sort()).toEqual(Object.keys(local).sort());
  expect((await varve('stats', url)).out).toMatch(/^entries +1\non disk .*\nlast sequence +1\nlog /);
});

test('errors about what is absent and what is there have a code, besides the exit code', async () => {
  const place = join(folder, 'notes');
  const codeOf = async (...args: string[]): Promise<[string, number]> => {
    const { error } = JSON.parse((await varve(...args, '--json')).err);
    return [error.code, error.exit];
  };
  for (const args of [
    ['check', place],
    ['scan', place],
  ])
    expect(await codeOf(...args)).toEqual(['VARVE_NOT_FOUND', 3]);
  expect((await varve('set', place, 'a', '1')).exit).toBe(0);
  for (const of of [place, url]) expect(await codeOf('get', of, 'none')).toEqual(['VARVE_NOT_FOUND', 1]);
  expect(await codeOf('repair', place, '--into', 'notes')).toEqual(['VARVE_EXISTS', 2]);
  expect((await varve('export', place, join(folder, 'notes.varve'))).exit).toBe(0);
  expect(await codeOf('export', place, join(folder, 'notes.varve'))).toEqual(['VARVE_EXISTS', 2]);
  expect(await codeOf('import', place, join(folder, 'notes.varve'))).toEqual(['VARVE_EXISTS', 2]);
  expect(await codeOf('get', `${url}none`, 'a')).toEqual([undefined, 6]);
});
