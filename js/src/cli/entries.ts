/** The commands for entries: ls, get, set, delete, scan. */

import { statSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { resolve } from 'node:path';
import { addAbortSignal } from 'node:stream';
import { buffer } from 'node:stream/consumers';
import { keyToJson } from '../http/json-key.ts';
import { entryToJson } from '../rows/jsonl.ts';
import { type Call, type Command, RANGE, STORE } from './command.ts';
import { CommandError, Exit, wrong } from './exit.ts';
import { bytesIn, folderIn, isUrl, storageOf, withStore } from './place.ts';
import { keyText, parseKeyText, parseText, plural, shown, size, utf8Of, valueLine, valueText } from './text.ts';

export const ls: Command = {
  name: 'ls',
  usage: '[FOLDER]',
  summary: 'lists the stores of a folder',
  options: {},
  async run({ args: [place = '.'], output }) {
    if (isUrl(place)) throw wrong('A URL is one store. `varve scan URL` shows its entries.');
    const root = resolve(place);
    if (!statSync(root, { throwIfNoEntry: false })?.isDirectory()) {
      throw new CommandError(Exit.missing, `There is no folder ${shown(place)}.`);
    }
    const { storage } = await storageOf(root);
    const stores = (await storage.list()).sort().map((name) => {
      const { path } = folderIn(root, name);
      return { name, path, bytes: bytesIn(path) };
    });
    if (output.isJson) await output.result(stores);
    else await output.table([...stores.map(({ path, bytes }) => [path, size(bytes)])], [1]);
    if (stores.length === 0) output.note(`There are no stores in the folder ${shown(root)}.`);
    return Exit.ok;
  },
};

export const get: Command = {
  name: 'get',
  usage: 'STORE KEY',
  summary: 'prints the value of a key',
  options: { raw: { help: 'print a text or bytes as they are, without quotes and line end' }, ...STORE },
  notes: ['The exit code is 1 if there is no such key.'],
  async run(call) {
    const { args, flags, output, signal } = call;
    const key = parseKeyText(args[1]!);
    const entry = await withStore(args[0]!, call, {}, (store) => store.getEntry(key, { signal }));
    if (entry === undefined) throw new CommandError(Exit.absent, `There is no key ${keyText(key)}.`, 'VARVE_NOT_FOUND');
    const { value, sequence, expiresAt } = entry;
    if (flags.has('raw') && (typeof value === 'string' || value instanceof Uint8Array)) await output.bytes(value);
    else {
      const json = { ...(await entryToJson(key, value)), sequence, expiresAt: expiresAt?.toISOString() };
      await output.result(json, valueText(value));
    }
    return Exit.ok;
  },
};

export const set: Command = {
  name: 'set',
  usage: 'STORE KEY [VALUE]',
  summary: 'writes a value; VALUE is JSON or a text, - reads it from standard input',
  options: {
    text: { help: 'the value is a text, also if it looks like JSON' },
    file: { value: 'PATH', help: 'the value is the bytes of this file (- for standard input)' },
    'expires-in': { value: 'MS', help: 'the entry is gone after this time' },
    ...STORE,
  },
  notes: ['It makes the store where there is none. The write is on the disk when the command ends.'],
  async run(call) {
    const { args, flags, output, signal } = call;
    const key = parseKeyText(args[1]!);
    const value = await givenValue(args[2], call);
    const options = { expiresIn: flags.integer('expires-in', 1), durability: 'strict', signal } as const;
    const receipt = await withStore(args[0]!, call, { create: true }, (store) => store.set(key, value, options));
    await output.result(receipt, `${keyText(key)} is set.`);
    return Exit.ok;
  },
};

async function givenValue(given: string | undefined, { flags, signal }: Call): Promise<unknown> {
  const file = flags.text('file');
  if ((given === undefined) === (file === undefined)) throw wrong('Name the value once: as VALUE, or with --file.');
  if (file !== undefined) return new Uint8Array(await readInput(file, signal));
  const advice = 'Standard input is no text in UTF-8. `--file -` takes its bytes as the value.';
  const text = given === '-' ? utf8Of(await readInput('-', signal), advice) : (given as string);
  return flags.has('text') ? text : parseText(text);
}

async function readInput(path: string, signal: AbortSignal): Promise<Uint8Array> {
  try {
    return path === '-' ? await buffer(addAbortSignal(signal, process.stdin)) : await readFile(path, { signal });
  } catch (error) {
    signal.throwIfAborted();
    throw new CommandError(Exit.missing, `${path} cannot be read: ${(error as Error).message}.`);
  }
}

export const deleteKeys: Command = {
  name: 'delete',
  usage: 'STORE [KEY...]',
  summary: 'deletes keys, or a range of keys',
  options: { ...RANGE, ...STORE },
  notes: ['A key that is not there is no error. The write is on the disk when the command ends.'],
  async run(call) {
    const { args, flags, output, signal } = call;
    const keys = args.slice(1).map(parseKeyText);
    const range = flags.range();
    const hasRange = Object.keys(range).length > 0;
    if (hasRange === keys.length > 0) throw wrong('Name keys to delete, or a range with options such as --prefix.');
    const options = { durability: 'strict', signal } as const;
    await withStore(args[0]!, call, {}, async (store) => {
      if (hasRange) return output.result(await store.deleteRange(range, options), 'The range is deleted.');
      let deleted = 0;
      for (const key of keys) if ((await store.delete(key, { ...options, existed: true })).existed) deleted += 1;
      const absent = keys.length - deleted;
      const rest = absent === 0 ? '' : ` ${plural(absent, 'key was', 'keys were')} not there.`;
      return output.result({ deleted, absent }, `${plural(deleted, 'key is', 'keys are')} deleted.${rest}`);
    });
    return Exit.ok;
  },
};

export const scan: Command = {
  name: 'scan',
  usage: 'STORE',
  summary: 'prints entries in the order of their keys',
  options: {
    ...RANGE,
    reverse: { help: 'last key first' },
    limit: { value: 'N', help: 'at most so many entries' },
    'keys-only': { help: 'print only the keys' },
    count: { help: 'print only how many there are' },
    ...STORE,
  },
  notes: ['With --json it prints lines that `varve import` reads.'],
  async run(call) {
    const { args, flags, output, signal } = call;
    const range = flags.range();
    const limit = flags.integer('limit', 0);
    const options = { ...range, reverse: flags.has('reverse'), limit, signal };
    if (flags.has('count') && (limit !== undefined || flags.has('reverse') || flags.has('keys-only'))) {
      throw wrong('--count takes a range only.');
    }
    const columns = process.stdout.isTTY ? process.stdout.columns : undefined;
    const cut = (line: string): string =>
      columns !== undefined && line.length > columns ? `${line.slice(0, columns - 1)}\u2026` : line;
    await withStore(args[0]!, call, {}, async (store) => {
      if (flags.has('count')) {
        const count = await store.count({ ...range, signal });
        await output.result({ count }, String(count));
      } else if (flags.has('keys-only')) {
        for await (const key of store.keys(options)) await output.result(keyToJson(key), cut(keyText(key)));
      } else {
        for await (const [key, value] of store.entries(options)) {
          if (output.isJson) await output.result(await entryToJson(key, value));
          else await output.line(cut(`${keyText(key)}  ${valueLine(value)}`));
        }
      }
      await output.flush();
    });
    return Exit.ok;
  },
};
