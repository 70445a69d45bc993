/**
 * The command import: exports of Varve, JSON lines and CSV.
 *
 * A file of lines is read twice: first all of it is checked, then it is written in batches. So a line that cannot be read stops the
 * import before it writes anything. Standard input can be read only once.
 *
 * Invariant: however an import ends, it reports how much of the file is in the store.
 */

import { closeSync, createReadStream, openSync, readSync, statSync } from 'node:fs';
import { addAbortSignal, type Readable } from 'node:stream';
import { hasCode } from '../errors.ts';
import type { Store } from '../index.ts';
import { isExport, MAGIC } from '../portable/magic.ts';
import { type Refusal, refusalIn } from '../rows/collections.ts';
import type { Key, ValueCodec } from '../types.ts';
import { type Call, type Command, EXPORT_KEY, STORE } from './command.ts';
import { CommandError, codeOf, Exit, exitOf, Interrupted, messageOf, taken, wrong } from './exit.ts';
import { FORMATS, type Format, formatOfName } from './export.ts';
import { type AnyStore, codecOf, encryptionOf, folderOf, isUrl, withFolder, withStore } from './place.ts';
import { type BadRow, type KeyRule, type Row, rowsOf } from './rows.ts';
import { parseKeyText, plural, shown, size } from './text.ts';

/** A batch has at most so many rows, and about so many characters. */
const BATCH_ROWS = 1000;
const BATCH_CHARS = 1024 * 1024;
/** How many bad rows are listed. */
const LISTED_MAX = 10;

/** The progress of the import. */
interface Imported {
  entries: number;
  /** The last line that is in the store. */
  line: number;
}

/** Where the content comes from. */
interface Source {
  readonly file: string;
  /** Bytes of a file; undefined for what can be read only once: standard input, a pipe. */
  readonly bytes: number | undefined;
  /** Opens it to do something with it, which the progress names. */
  open(work: string, offset?: number): Readable;
}

export const importStore: Command = {
  name: 'import',
  usage: 'STORE FILE',
  summary: 'reads an export, JSON lines or CSV into a store; - reads standard input',
  options: {
    format: { value: 'FORMAT', help: "varve, jsonl or csv (default: by the file's name and content)" },
    merge: { help: 'import into a store that has entries; those with the same keys are replaced' },
    'key-field': { value: 'NAME', help: 'jsonl, csv: the field or the column that is the key' },
    prefix: { value: 'LIST', help: 'jsonl, csv: what comes before each key, as \'["note"]\'' },
    ...EXPORT_KEY,
    ...STORE,
  },
  notes: ['It makes the store where there is none.'],
  async run(call) {
    const { args, flags } = call;
    const [place = '', file = ''] = args;
    const source = sourceOf(file, call);
    const format = flags.choice('format', FORMATS) ?? formatOf(source);
    const rule = ruleOf(format, call);
    if (format !== 'varve' && source.bytes !== undefined) {
      // A server has a codec of its own.
      const codec = isUrl(place) ? undefined : await codecOf(flags);
      await checkRows(format, source, rule, ({ value }) => codec && refusalOf(value, codec), call);
    }
    if (isUrl(place)) {
      if (format === 'varve')
        throw wrong('A URL takes jsonl and csv. `varve import` reads an export into a store in files.');
      await withStore(place, call, {}, (store) => importInto(store, place, format, source, rule, call));
      return Exit.ok;
    }
    const folder = folderOf(place);
    await withFolder(folder, call, { create: true }, (store) =>
      format === 'varve'
        ? importExport(store, folder.path, source, call)
        : importInto(store, folder.path, format, source, rule, call),
    );
    return Exit.ok;
  },
};

function sourceOf(file: string, { output, signal }: Call): Source {
  const isStdin = file === '-';
  const stat = isStdin ? undefined : statSync(file, { throwIfNoEntry: false });
  if (!isStdin && stat === undefined) throw new CommandError(Exit.missing, `There is no file ${shown(file)}.`);
  if (stat?.isDirectory()) throw wrong(`${shown(file)} is a folder, not a file.`);
  // A pipe, such as <(gunzip -c notes.varve.gz), can be read once, as standard input.
  const bytes = stat?.isFile() ? stat.size : undefined;
  const open = (work: string, start = 0): Readable => {
    const stream = isStdin ? process.stdin : createReadStream(file, bytes === undefined ? {} : { start });
    let done = start;
    stream.on('data', (piece: Uint8Array) => {
      done += piece.length;
      output.progress(() => `${work}: ${size(done)}${bytes === undefined ? '' : ` of ${size(bytes)}`}`);
    });
    stream.pause();
    return addAbortSignal(signal, stream);
  };
  return { file, bytes, open };
}

/** The format of a file by its content, or else by its name. */
function formatOf({ file, bytes }: Source): Format {
  if (bytes === undefined) return 'varve';
  const head = new Uint8Array(MAGIC.length);
  const descriptor = openSync(file, 'r');
  try {
    readSync(descriptor, head);
  } finally {
    closeSync(descriptor);
  }
  if (isExport(head)) return 'varve';
  const format = formatOfName(file);
  if (format === undefined) throw wrong(`${shown(file)} is no export of Varve. Name its format with --format.`);
  return format;
}

