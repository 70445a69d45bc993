/**
 * Blobs in values. Their bytes can only be read later, while a value is encoded at once. So an encoder leaves room for the bytes, because
 * a Blob knows its size, and notes where (`ByteSink.blobs`).
 *
 * Invariant: nothing is sent or decoded before the noted Blobs are read into their room.
 */

import { VarveError } from '../errors.ts';
import { ByteSink } from './sink.ts';

/** A sink for values with Blobs that its owner reads. */
export class BlobSink extends ByteSink {
  #reading: Promise<void> | undefined;
  override blobs: NonNullable<ByteSink['blobs']> = [];

  /** Resolves when the Blobs are read, those of earlier calls too; rejects with `VARVE_INVALID_VALUE` if one cannot be read. */
  async read(): Promise<void> {
    if (this.blobs.length > 0) this.#reading = this.#read(this.blobs.splice(0), this.#reading);
    await this.#reading;
  }

  async #read(blobs: NonNullable<ByteSink['blobs']>, before: Promise<void> | undefined): Promise<void> {
    await before;
    for (const { at, blob } of blobs) {
      const bytes = await bytesOf(blob);
      this.bytes.set(bytes, at);
    }
  }
}

/** The bytes of a Blob. Rejects with `VARVE_INVALID_VALUE` if it cannot be read, as a File that was changed or deleted. */
export async function bytesOf(blob: Blob): Promise<Uint8Array> {
  let cause: unknown;
  try {
    const bytes = new Uint8Array(await Blob.prototype.arrayBuffer.call(blob));
    if (bytes.length === blob.size) return bytes;
  } catch (error) {
    cause = error;
  }
  const message = 'The value cannot be stored: the bytes of a Blob or File in it cannot be read. Was the file changed?';
  throw new VarveError('VARVE_INVALID_VALUE', message, { cause });
}
