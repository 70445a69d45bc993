/** A plan of a run, as the page or the command line chooses it, and the events that a run reports. */

import type { Order } from './draw.ts';
import type { Access, Durability } from './engine.ts';
import type { Row } from './row.ts';
import type { StorageReport } from './storage.ts';

/** A choice of suites, engines and places of the calls. Plain data: it travels to the worker. */
export interface Plan {
  readonly mode: 'quick' | 'full';
  /** Names of suites; in the order of the suites, not of this list. */
  readonly suites: readonly string[];
  readonly engines: readonly string[];
  readonly accesses: readonly Access[];
  readonly rounds: number;
  readonly seed: number;
  readonly scale: number;
  /** Differs from what the suites say; also what the suite `custom` runs with. */
  readonly custom: Custom;
}

/** Choices in place of a suite's own. A choice that is absent stays as the suite says. */
export interface Custom {
  readonly entries?: number;
  readonly calls?: number;
  readonly valueBytes?: number;
  readonly distribution?: Order;
  /** Share of reads among the calls of a mix, 0 to 1. */
  readonly readRatio?: number;
  readonly memoryBytes?: number;
  readonly durability?: Durability;
  readonly round_ms?: number;
}

export const ROUNDS = 3;

/** The longest that a round may take, in milliseconds: slow engines are cut short, and the row says how far they came. */
export function budgetMs(plan: Plan): number {
  return plan.custom.round_ms ?? (plan.mode === 'quick' ? 120 : 2000);
}

export type RunEvent =
  | { readonly type: 'progress'; readonly done: number; readonly total: number; readonly text: string }
  | { readonly type: 'row'; readonly row: Row }
  | { readonly type: 'storage'; readonly storage: StorageReport }
  /** No fault, but worth knowing: an engine that sat out a suite, and why. */
  | { readonly type: 'note'; readonly text: string }
  /** A reader of the result must know it: a failed check, an engine that is not there. */
  | { readonly type: 'problem'; readonly text: string };

export type Emit = (event: RunEvent) => void;
