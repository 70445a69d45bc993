/**
 * The page's end of a scan in the engine: asks for batches, at most one ahead, and closes the scan.
 *
 * Invariant: the scan is opened when the cursor is made, so its sequence is that moment's. The engine's side is closed
 * exactly once: by its last batch, or by `close` as soon as it is known that the batch under way is not the last.
 *
 * The first batch is small, so that a short scan costs one small round trip; the next ones grow, and are asked for while
 * the one before is consumed.
 */

import type { VarveError } from '../errors.ts';
import type { ScanBatch, ScanRequest } from '../protocol/scan.ts';
import type { Client } from '../worker/client.ts';
import { type ScanOperations, scan_close } from './operations.ts';

/** Sizes of batches, in bytes. */
export const BATCH_BYTES_MIN = 16 * 1024;
export const BATCH_BYTES_MAX = 256 * 1024;
const BATCH_GROWTH = 4;
/** What an entry takes where nothing is known, for the first batch of a limited scan. */
const ENTRY_BYTES_GUESS = 128;

/** The size of the first batch: enough for what a limit lets through. */
export function firstBatchBytes(limit: number | undefined): number {
  return Math.min(BATCH_BYTES_MAX, Math.max(BATCH_BYTES_MIN, (limit ?? 0) * ENTRY_BYTES_GUESS));
}

/** Where an iterator has its batches from. */
export interface BatchSource {
  /** Why it was ended from outside, if it was. */
  readonly error: VarveError | undefined;
  /** The next batch, or undefined after the last one. Not to be called again before it settled. */
  take(): Promise<ScanBatch | undefined>;
  /** Ends it. */
  close(): void;
  /** Ends it with an error, also for who waits for a batch. */
  fail(error: VarveError): void;
}

/** A scan in the engine. */
export class Cursor implements BatchSource {
  readonly #client: Client;
  readonly #operations: ScanOperations;
  /** The batch under way; undefined when the scan is over. */
  #pending: Promise<ScanBatch> | undefined;
  readonly #number: number;
  /** The engine has it open, as the last batch told. */
  #is_open = false;
  #batch_bytes: number;
  #is_closed = false;
  #error: VarveError | undefined;
  #interrupt: ((error: VarveError) => void) | undefined;

  constructor(client: Client, operations: ScanOperations, request: ScanRequest) {
    this.#client = client;
    this.#operations = operations;
    this.#batch_bytes = request.batch_bytes;
    this.#number = client.numbers.ofScan();
    this.#expect(client.submit(operations.open, this.#number, request, 0));
  }

  /** Why the scan was ended from outside, if it was. */
  get error(): VarveError | undefined {
    return this.#error;
  }

  /** The next batch, or undefined after the last one. Not to be called again before it settled. */
  take(): Promise<ScanBatch | undefined> {
    if (this.#error !== undefined) return Promise.reject(this.#error);
    const pending = this.#pending;
    if (pending === undefined || this.#is_closed) return Promise.resolve(undefined);
    return new Promise((resolve, reject) => {
      this.#interrupt = reject;
      pending.then((batch) => {
        this.#prefetch(batch);
        resolve(batch);
      }, reject);
    });
  }

  /** Ends the scan; the engine lets go of it. */
  close(): void {
    if (this.#is_closed) return;
    this.#is_closed = true;
    const pending = this.#pending;
    this.#pending = undefined;
    pending?.then(
      (batch) => this.#release(batch.cursor !== 0),
      () => this.#release(this.#is_open),
    );
  }

  /** Ends the scan with an error, also for who waits for a batch. */
  fail(error: VarveError): void {
    if (this.#is_closed) return;
    this.close();
    this.#error = error;
    this.#interrupt?.(error);
  }

  #expect(batch: Promise<ScanBatch>): void {
    this.#pending = batch;
    // Who consumes it hears of the failure; an iterator that nobody consumes fails silently.
    batch.catch(ignore);
  }

  #prefetch(batch: ScanBatch): void {
    // Closed meanwhile: `close` saw the batch as pending and releases it.
    if (this.#is_closed) return;
    this.#pending = undefined;
    this.#is_open = batch.cursor !== 0;
    if (!this.#is_open) return;
    this.#batch_bytes = Math.min(BATCH_BYTES_MAX, this.#batch_bytes * BATCH_GROWTH);
    this.#expect(this.#client.submit(this.#operations.next, this.#number, this.#batch_bytes, 0));
  }

  #release(is_open: boolean): void {
    if (is_open) this.#client.submit(scan_close, this.#number, undefined, 0).catch(ignore);
  }
}

function ignore(): void {}
