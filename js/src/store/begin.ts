/**
 * Transactions as handles: what `begin()` of the asynchronous store resolves with.
 *
 * A handle is a transaction whose function waits for `commit()` or `rollback()`, and that is not run again on a conflict. An exclusive
 * one also has a lock: a Web Lock where tabs share the store, and else a turn in the queue of this store.
 *
 * Invariant: only progress depends on the lock, never correctness. The commit checks what the transaction has read, as every commit
 * does. So a lock may be released early: when the page is frozen, when the store is closed, when the handle is garbage collected.
 */

import type { Client } from '../client/client.ts';
import { closedError, invalid, VarveError } from '../errors.ts';
import { shown } from '../options.ts';
import { whenCollected } from '../runtime/collected.ts';
import { asyncDispose } from '../runtime/dispose.ts';
import { untilAborted } from '../runtime/until-aborted.ts';
import { hold } from '../share/locks.ts';
import { transactionLock } from '../share/names.ts';
import { Turn } from '../transaction/turns.ts';
import type { BeginOptions, Receipt } from '../types.ts';
import { runTransaction, Transaction, type TransactionState } from './transaction.ts';
import { untilEnded } from './until-ended.ts';
import type { UpdateParts } from './update.ts';

/** The key of the turns of exclusive transactions: no key of a user begins with ff. */
const EXCLUSIVE = '\xffexclusive';

/** The end of a transaction that has a handle. */
interface Ending {
  commit(): void;
  /** Has no effect after `commit`. */
  rollBack(reason: unknown): void;
  /** The outcome, when the lock is released, too: the receipt of the writes, if there are any. */
  readonly ended: Promise<Receipt | undefined>;
}

const collected = whenCollected<Ending>(({ rollBack }) => rollBack(closedError()));

/**
 * A transaction that ends with `commit()` or `rollback()`. Its reads see one snapshot, with its own writes laid over it. Its writes
 * return at once, and are applied together by `commit()`. After its end every call fails with `VARVE_CLOSED`.
 *
 * A handle that is neither committed nor rolled back keeps its snapshot, and an exclusive one makes others wait: let `await using` end
 * it. It is rolled back when its signal aborts, when the store is closed, when its tab ends, when its page goes into the back/forward
 * cache or is frozen (then `commit()` rejects with `VARVE_RETRY`), and some time after it was garbage collected.
 *
 * @example
 * await using tx = await db.begin({ exclusive: true });
 * const job = await tx.get('next');
 * tx.set('next', await work(job));
 * await tx.commit(); // without it, everything is rolled back at the end of the block
 */
export class TransactionHandle<K, V> extends Transaction<K, V> implements AsyncDisposable {
  readonly #ending: Ending;
  #isEnded = false;

  /** @internal Made by `store.begin()`. */
  constructor(state: TransactionState<K, V>, ending: Ending) {
    super(state);
    this.#ending = ending;
  }

  /**
   * Applies all writes, or none, and resolves with their receipt when they have the durability of `begin`; with undefined if there are no
   * writes. Rejects with `VARVE_CONFLICT`, which names the key, if somebody else has written what the transaction has read: then nothing
   * was written, and you can begin again. Rejects with `VARVE_RETRY` if the snapshot was lost with the tab that led the store, and with
   * `VARVE_CLOSED` if the transaction has ended.
   *
   * @example
   * tx.set('n', 1);
   * const receipt = await tx.commit();
   */
  async commit(): Promise<Receipt | undefined> {
    if (this.#isEnded) throw new VarveError('VARVE_CLOSED', 'The transaction has ended. Begin another one.');
    this.#isEnded = true;
    this.state.work.close();
    this.#ending.commit();
    return this.#ending.ended;
  }

  /** Discards all writes; resolves when others can begin. After `commit()` it only waits for that. Never rejects. */
  async rollback(): Promise<void> {
    this.#isEnded = true;
    this.state.work.close();
    this.#ending.rollBack(closedError());
    await this.#ending.ended.catch(() => undefined);
  }

  /** `rollback()`, for `await using`: it has no effect after `commit()`. */
  [asyncDispose](): Promise<void> {
    return this.rollback();
  }
}

/** Begins a transaction. Without a lock its snapshot is taken within the call. */
export async function beginTransaction<K, V>(
  parts: UpdateParts<K, V>,
  { exclusive = false, signal }: BeginOptions = {},
): Promise<TransactionHandle<K, V>> {
  const { client } = parts;
  if (typeof exclusive !== 'boolean') throw invalid(`exclusive is true or false, not ${shown(exclusive)}.`);
  client.ensureOpen();
  const release = exclusive ? await exclusiveLock(client, signal) : undefined;
  const begun: { state?: TransactionState<K, V> } = {};
  let commit = (): void => undefined;
  let rollBack = (_: unknown): void => undefined;
  const outcome = new Promise<void>((resolve, reject) => {
    commit = resolve;
    rollBack = reject;
  });
  const run = ({ state }: Transaction<K, V>): Promise<void> => {
    begun.state = state;
    // The Blobs are read within its life: a commit that waits for them must not keep the lock behind the end of the store.
    return untilEnded(
      client,
      outcome.then(() => state.blobs.read()),
    );
  };
  const free = (): unknown => release?.();
  const ended = runTransaction(parts, run, { retries: 0, signal })
    .then(() => begun.state?.committed)
    .finally(free);
  // A page that was frozen while its commit was under way kept the lock: nobody else could begin until it was back.
  untilEnded(client, ended).then(free, free);
  // The store was closed, or the signal aborted, before it began.
  if (begun.state === undefined) return ended as Promise<never>;
  const owner = {};
  const ending: Ending = { commit, rollBack, ended };
  collected.register(owner, ending, ending);
  // The registry would keep an ended transaction for ever: its error keeps the handle, and that keeps the owner.
  const over = (): void => void collected.unregister(ending);
  // It may end before `commit` is called.
  ended.then(over, over);
  return new TransactionHandle<K, V>({ ...begun.state, owner }, ending);
}

/** Waits for the lock of exclusive transactions; resolves with what releases it. Rejects when the signal aborts, or the store is closed. */
async function exclusiveLock(client: Client, signal: AbortSignal | undefined): Promise<() => unknown> {
  const { shared } = client;
  const stop = new AbortController();
  const taken: Promise<() => unknown> =
    shared === undefined
      ? Turn.of({ owner: client, key: EXCLUSIVE, signal: stop.signal }).then((turn) => () => turn.end())
      : hold(transactionLock(shared), stop.signal);
  try {
    return await untilEnded(client, untilAborted(taken, signal));
  } catch (error) {
    stop.abort();
    // It may have been granted meanwhile.
    taken.then(
      (release) => release(),
      () => undefined,
    );
    throw error;
  }
}
