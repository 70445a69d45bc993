/**
 * The requests of one connection of a row, and the outcomes of their answers.
 *
 * Invariant: at most one request is out. When it is answered as it must be, its writes are acknowledged in the ledger; when
 * it is not answered, or otherwise, they are in doubt.
 */

import type { Call, Kind } from './calls.ts';
import type { Share } from './share.ts';

/** The answers of a row, counted. */
export interface Outcomes {
  /** Answered rightly. */
  requests: number;
  operations: number;
  /** Characters of their bodies. */
  chars: number;
  /** Failed: no connection, no answer, or a status that is none of a right answer. */
  failed: number;
  /** Answered with the right status and the wrong body. */
  wrong: number;
  /** The first thing that went wrong, in words. */
  problem: string | undefined;
}

export function noOutcomes(): Outcomes {
  return { requests: 0, operations: 0, chars: 0, failed: 0, wrong: 0, problem: undefined };
}

export class Session {
  readonly #kind: Kind;
  readonly #share: Share;
  readonly #outcomes: Outcomes;
  #out: Call | undefined;

  /** `outcomes` is shared by the sessions of a row. */
  constructor(kind: Kind, share: Share, outcomes: Outcomes) {
    this.#kind = kind;
    this.#share = share;
    this.#outcomes = outcomes;
  }

  next(): Call {
    this.#out = this.#kind(this.#share);
    return this.#out;
  }

  /** Takes the answer to the request that is out. */
  answer(status: number, body: string): void {
    const call = this.#out;
    if (call === undefined) return;
    if (status !== call.status) return this.fail(`${call.method} ${call.path}: ${status} ${body.slice(0, 200)}`);
    this.#out = undefined;
    this.#share.ledger.acknowledge(call.writes, call.writes.length === 1 ? sequenceOf(body) : 0);
    if (call.check !== undefined && !isRight(call.check, body)) {
      this.#outcomes.wrong++;
      this.#outcomes.problem ??= `${call.method} ${call.path} was answered wrongly: ${body.slice(0, 200)}`;
      return;
    }
    this.#outcomes.requests++;
    this.#outcomes.operations += call.operations;
    this.#outcomes.chars += body.length;
  }

  fail(problem: string): void {
    if (this.#out === undefined) return;
    this.#outcomes.failed++;
    this.#outcomes.problem ??= problem;
    this.#share.ledger.doubt(this.#out.writes);
    this.#out = undefined;
  }
}

/** The sequence of a receipt; 0 of an answer that is none. */
function sequenceOf(body: string): number {
  return Number(/^\{"sequence":(\d+)/.exec(body)?.[1] ?? 0);
}

/** A body that is not even JSON is wrong, not an error of the benchmark. */
function isRight(check: (body: string) => boolean, body: string): boolean {
  try {
    return check(body);
  } catch {
    return false;
  }
}
