/**
 * An origin private file system in memory, for tests in Node. It has directories, files, and synchronous handles that exclude one another.
 * Its quota is reported by a short count or by an exception.
 *
 * Invariant: a file has at most one open handle. Bytes that were written and not flushed are gone after `losePower`.
 */

import { vi } from 'vitest';

interface FakeFile {
  /** The start of a larger buffer: files grow in small steps. */
  bytes: Uint8Array;
  /** The changes that were not flushed, the oldest first: what a power cut undoes. */
  readonly changes: Change[];
  handle: FakeHandle | undefined;
}

/** Bytes that were replaced or cut, where they were, and the size of the file before. */
interface Change {
  readonly size: number;
  readonly at: number;
  readonly bytes: Uint8Array;
}

/** How a full origin is reported. */
export type FullStyle = 'throw' | 'short';

/** The files of one origin. */
export class FakeOpfs {
  /** Bytes over all files. */
  quota = Number.POSITIVE_INFINITY;
  fullStyle: FullStyle = 'throw';
  /** Thrown by `getDirectory` instead of answering. */
  refusal: DOMException | undefined;
  readonly root = new FakeDirectory(this, '');

  readonly storage = {
    getDirectory: async (): Promise<FakeDirectory> => {
      if (this.refusal !== undefined) throw this.refusal;
      return this.root;
    },
  };

  /** Bytes of all files. */
  used(directory: FakeDirectory = this.root): number {
    let sum = 0;
    for (const file of directory.files.values()) sum += file.bytes.length;
    for (const child of directory.directories.values()) sum += this.used(child);
    return sum;
  }

  /** Closes every handle and undoes the writes that were not flushed. */
  losePower(directory: FakeDirectory = this.root): void {
    for (const file of directory.files.values()) {
      file.handle = undefined;
      for (const { size, at, bytes } of file.changes.splice(0).reverse()) {
        resize(file, size);
        file.bytes.set(bytes, at);
      }
    }
    for (const child of directory.directories.values()) this.losePower(child);
  }

  /** Closes every handle, as the death of a worker does; bytes stay. */
  killWorkers(directory: FakeDirectory = this.root): void {
    for (const file of directory.files.values()) file.handle = undefined;
    for (const child of directory.directories.values()) this.killWorkers(child);
  }
}

/** A directory. */
export class FakeDirectory {
  readonly kind = 'directory';
  readonly files = new Map<string, FakeFile>();
  readonly directories = new Map<string, FakeDirectory>();
  readonly #opfs: FakeOpfs;
  readonly name: string;

  constructor(opfs: FakeOpfs, name: string) {
    this.#opfs = opfs;
    this.name = name;
  }

