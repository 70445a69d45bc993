/**
 * The command export: a store as a file, in Varve's own format, as JSON lines or as CSV.
 *
 * Invariant: a file has its name only when it is whole; an export that fails or is cancelled leaves no file, or the one that was there.
 */

import { randomUUID } from 'node:crypto';
import { chmodSync, createWriteStream, lstatSync, openSync, realpathSync, renameSync, rmSync, statSync } from 'node:fs';
import { dirname, extname } from 'node:path';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import type { Store } from '../index.ts';
import { entryToJson } from '../rows/jsonl.ts';
import type { CommonOpenOptions, Key, KeyRange } from '../types.ts';
import { type Call, type Command, EXPORT_KEY, RANGE, STORE } from './command.ts';
import { fieldsOf, headLine, rowLine } from './csv.ts';
import { CommandError, Exit, taken, wrong } from './exit.ts';
import { inPieces } from './lines.ts';
import { type AnyStore, encryptionOf, isUrl, withStore } from './place.ts';
import { plural, shown, size } from './text.ts';

/** The formats of files. */
export const FORMATS = ['varve', 'jsonl', 'csv'] as const;
export type Format = (typeof FORMATS)[number];

/** The format that the name of a file stands for. */
export function formatOfName(file: string): Format | undefined {
  const format: { readonly [extension: string]: Format } = {
    '.varve': 'varve',
    '.jsonl': 'jsonl',
    '.ndjson': 'jsonl',
    '.csv': 'csv',
  };
  return format[extname(file).toLowerCase()];
}

type Encryption = Pick<CommonOpenOptions, 'encryption'>;

/** The bytes and entries written so far. */
interface Written {
  entries: number;
  bytes: number;
}

export const exportStore: Command = {
  name: 'export',
  usage: 'STORE [FILE]',
  summary: 'writes a store, or a range of it, to a file or to standard output',
  options: {
    format: { value: 'FORMAT', help: "varve, jsonl or csv (default: by the file's name, else varve)" },
    force: { help: 'replace a file that is there' },
    ...EXPORT_KEY,
    ...RANGE,
    ...STORE,
  },
  notes: ['The format varve keeps everything; jsonl loses when entries expire; csv loses types, too.'],
  async run(call) {
    const { args, flags, output, signal } = call;
    const [place = '', file = '-'] = args;
    const isStdout = file === '-';
    const format = flags.choice('format', FORMATS) ?? formatOfName(file) ?? (isUrl(place) ? 'jsonl' : 'varve');
    if (isStdout && format === 'varve' && process.stdout.isTTY) {
      throw wrong('An export is no text for a terminal: name a file, or --format jsonl.');
    }
    if (format !== 'varve' && flags.has('export-key-file')) {
      throw wrong('Only an export in the format varve can be encrypted.');
    }
    const encryption = await encryptionOf(flags, 'export-key-file');
    if (!isStdout) checkFile(file, flags.has('force'));
    const range = flags.range();
    const written: Written = { entries: 0, bytes: 0 };
    await withStore(place, call, {}, async (store) => {
      const pieces = piecesOf(format, store, { ...range, ...encryption }, written, call);
      if (!isStdout) return writeFile(file, pieces, written, call);
      for await (const piece of pieces) {
        written.bytes += Buffer.byteLength(piece);
        await output.bytes(piece);
      }
    });
    signal.throwIfAborted();
    const done = `${plural(written.entries, 'entry', 'entries')}, ${size(written.bytes)}`;
    if (isStdout) output.note(`${done}.`);
    else await output.result({ file, format, ...written }, `${done} in ${file}.`);
    return Exit.ok;
  },
};

/** Refuses a file that cannot be written, before a store is opened. */
function checkFile(file: string, mayReplace: boolean): void {
  const stat = statSync(file, { throwIfNoEntry: false });
  if (stat?.isDirectory()) throw wrong(`${shown(file)} is a folder: name a file in it.`);
  if (stat !== undefined && !stat.isFile()) {
    throw wrong(`${shown(file)} is no regular file. Without FILE the export goes to standard output.`);
  }
  if (stat === undefined && lstatSync(file, { throwIfNoEntry: false }) !== undefined) {
    throw wrong(`${shown(file)} is a link to a file that is not there: name that file.`);
  }
  if (stat !== undefined && !mayReplace) throw taken(`${shown(file)} is there. --force replaces it.`);
  if (statSync(dirname(file), { throwIfNoEntry: false }) === undefined) {
    throw new CommandError(Exit.missing, `There is no folder ${shown(dirname(file))}.`);
  }
}

/**
 * Writes the file under another name, and gives it its name when it is whole and on the disk. A file that it replaces keeps its
 * permissions; a link stays, and the file that it leads to is replaced.
 */
async function writeFile(
  file: string,
  pieces: AsyncIterable<string | Uint8Array>,
  written: Written,
  { output, signal }: Call,
): Promise<void> {
  const replaced = statSync(file, { throwIfNoEntry: false });
  const path = replaced === undefined ? file : realpathSync(file);
  const part = `${path}.${randomUUID()}.part`;
  const fd = openSync(part, 'wx', replaced?.mode);
  try {
    const target = createWriteStream(part, { fd, flush: true });
    await pipeline(
      Readable.from(pieces),
      async function* (source: AsyncIterable<string | Uint8Array>) {
        for await (const piece of source) {
          written.bytes += Buffer.byteLength(piece);
          output.progress(() => `exporting: ${plural(written.entries, 'entry', 'entries')}, ${size(written.bytes)}`);
          yield piece;
        }
      },
      target,
      { signal },
    );
    // A new file has only those permissions that the process gives to all its files.
    if (replaced !== undefined) chmodSync(part, replaced.mode);
    renameSync(part, path);
  } catch (error) {
    rmSync(part, { force: true });
    throw error;
  }
}

function piecesOf(
  format: Format,
  store: AnyStore & Partial<Pick<Store<Key, unknown>, 'export' | 'snapshot'>>,
  { encryption, ...range }: KeyRange & Encryption,
  written: Written,
  { signal }: Call,
): AsyncIterable<string | Uint8Array> {
  if (format !== 'varve') return inPieces(linesOf(format, store, { ...range, signal }, written));
  if (store.export === undefined) throw wrong('A URL is exported as jsonl or csv.');
  const onProgress = ({ entries }: { entries: number }): void => {
    written.entries = entries;
  };
  return store.export({ ...range, encryption, signal, onProgress }) as unknown as AsyncIterable<Uint8Array>;
}

async function* linesOf(
  format: 'jsonl' | 'csv',
  store: AnyStore & Partial<Pick<Store<Key, unknown>, 'snapshot'>>,
  range: KeyRange & { signal: AbortSignal },
  written: Written,
): AsyncGenerator<string, undefined> {
  // CSV reads the entries twice, first for the columns. A server has no snapshots.
  const snapshot = store.snapshot?.();
  const reads = snapshot ?? store;
  try {
    const columns = new Set<string>();
    if (format === 'csv') {
      for await (const [, value] of reads.entries(range))
        for (const name of Object.keys(fieldsOf(value))) columns.add(name);
      yield headLine(columns);
    }
    for await (const [key, value] of reads.entries(range)) {
      written.entries += 1;
      if (format === 'jsonl') yield `${JSON.stringify(await entryToJson(key, value))}\n`;
      else {
        const isNew = Object.keys(fieldsOf(value)).some((name) => !columns.has(name));
        if (isNew) throw new CommandError(Exit.failed, 'The store was changed during the export. Export it again.');
        yield rowLine(key, value, [...columns]);
      }
    }
  } finally {
    await snapshot?.close();
  }
}
