/** Made-up rows, and runs of the suites on made-up engines, for the tests. */

import type { Access, Engine } from './engine.ts';
import type { Random } from './generator.ts';
import type { Emit, Plan } from './plan.ts';
import { type Environment, Gathered } from './result.ts';
import type { Row } from './row.ts';
import { runSuites } from './runner.ts';

export const ENVIRONMENT: Environment = {
  date: '2026-01-02T03:04:05.000Z',
  userAgent: 'Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0.0.0 Safari/537.36',
  cores: 4,
  timerStepMicroseconds: 5,
  crossOriginIsolated: true,
};

export function rowOf(row: Partial<Row> & Pick<Row, 'engine' | 'role' | 'rounds'>): Row {
  const middle = [...row.rounds].sort((a, b) => a - b)[row.rounds.length >> 1] ?? Number.NaN;
  return {
    ...{ suite: 'read-rand-mem', access: 'worker', durability: 'relaxed', unit: 'ops', ops: 1000, seconds: 1 },
    ...{ opsPerSecond: middle, megabytesPerSecond: middle / 1e4, p50: 1, p95: 2, p99: 3, max: 9, hitRate: 1 },
    ...{ verified: true, groupSize: 1 },
    ...row,
  };
}

/** The rates of rounds whose logarithms have this standard deviation (Box and Muller). */
export function scattered(random: Random, rate: number, deviation: number, rounds: number): number[] {
  const share = (): number => (random.next() + 1) / 2 ** 32;
  const normal = (): number => Math.sqrt(-2 * Math.log(share())) * Math.cos(2 * Math.PI * share());
  return Array.from({ length: rounds }, () => rate * Math.exp(deviation * normal()));
}

export function planOf(suites: readonly string[], more: Partial<Plan> = {}): Plan {
  const usual = { mode: 'quick', accesses: ['worker'], rounds: 3, seed: 1, scale: 1, custom: { calls: 400 } } as const;
  return { ...usual, suites, engines: [], ...more };
}

export async function gathered(
  plan: Plan,
  engines: readonly Engine[],
  accesses: readonly Access[] = ['worker'],
  more: { readonly emit?: Emit; readonly signal?: AbortSignal } = {},
): Promise<Gathered> {
  const found = new Gathered();
  const emit: Emit = (event) => {
    found.take(event);
    more.emit?.(event);
  };
  const signal = more.signal ?? new AbortController().signal;
  const all = { ...plan, engines: engines.map(({ name }) => name), accesses };
  await runSuites(all, { engines, accesses, emit, signal });
  return found;
}