function ruleOf(format: Format, { flags }: Call): KeyRule {
  const given = flags.text('prefix');
  const prefix = given === undefined ? undefined : parseKeyText(given);
  if (prefix !== undefined && !Array.isArray(prefix))
    throw wrong('The prefix of an import is a list, as \'["note"]\'.');
  const column = flags.text('key-field');
  if (format === 'varve' && (prefix !== undefined || column !== undefined)) {
    throw wrong('An export of Varve has keys of its own: it takes neither --key-field nor --prefix.');
  }
  if (format !== 'varve' && flags.has('export-key-file')) throw wrong('Only an export of Varve can be encrypted.');
  return { column, prefix: prefix as readonly Key[] | undefined };
}

/** Reads a whole file of rows; throws the list of those that cannot be read, or that `refuse` has a reason against. */
async function checkRows(
  format: 'jsonl' | 'csv',
  source: Source,
  rule: KeyRule,
  refuse: (row: Row) => string | undefined,
  { signal }: Call,
): Promise<void> {
  const bad: BadRow[] = [];
  let count = 0;
  for await (const row of rowsOf(format, source.open('checking'), rule)) {
    signal.throwIfAborted();
    const why = 'why' in row ? row.why : refuse(row);
    if (why === undefined) continue;
    count += 1;
    if (bad.length < LISTED_MAX) bad.push({ line: row.line, why });
  }
  if (count === 0) return;
  const more = count > bad.length ? [`and ${plural(count - bad.length, 'line', 'lines')} more`] : [];
  throw wrong(
    [
      `Nothing was imported: ${plural(count, 'line', 'lines')} of ${source.file} cannot be read.`,
      ...bad.map(badLine),
      ...more,
    ].join('\n  '),
  );
}

/** Why a value cannot be stored with a codec; undefined if it can. */
function refusalOf(value: unknown, codec: ValueCodec<unknown>): string | undefined {
  try {
    codec.encode(value);
    return undefined;
  } catch (error) {
    return messageOf(error);
  }
}

function badLine({ line, why }: BadRow): string {
  return `line ${line}: ${why}`;
}

/** Writes rows in batches. */
async function importInto(
  store: AnyStore & Partial<Pick<Store<Key, unknown>, 'transaction'>>,
  name: string,
  format: 'jsonl' | 'csv',
  source: Source,
  rule: KeyRule,
  call: Call,
): Promise<void> {
  await mustBeEmpty(store, name, call);
  // A server does not tell which keys are of collections.
  const refusal = await store.transaction?.(refusalIn);
  if (refusal !== undefined && source.bytes !== undefined)
    await checkRows(format, source, rule, ({ key }) => refusal(key), call);
  const imported: Imported = { entries: 0, line: 0 };
  const rows = rowsOf(format, source.open('importing'), rule);
  try {
    for await (const batch of batchesOf(rows, refusal)) {
      call.signal.throwIfAborted();
      await store.setMany(batch.map(({ key, value }) => [key, value] as const));
      imported.entries += batch.length;
      imported.line = batch.at(-1)!.line;
    }
  } catch (error) {
    const cause = call.signal.aborted ? call.signal.reason : error;
    throw new CommandError(exitOf(cause), `${messageOf(cause)} ${stateOf(imported)}`, codeOf(cause));
  }
  await call.output.result({ entries: imported.entries }, `${plural(imported.entries, 'entry', 'entries')} imported.`);
}

function stateOf({ entries, line }: Imported): string {
  if (entries === 0) return 'Nothing was imported.';
  return `${plural(entries, 'entry was', 'entries were')} imported, up to line ${line}; the rest was not. Import again with --merge.`;
}

async function mustBeEmpty(store: AnyStore, name: string, { flags, signal }: Call): Promise<void> {
  if (flags.has('merge')) return;
  for await (const _ of store.keys({ limit: 1, signal })) {
    throw taken(`The store ${name} has entries. --merge imports into it, and replaces entries with the same keys.`);
  }
}

async function* batchesOf(
  rows: AsyncIterable<Row | BadRow>,
  refusal: Refusal | undefined,
): AsyncGenerator<Row[], undefined> {
  let batch: Row[] = [];
  let chars = 0;
  for await (const row of rows) {
    if ('why' in row) throw wrong(`This cannot be read: ${badLine(row)}`);
    const why = refusal?.(row.key);
    if (why !== undefined) throw wrong(`This cannot be imported: ${badLine({ line: row.line, why })}`);
    batch.push(row);
    chars += row.chars;
    if (batch.length < BATCH_ROWS && chars < BATCH_CHARS) continue;
    yield batch;
    batch = [];
    chars = 0;
  }
  if (batch.length > 0) yield batch;
}

/** Imports an export of Varve. */
async function importExport(store: Store<Key, unknown>, name: string, source: Source, call: Call): Promise<void> {
  const { flags, output, signal } = call;
  const open = (offset = 0): Readable => source.open('importing', offset);
  const encryption = await encryptionOf(flags, 'export-key-file');
  let imported = 0;
  try {
    const report = await store.import(source.bytes === undefined ? open() : open, {
      ...encryption,
      merge: flags.has('merge'),
      signal,
      onProgress: ({ entries }) => {
        imported = entries;
      },
    });
    await output.result(report, `${plural(report.entries, 'entry', 'entries')} imported.`);
  } catch (error) {
    const cause = signal.aborted ? signal.reason : error;
    // The engine's advice is for programs.
    if (hasCode(cause, 'VARVE_EXISTS')) await mustBeEmpty(store, name, call);
    const state =
      imported === 0 ? 'Nothing was imported.' : `${plural(imported, 'entry is', 'entries are')} in the store.`;
    const advice = cause instanceof Interrupted ? ' Import the same export again: it goes on there.' : '';
    throw new CommandError(exitOf(cause), `${messageOf(cause)} ${state}${advice}`, codeOf(cause));
  }
}
