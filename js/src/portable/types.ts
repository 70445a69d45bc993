/** What exports and imports are told, and what they tell. Types only. */

import type { ByteRange } from '../codec/range.ts';
import type { Durability, KeyRange, WaitOptions } from '../types.ts';

/** How far an export or an import is. */
export interface PortableProgress {
  /** Entries so far. */
  readonly entries: number;
  /** Bytes of the stream so far, up to the end of a whole block. */
  readonly bytes: number;
}

/** Options of `export`: the whole store, or a range of its keys. */
export interface ExportOptions<K> extends KeyRange<K>, WaitOptions {
  /** Called after each block. */
  onProgress?: ((progress: PortableProgress) => void) | undefined;
}

/** The options of an export as they were at its call, its range in bytes. */
export interface ExportWanted extends Pick<ExportOptions<never>, 'signal' | 'onProgress'> {
  readonly range: ByteRange;
}

/** The bytes of an export: a `ReadableStream` (a file's, a response's body), or any async iterable of chunks (a stream of Node's). */
export type ExportedBytes = ReadableStream<Uint8Array> | AsyncIterable<Uint8Array>;

/** An export to import: its bytes, or a function that gives them from an offset on, so that an import that goes on need not read them all. */
export type ImportSource = ExportedBytes | ((offset: number) => ExportedBytes | PromiseLike<ExportedBytes>);

/** Options of `import`. */
export interface ImportOptions extends WaitOptions {
  /** Import over what the store holds; without it a store that is not empty is refused. Default false. */
  merge?: boolean | undefined;
  /** Level of each block; the whole is `strict` when `import` resolves. Default: the store's `durability`. */
  durability?: Durability | undefined;
  /** Called when a block has been applied. */
  onProgress?: ((progress: PortableProgress) => void) | undefined;
}

/** What `import` resolves with. */
export interface ImportReport {
  /** Entries of the export. */
  readonly entries: number;
  /** Bytes of the export. */
  readonly bytes: number;
  /** Bytes that an interrupted import before this one had applied; 0 when it began anew. */
  readonly resumedAt: number;
}
