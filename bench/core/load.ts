/**
 * The load of several callers, in a page and over HTTP. In a closed loop each caller makes its next call when the one before is
 * answered: it shows throughput. In an open loop calls are due at a fixed rate, whether the store keeps up or not: it shows the
 * wait of users.
 *
 * Invariant: no call is left out because it was slow. When the time of a closed loop is over, each caller waits for its last
 * answer. The latency of an open loop counts from when a call was due, not from when a caller was free to make it, so a stall
 * counts for every call that it delays (no coordinated omission).
 */

import { now } from './clock.ts';
import type { Round } from './measure.ts';

export type Caller = () => Promise<unknown>;

export type Length = { readonly seconds: number } | { readonly requests: number };

export interface Pace {
  readonly perSecond: number;
  readonly seconds: number;
}

export interface LoadOptions {
  readonly signal?: AbortSignal;
  /** In an open loop, a caller can have any number of calls under way. */
  readonly unbounded?: boolean;
  /** Waits for the next call of an open loop. Default: a timer, which is a millisecond late. */
  readonly rest?: (ms: number) => Promise<void>;
}

/** Runs the callers. Resolves with the milliseconds until the last answer, and the microseconds of each call. */
export async function runLoad(
  callers: readonly Caller[],
  length: Length | Pace,
  options: LoadOptions = {},
): Promise<Pick<Round, 'elapsedMs' | 'latencies'>> {
  const latencies: number[] = [];
  const started = now();
  await ('perSecond' in length
    ? open(callers, length, latencies, options)
    : closed(callers, length, latencies, options));
  return { elapsedMs: now() - started, latencies };
}

async function closed(callers: readonly Caller[], length: Length, latencies: number[], { signal }: LoadOptions) {
  const ends = 'seconds' in length ? now() + length.seconds * 1000 : Number.POSITIVE_INFINITY;
  let left = 'requests' in length ? length.requests : Number.POSITIVE_INFINITY;
  const work = async (call: Caller): Promise<void> => {
    // Each caller calls once at least, however busy the machine is.
    for (let isFirst = true; left > 0 && (isFirst || now() < ends); isFirst = false) {
      signal?.throwIfAborted();
      left--;
      const since = now();
      await call();
      latencies.push((now() - since) * 1000);
    }
  };
  await Promise.all(callers.map(work));
}

const sleep = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

async function open(
  callers: readonly Caller[],
  { perSecond, seconds }: Pace,
  latencies: number[],
  { signal, unbounded = false, rest = sleep }: LoadOptions,
): Promise<void> {
  const total = Math.max(1, Math.round(perSecond * seconds));
  const started = now();
  const underWay: Promise<void>[] = [];
  let next = 0;
  const make = async (call: Caller, due: number): Promise<void> => {
    await call();
    latencies.push((now() - due) * 1000);
  };
  const work = async (call: Caller): Promise<void> => {
    while (next < total) {
      const due = started + (next++ * 1000) / perSecond;
      while (now() < due) await rest(due - now());
      signal?.throwIfAborted();
      const made = make(call, due);
      if (!unbounded) await made;
      else underWay.push(made);
      // Of those, a failure counts in the end.
      made.catch(() => undefined);
    }
  };
  await Promise.all(callers.map(work));
  await Promise.all(underWay);
}
