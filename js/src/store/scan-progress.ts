/**
 * How far a scan has come, so that it can continue with another leader as if nothing had happened.
 *
 * Invariant: the scan that `rest` asks for, in the snapshot that the scan sees, continues right after the last entry that
 * passed. A scan with keys begins there; a scan without keys begins at the start, and skips the entries that passed before.
 */

import type { ReadPoint } from '../protocol/frame-reader.ts';
import type { ScanBatch, ScanRequest } from '../protocol/scan.ts';

/** The progress of one scan. */
export class ScanProgress {
  /** The read point of the scan. */
  readonly readPoint: ReadPoint;
  readonly #request: ScanRequest;
  /** Entries that passed. */
  #count = 0;
  #lastKey: Uint8Array | undefined;
  /** Entries to come that passed already and must be skipped. */
  #skip = 0;

  constructor(request: ScanRequest, readPoint: ReadPoint) {
    this.#request = request;
    this.readPoint = readPoint;
  }

  /** Records a batch that arrived; returns the new part of it. */
  pass(batch: ScanBatch): ScanBatch {
    const skipped = Math.min(this.#skip, batch.count);
    this.#skip -= skipped;
    const fresh = skipped === 0 ? batch : withoutFirst(batch, skipped);
    this.#count += fresh.count;
    const { keys, keyEnds } = fresh;
    if (keyEnds.length > 0) this.#lastKey = keys.slice(keyEnds[keyEnds.length - 2] ?? 0, keyEnds.at(-1));
    return fresh;
  }

  /** The scan of the entries that have not passed. */
  rest(snapshot: number, batchBytes: number): ScanRequest {
    const request = { ...this.#request, snapshot, batchBytes };
    const { range, reverse, limit } = request;
    const key = this.#lastKey;
    if (!request.keys || key === undefined) {
      this.#skip = this.#count;
      return request;
    }
    const behind = { key, exclusive: true };
    return {
      ...request,
      range: reverse ? { ...range, upper: behind } : { ...range, lower: behind },
      limit: limit === undefined ? undefined : limit - this.#count,
    };
  }
}

/** A batch without keys, without its first entries. */
function withoutFirst(batch: ScanBatch, skipped: number): ScanBatch {
  const { valueEnds, values } = batch;
  const start = valueEnds[skipped - 1] ?? 0;
  return {
    ...batch,
    count: batch.count - skipped,
    values: values.subarray(start),
    valueEnds: valueEnds.slice(skipped).map((end) => end - start),
  };
}
