/**
 * The page's end of a scan in the engine: asks for batches, at most one ahead, and closes the scan.
 *
 * Invariant: the scan is opened when the cursor is made, so its read point is the sequence at that time. The engine's side is
 * closed exactly once: by its last batch, or by `close` as soon as it is known that the requested batch is not the last.
 *
 * The first batch is small, so that a short scan costs one small round trip. The next is requested when it is consumed, so a scan that
 * is left early reads nothing in vain. From then on batches grow, and each is requested while the one before is consumed. RocksDB's
 * iterators read ahead likewise: from the third read of a file on, 8 KiB and then twice as much, up to 256 KiB
 * (https://github.com/facebook/rocksdb/pull/3282).
 */

import type { Client } from '../client/client.ts';
import type { Restorable } from '../client/numbers.ts';
import { type ScanOperations, scanClose, snapshotRestore } from '../client/operations.ts';
import type { ScanBatch, ScanRequest } from '../protocol/scan.ts';
import { ScanProgress } from './scan-progress.ts';
import { levelOfSnapshot, releaseSnapshot } from './snapshot-handle.ts';

/** Sizes of batches, in bytes. */
const BATCH_BYTES_MIN = 16 * 1024;
const BATCH_BYTES_MAX = 256 * 1024;
const BATCH_GROWTH = 2;
/** Assumed size of an entry when nothing is known, for the first batch of a limited scan. */
const ENTRY_BYTES_GUESS = 128;

/** The size of the first batch: enough for the entries that a limit allows. */
export function firstBatchBytes(limit: number | undefined): number {
  return Math.min(BATCH_BYTES_MAX, Math.max(BATCH_BYTES_MIN, (limit ?? 0) * ENTRY_BYTES_GUESS));
}

/** The source of an iterator's batches. */
export interface BatchSource {
  /** Why it was ended from outside, if it was. */
  readonly error: unknown;
  /** The next batch, or undefined after the last one. Do not call it again before its promise is resolved. */
  take(): Promise<ScanBatch | undefined>;
  /** Ends it. */
  close(): void;
  /** Ends it with an error; a caller that waits for a batch gets the error too. */
  fail(error: unknown): void;
}

/** A whole scan that need not be asked for. */
export class KeptBatch implements BatchSource {
  error: unknown;
  #batch: ScanBatch | undefined;

  constructor(batch: ScanBatch) {
    this.#batch = batch;
  }

  async take(): Promise<ScanBatch | undefined> {
    const batch = this.#batch;
    this.#batch = undefined;
    if (this.error !== undefined) throw this.error;
    return batch;
  }

  close(): void {
    this.#batch = undefined;
  }

  fail(error: unknown): void {
    this.error = error;
  }
}

/** A scan in the engine. */
export class Cursor implements BatchSource, Restorable {
  readonly #client: Client;
  readonly #operations: ScanOperations;
  #progress: ScanProgress | undefined;
  /** The requested batch, or the one that arrived and was not taken; undefined when the scan is over. */
  #pending: Promise<ScanBatch> | undefined;
  #hasArrived = false;
  /** The batch after it, if it is requested already. */
  #next: Promise<ScanBatch> | undefined;
  #number: number;
  /** Whether the engine has the scan open, according to the last batch. */
  #isOpen = false;
  #batchBytes: number;
  /** Whether its first batch was taken: then batches are requested ahead. */
  #isLong = false;
  #isClosed = false;
  #error: unknown;
  #interrupt: ((error: unknown) => void) | undefined;