  async getDirectoryHandle(name: string, options: { create?: boolean } = {}): Promise<FakeDirectory> {
    let found = this.directories.get(name);
    if (found === undefined) {
      if (options.create !== true) throw new DOMException('There is no such directory.', 'NotFoundError');
      found = new FakeDirectory(this.#opfs, name);
      this.directories.set(name, found);
    }
    return found;
  }

  async getFileHandle(name: string, options: { create?: boolean } = {}): Promise<FakeFileHandle> {
    let found = this.files.get(name);
    if (found === undefined) {
      if (options.create !== true) throw new DOMException('There is no such file.', 'NotFoundError');
      found = { bytes: new Uint8Array(0), changes: [], handle: undefined };
      this.files.set(name, found);
    }
    return new FakeFileHandle(this.#opfs, found, name);
  }

  async removeEntry(name: string): Promise<void> {
    const directory = this.directories.get(name);
    if (directory !== undefined) {
      for (const file of directory.files.values()) {
        if (file.handle !== undefined) throw new DOMException('A file is open.', 'NoModificationAllowedError');
      }
    }
    if (!this.directories.delete(name) && !this.files.delete(name)) {
      throw new DOMException('There is no such entry.', 'NotFoundError');
    }
  }

  async *keys(): AsyncIterableIterator<string> {
    yield* [...this.directories.keys(), ...this.files.keys()];
  }

  async *entries(): AsyncIterableIterator<[string, { kind: string }]> {
    for (const [name, directory] of this.directories) yield [name, directory];
    for (const name of this.files.keys()) yield [name, { kind: 'file' }];
  }

  async *values(): AsyncIterableIterator<FakeFileHandle> {
    for (const [name, file] of this.files) yield new FakeFileHandle(this.#opfs, file, name);
  }
}

/** A file that can be opened. */
export class FakeFileHandle {
  readonly kind = 'file';
  readonly name: string;
  readonly #opfs: FakeOpfs;
  readonly #file: FakeFile;

  constructor(opfs: FakeOpfs, file: FakeFile, name: string) {
    this.name = name;
    this.#opfs = opfs;
    this.#file = file;
  }

  async getFile(): Promise<{ size: number }> {
    return { size: this.#file.bytes.length };
  }

  async createSyncAccessHandle(): Promise<FakeHandle> {
    if (this.#file.handle !== undefined) throw new DOMException('It is open.', 'NoModificationAllowedError');
    this.#file.handle = new FakeHandle(this.#opfs, this.#file);
    return this.#file.handle;
  }
}

/** A synchronous access handle. */
export class FakeHandle {
  readonly #opfs: FakeOpfs;
  readonly #file: FakeFile;

  constructor(opfs: FakeOpfs, file: FakeFile) {
    this.#opfs = opfs;
    this.#file = file;
  }

  read(into: Uint8Array, { at }: { at: number }): number {
    const { bytes } = this.#open();
    const count = Math.max(0, Math.min(into.length, bytes.length - at));
    into.set(bytes.subarray(at, at + count));
    return count;
  }

  write(from: Uint8Array, { at }: { at: number }): number {
    const file = this.#open();
    const grownBy = Math.max(0, at + from.length - file.bytes.length);
    const over = this.#opfs.used() + grownBy - this.#opfs.quota;
    let count = from.length;
    if (grownBy > 0 && over > 0) {
      if (this.#opfs.fullStyle === 'throw') throw new DOMException('No room.', 'QuotaExceededError');
      count = Math.max(0, count - over);
    }
    note(file, at, at + count);
    if (at + count > file.bytes.length) resize(file, at + count);
    file.bytes.set(from.subarray(0, count), at);
    return count;
  }

  truncate(size: number): void {
    const file = this.#open();
    note(file, size, file.bytes.length);
    resize(file, size);
  }

  getSize(): number {
    return this.#open().bytes.length;
  }

  flush(): void {
    this.#open().changes.length = 0;
  }

  close(): void {
    if (this.#file.handle === this) this.#file.handle = undefined;
  }

  #open(): FakeFile {
    if (this.#file.handle !== this) throw new DOMException('The handle is closed.', 'InvalidStateError');
    return this.#file;
  }
}

/** Notes that the bytes of a range will be replaced or cut. */
function note({ bytes, changes }: FakeFile, from: number, to: number): void {
  changes.push({ size: bytes.length, at: Math.min(from, bytes.length), bytes: bytes.slice(from, to) });
}

function resize(file: FakeFile, size: number): void {
  const { bytes } = file;
  let { buffer } = bytes;
  if (size > buffer.byteLength) {
    buffer = new ArrayBuffer(2 * size);
    new Uint8Array(buffer).set(bytes);
  }
  file.bytes = new Uint8Array(buffer, 0, size);
  // Shorter once, the buffer may have old bytes there.
  file.bytes.fill(0, bytes.length);
}

/** A request for a lock, and the function that grants it. */
interface Asking {
  readonly name: string;
  readonly mode: 'exclusive' | 'shared';
  readonly grant: () => void;
}

/** Web Locks in memory: first come first served, shared ones together. */
export class FakeLocks {
  readonly #held: { readonly name: string; readonly mode: 'exclusive' | 'shared' }[] = [];
  readonly #waiting: Asking[] = [];

  async query(): Promise<{ held: { name: string }[]; pending: { name: string }[] }> {
    return { held: this.#held.map(({ name }) => ({ name })), pending: this.#waiting.map(({ name }) => ({ name })) };
  }

  async request(
    name: string,
    options: { signal?: AbortSignal; ifAvailable?: boolean; mode?: 'exclusive' | 'shared' },
    callback: (lock: { name: string } | null) => unknown,
  ): Promise<unknown> {
    const { signal, ifAvailable = false, mode = 'exclusive' } = options;
    signal?.throwIfAborted();
    if (ifAvailable && !(this.#isFree(name, mode) && !this.#waiting.some((one) => one.name === name))) {
      return callback(null);
    }
    await new Promise<void>((resolve, reject) => {
      const asking: Asking = { name, mode, grant: resolve };
      this.#waiting.push(asking);
      signal?.addEventListener(
        'abort',
        () => {
          const at = this.#waiting.indexOf(asking);
          if (at < 0) return;
          this.#waiting.splice(at, 1);
          reject(signal.reason);
          this.#serve();
        },
        { once: true },
      );
      this.#serve();
    });
    const held = this.#held.find((one) => one.name === name && one.mode === mode && !this.#used.has(one));
    if (held !== undefined) this.#used.add(held);
    try {
      return await callback({ name });
    } finally {
      if (held !== undefined) this.#held.splice(this.#held.indexOf(held), 1);
      this.#serve();
    }
  }

  readonly #used = new WeakSet<object>();

  #isFree(name: string, mode: 'exclusive' | 'shared'): boolean {
    return !this.#held.some((one) => one.name === name && (mode === 'exclusive' || one.mode === 'exclusive'));
  }

  /** Grants the requests that can be granted, in order. */
  #serve(): void {
    const passed = new Set<string>();
    for (const asking of [...this.#waiting]) {
      const { name, mode } = asking;
      if (!passed.has(name) && this.#isFree(name, mode)) {
        this.#waiting.splice(this.#waiting.indexOf(asking), 1);
        this.#held.push({ name, mode });
        asking.grant();
      } else passed.add(name);
    }
  }
}

/** Puts an OPFS and its locks in the place of the page's, until the globals are put back. */
export function stubOpfs(opfs: FakeOpfs = new FakeOpfs(), locks: FakeLocks = new FakeLocks()): FakeOpfs {
  vi.stubGlobal('FileSystemFileHandle', FakeFileHandle);
  vi.stubGlobal('navigator', { storage: opfs.storage, locks });
  return opfs;
}
