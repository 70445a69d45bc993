/** Exports as bytes, and streams that arrive in pieces. */

import { open } from '../../../js/src/index.ts';
import type { OpenOptions } from '../../../js/src/store/open-options.ts';
import type { Store } from '../../../js/src/store/store.ts';
import type { Key } from '../../../js/src/types.ts';
import { wasm } from './engine.ts';
import { KeptDevices } from './kept-devices.ts';

/** A new store over the real engine. */
export function newStore(options: OpenOptions<Key, unknown> = {}): Promise<Store<Key, unknown>> {
  return open('portable', { storage: new KeptDevices(), wasm, memoryBytes: 2 ** 20, ...options });
}

/** All bytes of a stream. */
export async function bytesOf(stream: ReadableStream<Uint8Array>): Promise<Uint8Array<ArrayBuffer>> {
  return new Uint8Array(await new Response(stream as ReadableStream<Uint8Array<ArrayBuffer>>).arrayBuffer());
}

/** Bytes in chunks of a size. */
export async function* chunks(bytes: Uint8Array, size: number): AsyncGenerator<Uint8Array, void, undefined> {
  for (let at = 0; at < bytes.length; at += size) yield bytes.slice(at, at + size);
}

/** The results of every read of a store, except for sequences. */
export async function contents(db: Store<Key, unknown>): Promise<unknown[]> {
  const all: unknown[] = [];
  for await (const [key, value] of db) {
    const expires = (await db.getEntry(key))?.expiresAt;
    all.push([key, value, expires]);
  }
  return all;
}

/** Where the blocks of an export begin: first the end of the header, last the end of the export. */
export function boundaries(bytes: Uint8Array): number[] {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
  const found = [72];
  for (let at = 72; at < bytes.length; found.push(at)) at += 16 + view.getUint32(at, true) + 32;
  return found;
}
