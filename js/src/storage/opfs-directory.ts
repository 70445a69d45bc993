/**
 * Where stores are in the origin private file system.
 *
 *     varve/<store name, escaped>/slot-0000, slot-0001, ...
 *
 * Invariant: a name maps to one directory and back; nothing else of the origin is touched. A handle that another worker
 * is still closing is waited for, never stolen.
 */

import { VarveError } from '../errors.ts';
import { untilAborted } from '../runtime/until-aborted.ts';
import { delay } from '../runtime/wait.ts';
import { escapeName, slotName, slotNumber } from './names.ts';
import { Unavailable } from './unavailable.ts';

const ROOT = 'varve';
const RETRY_MS_MAX = 32;

/** The origin private file system is unavailable here; the message gives the reason. */
export class OpfsUnavailable extends Unavailable {
  constructor(message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = 'OpfsUnavailable';
  }
}

/** The directory over all stores; throws `OpfsUnavailable` where the browser has none or refuses it. */
export async function rootDirectory(options: { create: boolean }): Promise<FileSystemDirectoryHandle | undefined> {
  return existing(await originDirectory(), ROOT, options.create);
}

/** The root directory of this origin; throws `OpfsUnavailable` where the browser has none or refuses it. */
export async function originDirectory(): Promise<FileSystemDirectoryHandle> {
  const storage = globalThis.navigator?.storage;
  if (storage === undefined || typeof storage.getDirectory !== 'function') {
    throw new OpfsUnavailable('This context has no origin private file system.');
  }
  try {
    return await storage.getDirectory();
  } catch (cause) {
    throw new OpfsUnavailable(`The browser refused the origin private file system (${nameOf(cause)}).`, { cause });
  }
}

/** The directory of one store; undefined where it does not exist and `create` is false. */
export async function storeDirectory(
  name: string,
  options: { create: boolean },
): Promise<FileSystemDirectoryHandle | undefined> {
  const directory = escapeName(name);
  const root = await rootDirectory(options);
  return root === undefined ? undefined : existing(root, directory, options.create);
}

/** The files of a store's slots, by their numbers. */
export async function slotFiles(directory: FileSystemDirectoryHandle): Promise<(FileSystemFileHandle | undefined)[]> {
  const files: (FileSystemFileHandle | undefined)[] = [];
  for await (const handle of directory.values()) {
    const slot = slotNumber(handle.name);
    if (slot !== undefined && handle.kind === 'file') files[slot] = handle as FileSystemFileHandle;
  }
  return files;
}

/** Removes the directory of a store that was never written, that is, whose files are all empty. */
export async function removeUnwritten(name: string): Promise<void> {
  const root = await rootDirectory({ create: false });
  const directory = root && (await existing(root, escapeName(name), false));
  for await (const file of directory?.keys() ?? []) {
    const handle = await directory?.getFileHandle(file);
    if ((await handle?.getFile())?.size !== 0) return;
  }
  await root?.removeEntry(escapeName(name), { recursive: true });
}

/** How a slot is opened. */
interface SlotOptions {
  readonly create: boolean;
  /** Milliseconds to wait for a worker that is closing it. */
  readonly waitMs: number;
  readonly signal?: AbortSignal | undefined;
  /** Its file, where that is known already: asking for it costs as much as opening it. */
  readonly file?: FileSystemFileHandle | undefined;
}

/** Opens a slot for exclusive use, and retries while another worker is closing it. */
export async function openSlot(
  directory: FileSystemDirectoryHandle,
  slot: number,
  options: SlotOptions,
): Promise<FileSystemSyncAccessHandle> {
  const { create } = options;
  const file = options.file ?? (await directory.getFileHandle(slotName(slot), { create }));
  const deadline = performance.now() + options.waitMs;
  for (let pause = 1; ; pause = Math.min(RETRY_MS_MAX, pause * 2)) {
    options.signal?.throwIfAborted();
    try {
      // In Chromium 156 the promise stays pending if the file handle is collected meanwhile. The next round uses `file`, so it stays alive.
      return await file.createSyncAccessHandle();
    } catch (cause) {
      if (nameOf(cause) !== 'NoModificationAllowedError') throw cause;
      if (performance.now() >= deadline) {
        throw new VarveError(
          'VARVE_LOCKED',
          'Another tab or worker still has the files of this store open. Close it there, or wait longer.',
          { cause },
        );
      }
      await untilAborted(delay(pause), options.signal);
    }
  }
}

/** The name of a thrown value, such as `QuotaExceededError`. */
export function nameOf(error: unknown): string {
  return error instanceof Error || error instanceof DOMException ? error.name : typeof error;
}

async function existing(
  parent: FileSystemDirectoryHandle,
  name: string,
  create: boolean,
): Promise<FileSystemDirectoryHandle | undefined> {
  try {
    return await parent.getDirectoryHandle(name, { create });
  } catch (error) {
    if (!create && nameOf(error) === 'NotFoundError') return undefined;
    throw error;
  }
}
