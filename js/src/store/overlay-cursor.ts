/**
 * The batches of a transaction's scan: the snapshot's batches with the transaction's own writes in them.
 *
 * Invariant: the cursor in the engine is closed as soon as the scan is over, also when its limit ends it.
 */

import type { BlobSink } from '../codec/blobs.ts';
import type { ScanBatch } from '../protocol/scan.ts';
import { NOTHING_THERE, type OverlayScan } from '../transaction/overlay-scan.ts';
import type { BatchSource, Cursor } from './cursor.ts';

/** A running scan of a transaction. */
export class OverlayCursor implements BatchSource {
  readonly #scan: OverlayScan;
  /** The snapshot's scan; undefined if the snapshot is not read. */
  readonly #cursor: Cursor | undefined;
  readonly #blobs: BlobSink;
  #isOver = false;
  #error: unknown;

  /** @param blobs The sink of the own writes. */
  constructor(scan: OverlayScan, cursor: Cursor | undefined, blobs: BlobSink) {
    this.#scan = scan;
    this.#cursor = cursor;
    this.#blobs = blobs;
  }

  get error(): unknown {
    return this.#error;
  }

  async take(): Promise<ScanBatch | undefined> {
    if (this.#error !== undefined) throw this.#error;
    while (!this.#isOver) {
      const stored = (await this.#cursor?.take()) ?? NOTHING_THERE;
      await this.#blobs.read();
      const batch = this.#scan.add(stored);
      if (batch.cursor === 0) this.close();
      if (batch.count > 0) return batch;
    }
    this.#scan.finish();
    return undefined;
  }

  close(): void {
    this.#isOver = true;
    this.#scan.close();
    this.#cursor?.close();
  }

  fail(error: unknown): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#error = error;
    this.#cursor?.fail(error);
  }
}
