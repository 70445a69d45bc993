/**
 * Transactions as handles: what `begin()` of the synchronous store returns.
 *
 * Invariant: the snapshot of a handle is released exactly once: when it is committed or rolled back, when its signal aborts, or when it is
 * garbage collected.
 */

import { invalid, VarveError } from '../errors.ts';
import { BEGIN, durabilityOf, shown } from '../options.ts';
import { namedConflict } from '../protocol/conflict.ts';
import { whenCollected } from '../runtime/collected.ts';
import { dispose } from '../runtime/dispose.ts';
import { lastConflict } from '../transaction/retry.ts';
import type { BeginOptions, Receipt } from '../types.ts';
import { SyncAttempt, SyncTransaction, type SyncTransactionParts } from './transaction.ts';

const collected = whenCollected<() => void>((end) => end());

/**
 * A transaction that ends with `commit()` or `rollback()`, in a later turn if you like. After its end every call throws `VARVE_CLOSED`.
 * If it is garbage collected, it is rolled back.
 *
 * @example
 * using tx = db.begin();
 * tx.set('n', (tx.get('n') ?? 0) + 1);
 * tx.commit(); // without it, everything is rolled back at the end of the block
 */
export class SyncTransactionHandle<K, V> extends SyncTransaction<K, V> implements Disposable {
  readonly #commit: () => Receipt | undefined;
  readonly #end: () => void;

  /** @internal Made by `begin()`. */
  constructor(attempt: SyncAttempt<K, V>, commit: () => Receipt | undefined, end: () => void) {
    super(attempt.work, attempt.reads, attempt.snapshot);
    this.#commit = commit;
    this.#end = end;
    collected.register(this, end, this);
  }

  /**
   * Applies all writes, or none; returns their receipt, or undefined if there are no writes. Throws `VARVE_CONFLICT`, which names the
   * key, if somebody has written what the transaction has read: then nothing was written. Throws `VARVE_CLOSED` if the transaction has
   * ended, and its signal's `reason` if that ended it.
   */
  commit(): Receipt | undefined {
    collected.unregister(this);
    return this.#commit();
  }

  /** Discards all writes. After the end of the transaction it has no effect. */
  rollback(): void {
    collected.unregister(this);
    this.#end();
  }

  /** `rollback()`, for `using`. */
  [dispose](): void {
    this.rollback();
  }
}

/** Begins a transaction. */
export function beginSync<K, V>(
  parts: SyncTransactionParts<K, V>,
  exclusive: { isTaken: boolean },
  options: BeginOptions,
): SyncTransactionHandle<K, V> {
  const durability = durabilityOf(options, BEGIN);
  const { exclusive: isExclusive = false, signal } = options;
  if (typeof isExclusive !== 'boolean') throw invalid(`exclusive is true or false, not ${shown(isExclusive)}.`);
  if (isExclusive && exclusive.isTaken) throw taken();
  const attempt = new SyncAttempt(parts);
  if (isExclusive) exclusive.isTaken = true;
  let isOver = false;
  const end = (): void => {
    if (isOver) return;
    isOver = true;
    signal?.removeEventListener('abort', end);
    if (isExclusive) exclusive.isTaken = false;
    attempt.end();
  };
  signal?.addEventListener('abort', end);
  const commit = (): Receipt | undefined => {
    signal?.throwIfAborted();
    try {
      return attempt.commit(durability);
    } catch (error) {
      throw namedConflict(error, attempt.reads.formats.keys, lastConflict(1));
    } finally {
      end();
    }
  };
  return new SyncTransactionHandle(attempt, commit, end);
}

function taken(): VarveError {
  return new VarveError(
    'VARVE_LOCKED',
    'Another exclusive transaction of this store is open, and varve/synchronous cannot wait for it. Commit it or roll it back first.',
  );
}
