/**
 * The interface of a suite, and the lists of all suites and engines. A suite registers itself when its file is loaded; `suites/all.ts`
 * loads all files.
 *
 * Invariant: nothing here knows a suite or an engine. A suite checks the values that it reads, and closes its stores however it ends.
 */

import type { Access, Engine } from './engine.ts';
import type { Round } from './measure.ts';
import type { Emit, Plan } from './plan.ts';
import { caseName, makeRow, type Row, type RowHead } from './row.ts';
import type { Stages } from './stage.ts';

export interface Count {
  readonly quick: number;
  readonly full: number;
}

export const count = (quick: number, full: number): Count => ({ quick, full });

export interface Context {
  readonly plan: Plan;
  readonly engines: readonly Engine[];
  readonly access: Access;
  readonly place: string;
  readonly emit: Emit;
  readonly signal: AbortSignal;
  /** Reports one step of progress; throws when the run was cancelled. */
  readonly step: (text: string) => void;
  readonly say: (text: string) => void;
  readonly stages: Stages;
}

export interface Suite {
  readonly name: string;
  readonly title: string;
  readonly quick?: boolean;
  /** Runs only when it is asked for by its name: another suite does the same, or it takes long. */
  readonly asked?: boolean;
  readonly accesses: readonly Access[];
  /** How many steps of progress it reports; none: there is nothing to run. */
  steps(plan: Plan, engines: readonly Engine[], access: Access): number;
  run(context: Context): Promise<void>;
}

const registered: Suite[] = [];

export function register(suite: Suite): void {
  if (registered.some(({ name }) => name === suite.name)) throw new Error(`There are two suites ${suite.name}.`);
  registered.push(suite);
}

export function suites(): readonly Suite[] {
  return registered;
}

let known: readonly Engine[] = [];

/** Makes these the engines of the browser that can be chosen: peers/all.ts hands them in. */
export function useEngines(all: readonly Engine[]): void {
  known = all;
}

export function engines(): readonly Engine[] {
  return known;
}

/** Reports the row of some rounds on an engine, and a problem where a check failed. `wrong`: the failure of a check of the whole store. */
export function report(
  { emit, place }: Pick<Context, 'emit' | 'place'>,
  { name, role, version }: Pick<Engine, 'name' | 'role' | 'version'>,
  head: Partial<RowHead> & Pick<Row, 'suite'>,
  rounds: readonly Round[],
  wrong?: string,
): void {
  const fixed = { access: place, durability: 'relaxed', unit: 'ops', groupSize: 1, engine: name, role } as const;
  const row = makeRow({ ...fixed, ...(version && { engineVersion: version }), ...head }, rounds, wrong === undefined);
  if (!row.verified) {
    const text = `${caseName(row)} on ${name}: ${wrong ?? 'a read gave something else than was written.'}`;
    emit({ type: 'problem', text });
  }
  emit({ type: 'row', row });
}

export function explain(error: unknown): string {
  return error instanceof Error ? `${error.name}: ${error.message}` : String(error);
}
