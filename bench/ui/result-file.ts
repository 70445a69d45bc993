/**
 * A result that comes from outside: a file, an address, an older run of this browser.
 *
 * Invariant: what is returned can be shown by everything on the page. What is not a result is refused with a sentence;
 * a field that older results did not have gets what stands for its absence.
 */

import type { Plan } from '../core/plan.ts';
import type { Result } from '../core/report.ts';
import type { Row } from '../core/rows.ts';

type Fields = Readonly<Record<string, unknown>>;

const TEXTS = ['suite', 'engine', 'unit'] as const;
const FIGURES = ['ops', 'seconds', 'opsPerSecond', 'megabytesPerSecond', 'p50', 'p95', 'p99', 'max'] as const;
const ONE_OF: Readonly<Record<string, readonly unknown[]>> = {
  role: ['varve', 'peer', 'floor'],
  access: ['worker', 'page', 'inflight'],
  durability: ['memory', 'relaxed', 'strict'],
};

/** Reads the text of a saved result. Throws an Error whose message says what is wrong with it. */
export function resultFrom(text: string): Result {
  let parsed: unknown;
  try {
    parsed = JSON.parse(text);
  } catch {
    throw new Error('This is not JSON: choose a file that the page or the command line saved.');
  }
  return resultOf(parsed);
}

/** Checks a parsed result. Throws an Error whose message says what is wrong with it. */
export function resultOf(parsed: unknown): Result {
  const { environment, plan, rows, failovers, storage, notes, problems } = fieldsOf(parsed, 'The file');
  if (!Array.isArray(rows)) throw new Error('The file has no rows: it is not a result of this benchmark.');
  const { date, userAgent, cores, timerStepMicroseconds, crossOriginIsolated, ...more } = fieldsOf(
    environment,
    'The environment',
  );
  return {
    environment: {
      ...more,
      date: typeof date === 'string' && !Number.isNaN(Date.parse(date)) ? date : new Date(0).toISOString(),
      userAgent: String(userAgent ?? 'not told'),
      cores: figureOf(cores, 0),
      timerStepMicroseconds: figureOf(timerStepMicroseconds, Number.NaN),
      crossOriginIsolated: crossOriginIsolated === true,
    } as Result['environment'],
    plan: fieldsOf(plan ?? {}, 'The plan') as unknown as Plan,
    rows: rows.map(rowOf),
    failovers: listOf(failovers) as Result['failovers'],
    storage: listOf(storage) as Result['storage'],
    ...(Array.isArray(notes) && { notes: notes.map(String) }),
    problems: listOf(problems).map(String),
  };
}

function rowOf(value: unknown, index: number): Row {
  const which = `Row ${index + 1}`;
  const { life, ...row } = fieldsOf(value, which);
  for (const name of TEXTS) if (typeof row[name] !== 'string') throw new Error(`${which} has no ${name}.`);
  for (const [name, choices] of Object.entries(ONE_OF)) {
    if (!choices.includes(row[name])) throw new Error(`${which} has no ${name} that this page knows.`);
  }
  // JSON has no NaN: what could not be measured is null.
  const figures = Object.fromEntries(FIGURES.map((name) => [name, figureOf(row[name], Number.NaN)]));
  if (!((figures['opsPerSecond'] as number) > 0)) throw new Error(`${which} has no rate.`);
  const rounds = listOf(row['rounds']).map(Number);
  if (rounds.some((rate) => !(rate > 0))) throw new Error(`${which} has a round without a rate.`);
  return {
    ...row,
    ...figures,
    rounds: rounds.length > 0 ? rounds : [figures['opsPerSecond'] as number],
    hitRate: typeof row['hitRate'] === 'number' ? row['hitRate'] : null,
    verified: row['verified'] === true,
    groupSize: figureOf(row['groupSize'], 1),
    histogram: typeof row['histogram'] === 'string' ? row['histogram'] : '',
    timeline: listOf(row['timeline']) as Row['timeline'],
    ...(isLife(life) && { life }),
  } as unknown as Row;
}

/** What cannot be drawn is no life. */
function isLife(value: unknown): boolean {
  const { planned, samples, livingBytes } = (value ?? {}) as Fields;
  const areFigures = (...figures: unknown[]): boolean => figures.every((figure) => typeof figure === 'number');
  return (
    areFigures(planned, livingBytes) &&
    Array.isArray(samples) &&
    samples.every((sample) => areFigures(sample?.steps, sample?.stepsPerSecond, sample?.p99))
  );
}

function fieldsOf(value: unknown, what: string): Fields {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    throw new Error(`${what} is not what a result of this benchmark has.`);
  }
  return value as Fields;
}

function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}

function figureOf(value: unknown, otherwise: number): number {
  return typeof value === 'number' ? value : otherwise;
}
