/**
 * Where a store is: a folder, or a URL of `varve/http`; and how a command opens it.
 *
 * Invariant: only a command that may make a store makes one; for every other command a path without a store is an error. A store is
 * closed however the command ends.
 */

import { readdirSync, readFileSync, statSync } from 'node:fs';
import { basename, dirname, join, relative, resolve } from 'node:path';
import type { Reads } from '../api.ts';
import type { Store } from '../index.ts';
import { escapeName, unescapeName } from '../storage/names.ts';
import type { CommonOpenOptions, Key, ValueCodec } from '../types.ts';
import type { Call, Flags } from './command.ts';
import { CommandError, Exit, wrong } from './exit.ts';
import { RemoteStore } from './remote.ts';
import { shown, utf8Of } from './text.ts';

/** The calls of a store that the commands use. A store in files has all of them, and one behind `varve/http` as well. */
export type AnyStore = Pick<Reads<Key, unknown>, 'keys' | 'entries'> &
  Pick<Store<Key, unknown>, 'getEntry' | 'set' | 'setMany' | 'delete' | 'deleteRange' | 'count' | 'close'>;

/** A store in files, by its folder. */
interface Folder {
  /** The folder with the store's folder in it. */
  readonly root: string;
  readonly name: string;
  /** The store's folder, as a person would write it. */
  readonly path: string;
  /** The argument as it was written. */
  readonly place: string;
}

/** Bytes of a key; a file of another length is a passphrase. */
const KEY_BYTES = 32;

/** How long a command waits for a store by itself, in milliseconds. */
export const LOCK_TIMEOUT = 1000;

export function isUrl(place: string): boolean {
  return /^https?:\/\//i.test(place);
}

/** The store of a path; its folder's name is the escaped name of the store. */
export function folderOf(place: string): Folder {
  if (isUrl(place)) throw wrong(`This command needs the folder of a store. ${shown(place)} is a URL.`);
  if (place === '') throw wrong('The path of the store is empty.');
  const path = resolve(place);
  const name = unescapeName(basename(path)) ?? basename(path);
  return { ...folderIn(dirname(path), name), place };
}

/** A store by its name, in a folder of stores. */
export function folderIn(root: string, name: string): Folder {
  const path = join(root, escapeName(name));
  const short = relative('', path);
  const readable = short.startsWith('..') || short === '' ? path : short;
  return { root, name, path: readable, place: readable };
}

/** The storage of a store in files, and the functions that use it. They are loaded only by commands that need them. */
export async function storageOf(root: string) {
  const [{ open, check, repair }, { files }] = await Promise.all([import('../index.ts'), import('../fs.ts')]);
  return { storage: files(root), open, check, repair };
}

/** The codec of values that the command names. */
export async function codecOf(flags: Flags): Promise<ValueCodec<unknown>> {
  const { bytes, json, structured, utf8 } = await import('../index.ts');
  const name = flags.choice('values', ['structured', 'json', 'utf8', 'bytes']) ?? 'structured';
  return { bytes, json, structured, utf8 }[name] as unknown as ValueCodec<unknown>;
}

/** The bytes of a store's files. */
export function bytesIn(path: string): number {
  const files = readdirSync(path).map((file) => statSync(join(path, file), { throwIfNoEntry: false }));
  return files.reduce((sum, file) => sum + (file?.isFile() ? file.size : 0), 0);
}

/** The key of an encrypted store or export, from the file that the command names. */
export async function encryptionOf(
  flags: Flags,
  option: 'key-file' | 'export-key-file' = 'key-file',
): Promise<Pick<CommonOpenOptions, 'encryption'>> {
  const file = flags.text(option);
  if (file === undefined) return {};
  let bytes: Uint8Array<ArrayBuffer>;
  try {
    bytes = new Uint8Array(readFileSync(file));
  } catch (error) {
    throw new CommandError(Exit.missing, `The file of --${option} cannot be read: ${(error as Error).message}.`);
  }
  if (bytes.length === KEY_BYTES) return { encryption: { key: bytes } };
  const { deriveKey } = await import('../index.ts');
  // An editor ends a file with a line break. Other bytes than UTF-8 would all become the same character.
  const passphrase = utf8Of(bytes, `The file of --${option} is no key: a key is 32 bytes, or a text in UTF-8.`);
  if (passphrase === '') throw wrong(`The file of --${option} is empty.`);
  return { encryption: { key: await deriveKey(passphrase) } };
}

/** Whether there is a store in this folder. */
export async function exists({ root, name }: Folder): Promise<boolean> {
  const { storage } = await storageOf(root);
  return (await storage.list()).includes(name);
}

/** Throws unless there is a store in this folder. */
export async function mustExist(folder: Folder): Promise<void> {
  if (await exists(folder)) return;
  const { path, place } = folder;
  if (statSync(place, { throwIfNoEntry: false })?.isFile()) {
    throw new CommandError(Exit.missing, `${shown(place)} is a file, and a store is a folder.`, 'VARVE_NOT_FOUND');
  }
  const { storage } = await storageOf(path);
  const [inside] = await storage.list();
  const hint =
    inside === undefined
      ? '`varve ls FOLDER` lists the stores of a folder.'
      : `It is a folder of stores: name one of them, such as ${folderIn(path, inside).path}.`;
  throw new CommandError(Exit.missing, `There is no store at ${shown(place)}. ${hint}`, 'VARVE_NOT_FOUND');
}

/** Opens a store in files, runs a function with it, and closes it. */
export async function withFolder<T>(
  folder: Folder,
  { flags, output, signal }: Call,
  { create = false }: { create?: boolean },
  use: (store: Store<Key, unknown>) => Promise<T>,
): Promise<T> {
  if (!create) await mustExist(folder);
  const { storage, open } = await storageOf(folder.root);
  const values = await codecOf(flags);
  const lockTimeout = flags.integer('lock-timeout', 0) ?? LOCK_TIMEOUT;
  const encryption = await encryptionOf(flags);
  const store = await open<Key, unknown>(folder.name, { storage, values, lockTimeout, signal, ...encryption });
  if (store.recovery.state === 'new') output.note(`Made a new store at ${folder.path}.`);
  return closing(store, use);
}

/** Opens a store in files or behind `varve/http`, runs a function with it, and closes it. */
export async function withStore<T>(
  place: string,
  call: Call,
  options: { create?: boolean },
  use: (store: AnyStore) => Promise<T>,
): Promise<T> {
  if (!isUrl(place)) return withFolder(folderOf(place), call, options, use);
  for (const name of ['values', 'key-file']) {
    if (call.flags.has(name)) throw wrong(`--${name} is for stores in files: a server knows that of its store.`);
  }
  return closing(new RemoteStore(place, call.signal), use);
}

/** Runs a function, then closes the store. The error of the function matters more than one of `close`. */
async function closing<S extends { close(): Promise<void> }, T>(store: S, use: (store: S) => Promise<T>): Promise<T> {
  let result: T;
  try {
    result = await use(store);
  } catch (error) {
    await store.close().catch(() => undefined);
    throw error;
  }
  await store.close();
  return result;
}
