/** The methods that the iterators of a store share. */

import { asyncDispose } from '../runtime/dispose.ts';
import type { StoreIterator } from '../types.ts';

/** The result of a step after the last item. */
export const DONE: IteratorReturnResult<undefined> = { done: true, value: undefined };

/** An iterator that is closed when its loop is left. */
export abstract class StepIterator<T> implements StoreIterator<T> {
  abstract next(): Promise<IteratorResult<T, undefined>>;

  /** Closes what the iterator has open. It may be called more than once. */
  protected abstract close(): void;

  async return(): Promise<IteratorReturnResult<undefined>> {
    this.close();
    return DONE;
  }

  async throw(error?: unknown): Promise<never> {
    this.close();
    throw error;
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  async [asyncDispose](): Promise<void> {
    this.close();
  }
}
