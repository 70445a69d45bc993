/**
 * The outcomes of the requests of a row, of all its connections together.
 *
 * Invariant: when a request is answered as it must be, its writes are acknowledged in the ledger; when it is not answered, or
 * otherwise, they are in doubt.
 */

import { emptyTally } from '../../core/tasks/task.ts';
import type { Call } from './calls.ts';
import type { Ledger } from './ledger.ts';

export class Outcomes {
  /** Operations and characters of the right answers, and the answers with the right status and the wrong body. */
  readonly tally = emptyTally();
  /** Answered rightly. */
  requests = 0;
  /** Failed: no connection, no answer, or a status that is none of a right answer. */
  failed = 0;
  /** The first thing that went wrong, in words. */
  problem: string | undefined;

  constructor(readonly ledger: Ledger) {}

  answer(call: Call, status: number, body: string): void {
    if (status !== call.status) return this.fail(call, `${status} ${body.slice(0, 200)}`);
    this.ledger.acknowledge(call.writes, call.writes.length === 1 ? sequenceOf(body) : 0);
    if (call.check !== undefined && !isRight(call.check, body)) {
      this.tally.wrong++;
      this.problem ??= `${call.method} ${call.path} was answered wrongly: ${body.slice(0, 200)}`;
      return;
    }
    this.requests++;
    this.tally.ops += call.operations;
    this.tally.bytes += body.length;
  }

  fail({ method, path, writes }: Call, problem: string): void {
    this.failed++;
    this.problem ??= `${method} ${path}: ${problem}`;
    this.ledger.doubt(writes);
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
