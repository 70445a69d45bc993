/**
 * Turns over keys: of the calls that read and then write the same key, only one runs at a time, in the order of the calls.
 *
 *   update 1   read, change, write
 *   update 2   ......................read, change, write      waits, and then finds what 1 wrote
 *   others                 write                              1 writes nothing: it backs off, reads again, and keeps its turn
 *
 * Invariant: a turn only avoids conflicts. The write of a call is applied only if the entry that it read is still there. So no
 * write is lost when two calls run at the same time after all: in two clients, or here after a call that took long. A call whose
 * function takes longer than `TURN_MS` loses its turn; so a call that waits for a call behind itself does not block the queue.
 */

import { invalid, VarveError } from '../errors.ts';
import { untilAborted } from '../runtime/until-aborted.ts';
import { backOff } from './retry.ts';

/** How often a read, change and write is tried before the call gives up. */
export const ATTEMPTS_MAX = 100;
/** How long a function may take before the next call goes ahead, in milliseconds; doubled each time that this happens to a call. */
const TURN_MS = 1000;
/** How often that may happen to one call before it gives up. */
const PASSED_MAX = 3;

/** The key, or the like, that a turn is for. */
interface Place {
  /** The store or the transaction: turns of different owners have nothing to do with each other. */
  readonly owner: object;
  /** The key, or a text that stands for it. */
  readonly key: string;
  readonly signal?: AbortSignal | undefined;
}

/** The last turn that was requested for each key. */
const queues = new WeakMap<object, Map<string, Promise<void>>>();

/** A turn, from its beginning to its end. */
export class Turn {
  readonly key: string;
  isOver = false;
  readonly #end: () => void;

  private constructor(key: string, end: () => void) {
    this.key = key;
    this.#end = end;
  }

  /** Waits for the turns that were requested before. An aborted call leaves the queue; the other calls stay in it. */
  static async of({ owner, key, signal }: Place): Promise<Turn> {
    const queue = queues.get(owner) ?? new Map<string, Promise<void>>();
    queues.set(owner, queue);
    let end = (): void => undefined;
    const ended = new Promise<void>((resolve) => {
      end = resolve;
    });
    const before = queue.get(key);
    const last = before === undefined ? ended : before.then(() => ended);
    queue.set(key, last);
    void last.then(() => {
      if (queue.get(key) === last) queue.delete(key);
    });
    const turn = new Turn(key, end);
    try {
      await untilAborted(before ?? Promise.resolve(), signal);
    } catch (error) {
      turn.end();
      throw error;
    }
    return turn;
  }

  /** Waits for a function of the caller; if that takes longer than `ms`, the turn ends. */
  async during<T>(work: PromiseLike<T>, ms = TURN_MS): Promise<T> {
    const timer = setTimeout(() => this.end(), ms);
    try {
      return await work;
    } finally {
      clearTimeout(timer);
    }
  }

  /** Lets the next call begin its turn. */
  end(): void {
    this.isOver = true;
    this.#end();
  }
}

/** Calls the caller's function, in the turn. */
export type Call = <R>(run: () => R | PromiseLike<R>) => Promise<R>;

/** The place whose function is being called, up to its first `await`. */
let calling: Place | undefined;

/** Recognizes the errors after which an attempt is made again. */
interface Conflicts {
  /** Whether an error of the attempt is a conflict. Errors of the caller's function are not checked. */
  is(error: unknown): boolean;
  /** Converts the error of the last attempt for the caller. Default: unchanged. */
  last?(error: unknown): unknown;
}

/**
 * Reads, changes and writes in a turn. When an attempt throws a conflict, it waits and tries again, `ATTEMPTS_MAX` times at most.
 * Errors of the caller's function are passed on. If that function begins with a call for its own place, the call is refused.
 */
export async function inTurn<T>(place: Place, attempt: (call: Call) => Promise<T>, conflicts: Conflicts): Promise<T> {
  const { signal } = place;
  if (calling?.owner === place.owner && calling.key === place.key) throw nested();
  let turn = await Turn.of(place);
  let passed = 0;
  let isTheirs = false;
  const call: Call = async (run) => {
    isTheirs = true;
    const made = await turn.during(untilAborted(begun(place, run), signal), TURN_MS * 2 ** passed);
    isTheirs = false;
    return made;
  };
  try {
    for (let count = 1; ; count++) {
      try {
        return await attempt(call);
      } catch (error) {
        if (isTheirs || !conflicts.is(error)) throw error;
        if (count === ATTEMPTS_MAX) throw conflicts.last?.(error) ?? error;
      }
      if (turn.isOver) {
        if (++passed === PASSED_MAX) throw tooSlow();
        turn = await Turn.of(place);
      }
      await backOff(count, signal);
    }
  } finally {
    turn.end();
  }
}

/** Calls a function of the caller; until that returns, a call for the same place comes from the function itself. */
async function begun<R>(place: Place, run: () => R | PromiseLike<R>): Promise<R> {
  const outer = calling;
  calling = place;
  let running: R | PromiseLike<R>;
  try {
    running = run();
  } finally {
    calling = outer;
  }
  return running;
}

function nested(): VarveError {
  return invalid(
    'The function of an update may not update the same key: it would never end. Return the new value of the key.',
  );
}

function tooSlow(): VarveError {
  return new VarveError(
    'VARVE_CONFLICT',
    `The function of this update took seconds, and another update of the key went ahead of it ${PASSED_MAX} times. Fetch what it needs before the update, and do not update the key in it.`,
  );
}
