/** The options and results of exports and imports. Types only. */

import type { EncryptionOptions } from '../encryption/types.ts';
import type { Durability, KeyRange, WaitOptions } from '../types.ts';

/** The progress of an export or an import. */
export interface PortableProgress {
  /** Entries so far. */
  readonly entries: number;
  /** Bytes of the stream so far, up to the end of a whole block. */
  readonly bytes: number;
}

/** Options of `export`: the whole store, or a range of its keys. */
export interface ExportOptions<K> extends KeyRange<K>, WaitOptions {
  /**
   * Encrypts the export with AES-256-GCM; it can be imported with the same key only. The key need not be that of the store. Default: the
   * export is not encrypted, even if the store is.
   */
  encryption?: EncryptionOptions | undefined;
  /** Called after each block. */
  onProgress?: ((progress: PortableProgress) => void) | undefined;
}

/** The bytes of an export: a `ReadableStream` (of a file, a response body), or any async iterable of chunks (a Node stream). */
export type ExportedBytes = ReadableStream<Uint8Array> | AsyncIterable<Uint8Array>;

/**
 * An export to import: a Blob (a File is one), its bytes, or a function that returns the bytes from an offset on. With a Blob or a function,
 * an import that continues after an interruption does not read all bytes again.
 */
export type ImportSource = Blob | ExportedBytes | ((offset: number) => ExportedBytes | PromiseLike<ExportedBytes>);

/** Options of `import`. */
export interface ImportOptions extends WaitOptions {
  /** Imports into a store that has entries already. Without this, a store that is not empty gives `VARVE_EXISTS`. Default false. */
  merge?: boolean | undefined;
  /**
   * The key of an encrypted export. An encrypted export without it, one with another key, and a plain export with one reject with
   * `VARVE_KEY`.
   */
  encryption?: EncryptionOptions | undefined;
  /** Durability of each block. When `import` resolves, everything is `strict`. Default: the store's `durability`. */
  durability?: Durability | undefined;
  /** Called after each applied block. */
  onProgress?: ((progress: PortableProgress) => void) | undefined;
}

/** The result of `import`. */
export interface ImportReport {
  /** Entries of the export. */
  readonly entries: number;
  /** Bytes of the export. */
  readonly bytes: number;
  /** Bytes that an earlier, interrupted import had applied; 0 if this import began at the start. */
  readonly resumedAt: number;
}
