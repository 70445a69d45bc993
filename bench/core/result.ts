/** The result of a run, and its Markdown. */

import type { Engine } from './engine.ts';
import { duration } from './figures.ts';
import type { Plan, RunEvent } from './plan.ts';
import type { Row } from './row.ts';
import type { StorageReport } from './storage.ts';
import { markdownOf, tablesOf } from './tables.ts';

export interface Environment {
  readonly date: string;
  readonly userAgent: string;
  readonly cores: number;
  readonly timerStepMicroseconds: number;
  readonly crossOriginIsolated: boolean;
}

/** The content of the file that `--json` writes. */
export interface Result {
  readonly environment: Environment;
  readonly plan: Plan;
  readonly rows: readonly Row[];
  readonly storage: readonly StorageReport[];
  /** No faults: engines that sat out a suite, and why. */
  readonly notes: readonly string[];
  /** Everything that failed or was not as written. Empty in a good run. */
  readonly problems: readonly string[];
}

export class Gathered {
  readonly rows: Row[] = [];
  readonly storage: StorageReport[] = [];
  readonly notes: string[] = [];
  readonly problems: string[] = [];

  take(event: RunEvent): void {
    if (event.type === 'row') this.rows.push(event.row);
    if (event.type === 'storage') this.storage.push(event.storage);
    if (event.type === 'note') this.notes.push(event.text);
    if (event.type === 'problem') this.problems.push(event.text);
  }
}

/** The whole report in Markdown. `where` says in a line what it was made on. */
export function markdown(result: Omit<Result, 'environment' | 'plan'>, engines: readonly Engine[], where: string) {
  const { rows, storage, notes, problems } = result;
  const list = (texts: readonly string[]): string => texts.map((text) => `- ${text}`).join('\n');
  const used = engines.filter(({ name }) => rows.some(({ engine }) => engine.replace(/ \(.*\)$/, '') === name));
  const parts = [
    '# Varve benchmark',
    where,
    ...(problems.length === 0 ? [] : ['## Problems', list(problems)]),
    ...tablesOf(rows, storage).map(markdownOf),
    '## Engines',
    list([...used.map(engineLine), ...notes]),
  ];
  return `${parts.join('\n\n')}\n`;
}

export function engineLine(engine: Pick<Engine, 'name' | 'version' | 'about' | 'recommended' | 'url'>): string {
  const { name, version, about, recommended, url } = engine;
  const by = recommended && `Used as recommended: ${recommended}`;
  const head = `\`${name}\`${version === undefined ? '' : ` ${version}`}${about && ':'}`;
  return [head, about, by, url && `<${url}>`].filter(Boolean).join(' ');
}

export function environmentLine(environment: Environment, { mode }: Plan): string {
  const { date, cores, timerStepMicroseconds, crossOriginIsolated, userAgent } = environment;
  const day = new Date(date).toLocaleDateString('en-GB', { dateStyle: 'long', timeZone: 'UTC' });
  const isolated = crossOriginIsolated ? '' : ' (not isolated, so the timer is coarse)';
  const step = `timer step ${duration(timerStepMicroseconds)}${isolated}`;
  return `${day}, ${browserName(userAgent)}, ${cores} cores, ${mode} run, ${step}.`;
}

/** The browser of a user agent and its main version; the whole text where it is none that is known. */
export function browserName(userAgent: string): string {
  const [, name, version] = /(Edg|Firefox|Chrome|Version)\/(\d+)/.exec(userAgent) ?? [];
  if (name === undefined) return userAgent;
  return `${{ Edg: 'Edge', Chrome: 'Chromium', Version: 'Safari' }[name] ?? name} ${version}`;
}

/** JSON that ends with a list, a line for each of its items and for each member before it, so that a change of it can be read. */
export function jsonWith(head: object, name: string, list: readonly unknown[]): string {
  const members = Object.entries(head).map(([key, value]) => `  ${JSON.stringify(key)}: ${JSON.stringify(value)},`);
  const lines = list.map((item) => `    ${JSON.stringify(item)}`);
  return `{\n${members.join('\n')}\n  "${name}": [\n${lines.join(',\n')}\n  ]\n}\n`;
}
