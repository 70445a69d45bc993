/**
 * The messages between the director of the suite `multi-tab` and its tabs, over one BroadcastChannel.
 *
 * Invariant: every command has a number and gets one reply with it; a tab hears only what is said to it. A tab that was ended
 * gives no reply: who ends one does not wait for it.
 */

import type { Tally } from '../../core/tasks/task.ts';

/** The channel of one run: it is named in the address of each tab. */
export function channelName(run: string): string {
  return `varve-bench-tabs-${run}`;
}

/** The calls that are measured. */
export type Call = 'get' | 'set';

/** The work of a tab in one round. */
export interface Work {
  readonly engine: string;
  readonly call: Call;
  /** 100 calls in flight rather than one awaited after another. */
  readonly waves: boolean;
  /** Writes go to each `of`-th key from the `index`-th on, so that no two tabs write the same. */
  readonly index: number;
  readonly of: number;
  readonly calls: number;
  readonly budget_ms: number;
  /** Awaited calls that are timed as one. */
  readonly group: number;
  /** Varies what is drawn at random. */
  readonly round: number;
}

/** A round as data. */
export interface RoundData {
  readonly tally: Tally;
  readonly elapsed_ms: number;
  /** Microseconds of each group. */
  readonly samples: Float64Array;
}

/** A write of a writer: when it was called and when it was acknowledged, in milliseconds since 1970. */
export type Acknowledged = readonly [called: number, acknowledged: number];

export interface Written {
  readonly writes: readonly Acknowledged[];
  /** The errors of failed calls. */
  readonly errors: readonly string[];
}

/** To a tab. */
export interface Command {
  readonly to: string;
  readonly id: number;
  readonly name: string;
  readonly with: unknown;
}

/** From a tab: that it is there, or its reply. */
export type FromTab =
  | { readonly from: string; readonly type: 'ready' }
  | { readonly from: string; readonly type: 'reply'; readonly id: number; readonly value: unknown }
  | { readonly from: string; readonly type: 'failed'; readonly id: number; readonly error: string };

/** Milliseconds since 1970, finer than `Date.now()`, the same in all tabs of a machine. */
export function epochMs(): number {
  return performance.timeOrigin + performance.now();
}
