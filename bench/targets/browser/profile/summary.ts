/** Where the time of a profile went: the functions that were running themselves, the longest first. */

import { table } from '../../../core/table.ts';
import type { CallFrame, CpuProfile, ThreadProfile } from './trace.ts';

/** Functions of a profile that are shown. */
const TOP = 15;
/** What V8 calls the time in which a thread had nothing to do. */
const AT_REST: ReadonlySet<string> = new Set(['(idle)', '(root)']);

/** One function and what it took. */
export interface SelfTime {
  readonly frame: CallFrame;
  readonly self_ms: number;
  /** Of the time in which the thread was at work. */
  readonly share: number;
}

/** The functions by the time that they ran themselves. A sample counts for the time until the next one. */
export function selfTimes({ nodes, samples, timeDeltas }: CpuProfile): SelfTime[] {
  const frames = new Map(nodes.map(({ id, callFrame }) => [id, callFrame]));
  const found = new Map<string, { frame: CallFrame; self_ms: number }>();
  for (const [at, sample] of samples.entries()) {
    const frame = frames.get(sample);
    if (frame === undefined || AT_REST.has(frame.functionName)) continue;
    const key = `${frame.functionName} ${frame.scriptId} ${frame.lineNumber} ${frame.columnNumber}`;
    const entry = found.get(key) ?? { frame, self_ms: 0 };
    // Deltas of samples taken out of order are negative.
    entry.self_ms += Math.max(0, timeDeltas[at + 1] ?? 0) / 1000;
    found.set(key, entry);
  }
  const busy_ms = [...found.values()].reduce((sum, { self_ms }) => sum + self_ms, 0);
  return [...found.values()]
    .map((entry) => ({ ...entry, share: busy_ms === 0 ? 0 : entry.self_ms / busy_ms }))
    .sort((a, b) => b.self_ms - a.self_ms);
}

/** Milliseconds in which a thread was at work. */
export function busyOf({ profile }: ThreadProfile): number {
  return selfTimes(profile).reduce((sum, { self_ms }) => sum + self_ms, 0);
}

/** The table of one thread. */
export function summary(thread: ThreadProfile): string {
  const { name, profile } = thread;
  const times = selfTimes(profile);
  const busy_ms = busyOf(thread);
  const all_ms = (profile.endTime - profile.startTime) / 1000;
  const rows = times
    .slice(0, TOP)
    .map(({ frame, self_ms, share }) => [
      frame.functionName || '(anonymous)',
      placeOf(frame),
      self_ms.toFixed(1),
      `${(share * 100).toFixed(1)}%`,
    ]);
  const head = `${name}: at work for ${busy_ms.toFixed(0)} of ${all_ms.toFixed(0)} ms`;
  return `### ${head}\n\n${table(['function', 'where', 'self, ms', 'of the work'], rows, [0, 1])}`;
}

function placeOf({ url, lineNumber, columnNumber }: CallFrame): string {
  if (url === '') return '';
  const file = url.replace(/[?#].*/, '').replace(/.*\//, '');
  // A wasm function lies at an offset of its module, which the column tells.
  return url.includes('wasm') ? `${file} +${columnNumber}` : `${file}:${lineNumber + 1}`;
}