  /** @param taken Its snapshot, if that is still being taken. If it rejects, the scan fails with the same error. */
  constructor(client: Client, operations: ScanOperations, request: ScanRequest, taken?: Promise<unknown>) {
    this.#client = client;
    this.#operations = operations;
    this.#batchBytes = request.batchBytes;
    this.#number = client.numbers.ofScan();
    const opened = client.submit(operations.open, this.#number, request, 0).then((batch) => {
      this.#progress = new ScanProgress(request, batch.readPoint);
      return batch;
    });
    const number = this.#number;
    // It may still be opened later: by a leader that was frozen and wakes up after the call was given up.
    opened.catch(() => client.submit(scanClose, number, undefined, 0).catch(ignore));
    this.#expect(taken === undefined ? opened : taken.then(() => opened));
  }

  /** Why the scan was ended from outside, if it was. */
  get error(): unknown {
    return this.#error;
  }

  /** The next batch, or undefined after the last one. Do not call it again before its promise is resolved. */
  take(): Promise<ScanBatch | undefined> {
    if (this.#error !== undefined) return Promise.reject(this.#error);
    if (this.#pending === undefined) this.#request();
    if (this.#pending === undefined) return Promise.resolve(undefined);
    return new Promise((resolve, reject) => {
      this.#interrupt = reject;
      this.#wait(resolve, reject);
    });
  }

  /** Ends the scan; the engine closes it. */
  close(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#client.numbers.open.delete(this);
    const pending = Promise.resolve(this.#next ?? this.#pending);
    this.#pending = undefined;
    pending.catch(ignore).then(() => {
      if (this.#isOpen) this.#client.submit(scanClose, this.#number, undefined, 0).catch(ignore);
    });
  }

  /** Ends the scan with an error; a caller that waits for a batch gets the error too. */
  fail(error: unknown): void {
    if (this.#isClosed) return;
    this.close();
    this.#error = error;
    this.#interrupt?.(error);
  }

  /** Continues with another leader, after the entries that have arrived; fails with `VARVE_RETRY` if that is impossible. */
  restore(): void {
    const client = this.#client;
    const { numbers } = client;
    const progress = this.#progress;
    if (this.#isClosed || progress === undefined) return;
    const number = numbers.ofScan();
    this.#number = number;
    const snapshot = numbers.ofSnapshot();
    const taken = client.submit(snapshotRestore, undefined, progress.readPoint, levelOfSnapshot(snapshot));
    const opened = client.submit(this.#operations.open, this.#number, progress.rest(snapshot, this.#batchBytes), 0);
    void releaseSnapshot({ client, number: snapshot });
    // Two leaders may have ended in a row: the third also opens what the first was asked to open.
    opened.then(() => {
      if (this.#number !== number) client.submit(scanClose, number, undefined, 0).catch(ignore);
    }, ignore);
    // The reason why the snapshot is lost is more useful than an error that it does not exist.
    const batch = taken.then(() => opened);
    if (this.#hasArrived) {
      this.#next = batch;
      batch.catch(ignore);
    } else this.#expect(batch);
  }

  /** Resolves with the requested batch, which another one may replace. */
  #wait(resolve: (batch: ScanBatch) => void, reject: (error: unknown) => void): void {
    const pending = this.#pending;
    const again = (): boolean => {
      if (this.#pending === pending || this.#isClosed) return false;
      this.#wait(resolve, reject);
      return true;
    };
    pending?.then(
      (batch) => {
        if (again()) return;
        this.#taken();
        resolve(batch);
      },
      (error) => {
        if (!again()) reject(error);
      },
    );
  }

  #expect(submitted: Promise<ScanBatch>): void {
    const batch: Promise<ScanBatch> = submitted.then((arrived) => {
      if (this.#pending === batch) return this.#arrive(arrived);
      if (this.#isClosed) this.#isOpen = arrived.cursor !== 0;
      return arrived;
    });
    this.#pending = batch;
    this.#hasArrived = false;
    // The consumer gets the failure; an iterator that nobody consumes fails silently.
    batch.catch(ignore);
  }

  #arrive(batch: ScanBatch): ScanBatch | Promise<ScanBatch> {
    this.#isOpen = batch.cursor !== 0;
    const fresh = this.#progress?.pass(batch) ?? batch;
    if (fresh.count === 0 && batch.count > 0 && this.#isOpen && !this.#isClosed) {
      return this.#client
        .submit(this.#operations.next, this.#number, this.#batchBytes, 0)
        .then((next) => this.#arrive(next));
    }
    this.#hasArrived = true;
    if (this.#isOpen && !this.#isClosed) this.#client.numbers.open.add(this);
    else this.#client.numbers.open.delete(this);
    return fresh;
  }

  #taken(): void {
    // Closed meanwhile: `close` saw the batch as pending and releases it.
    if (this.#isClosed) return;
    this.#pending = undefined;
    if (this.#isLong) this.#request();
    this.#isLong = true;
  }

  /** Requests the next batch, unless the scan is over. */
  #request(): void {
    const next = this.#next;
    this.#next = undefined;
    if (next !== undefined) return this.#expect(next);
    if (!this.#isOpen || this.#isClosed) return;
    this.#batchBytes = Math.min(BATCH_BYTES_MAX, this.#batchBytes * BATCH_GROWTH);
    this.#expect(this.#client.submit(this.#operations.next, this.#number, this.#batchBytes, 0));
  }
}

function ignore(): void {}
