/** Rows and results for the tests of the page: made up, and small. */

import { standardPlan } from '../core/options.ts';
import type { Result } from '../core/report.ts';
import type { Row } from '../core/rows.ts';

/** A row with these fields; three rounds around its rate. */
export function rowWith(fields: Partial<Row> & Pick<Row, 'engine' | 'role' | 'opsPerSecond'>): Row {
  const rate = fields.opsPerSecond;
  return {
    suite: 'write-rand',
    access: 'worker',
    durability: 'relaxed',
    unit: 'ops',
    ops: 1000,
    seconds: 1000 / rate,
    megabytesPerSecond: rate / 8621,
    p50: 1e6 / rate,
    p95: 2e6 / rate,
    p99: 3e6 / rate,
    max: 9e6 / rate,
    hitRate: null,
    verified: true,
    groupSize: 1,
    rounds: [rate * 0.99, rate, rate * 1.01],
    histogram: '',
    timeline: [],
    ...fields,
  };
}

/** A result of these rows. */
export function resultWith(rows: readonly Row[], date = '2026-01-31T14:05:00.000Z'): Result {
  return {
    environment: {
      date,
      userAgent: 'Test/1.0',
      cores: 4,
      timerStepMicroseconds: 5,
      crossOriginIsolated: true,
      quick: true,
    },
    plan: standardPlan('quick'),
    rows,
    failovers: [],
    storage: [],
    problems: [],
  };
}
