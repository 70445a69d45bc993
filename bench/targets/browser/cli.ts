/**
 * `npm run bench`: runs suites in Chromium, prints and writes what they came to, and compares it with a baseline.
 *
 * Invariant: the exit code is 0 when everything ran and was verified and, with `--compare`, nothing has become slower.
 * A target that was missed is no failure.
 */

import { writeFileSync } from 'node:fs';
import { baselineText, makeBaseline } from '../../core/compare/baseline.ts';
import type { Plan } from '../../core/plan.ts';
import { ENGINES } from '../../peers/list.ts';
import { runPlanInBrowser } from './browser-run.ts';
import { type Command, helpText, parseFlags, planOf } from './flags.ts';
import { gatePlan, judgeRuns, readBaseline } from './gate.ts';
import { listText } from './list.ts';
import { closingText, type SavedRun, savedRun } from './saved-run.ts';

/** What a command line runs: as the baseline says, or everything that it does not leave out. */
function planFor(command: Command): Plan {
  const { params, peers, compare } = command;
  if (!params.has('mode') && compare === undefined) params.set('mode', 'full');
  if (peers !== undefined) {
    const varve = ENGINES.filter(({ role }) => role === 'varve').map(({ name }) => name);
    params.set('engines', [...varve, ...peers].join(','));
  }
  return compare === undefined ? planOf(params) : gatePlan(readBaseline(compare), params);
}

/** What runs of a plan came to. */
interface Measured {
  readonly saved: SavedRun[];
  readonly text: string;
  /** A signal ended the last run early, and there was none after it. */
  readonly wasCancelled: boolean;
}

/** Runs a plan so often, one browser after the other; prints each report. */
async function measure(plan: Plan, runs: number, command: Command): Promise<Measured> {
  const saved: SavedRun[] = [];
  const texts: string[] = [];
  for (let n = 0; n < runs; n++) {
    if (runs > 1) console.log(`\nRun ${n + 1} of ${runs}`);
    const run = await runPlanInBrowser(plan, command);
    const kept = savedRun(run);
    saved.push(kept);
    texts.push(`${run.markdown}\n${closingText(kept)}`);
    console.log(`\n${texts.at(-1)}`);
    if (run.wasCancelled) return { saved, text: texts.join('\n'), wasCancelled: true };
  }
  return { saved, text: texts.join('\n'), wasCancelled: false };
}

async function main(): Promise<number> {
  const command = parseFlags(process.argv.slice(2));
  if (command.help || command.list) {
    console.log(command.help ? helpText() : listText());
    return 0;
  }
  const plan = planFor(command);
  const { saved, text, wasCancelled } = await measure(plan, command.runs, command);
  // One run is written as itself, several as a list.
  if (command.json !== undefined) writeJson(command.json, saved.length === 1 ? saved[0] : saved);
  let markdown = text;
  let passed = true;
  if (command.compare !== undefined && !wasCancelled) {
    const again = async (part: Plan, runs: number) => {
      const more = await measure(part, runs, { ...command, profile: undefined });
      if (more.wasCancelled)
        throw new Error('The comparison was cancelled: nothing is said about what has become slower.');
      return more.saved.map(({ rows }) => rows);
    };
    const runs = saved.map(({ rows }) => rows);
    const judgement = await judgeRuns(readBaseline(command.compare), plan, runs, command, again);
    console.log(`\n${judgement.text}`);
    markdown += `\n${judgement.text}`;
    passed = judgement.passed;
  }
  if (command.markdown !== undefined) writeFileSync(command.markdown, markdown);
  const sound = saved.map(isSound).every(Boolean);
  if (command.saveBaseline !== undefined) {
    if (!sound) throw new Error('No baseline was written: not everything ran and was verified.');
    writeFileSync(command.saveBaseline, baselineText(makeBaseline(saved, saved[0]?.source.commit)));
  }
  return sound && passed ? 0 : 1;
}

function writeJson(file: string, value: unknown): void {
  writeFileSync(file, `${JSON.stringify(value, undefined, 2)}\n`);
}

function isSound({ rows, failovers, problems }: SavedRun): boolean {
  const unverified = rows.filter(({ verified }) => !verified);
  if (rows.length + failovers.length > 0 && unverified.length === 0 && problems.length === 0) return true;
  console.error(`${rows.length} rows, ${unverified.length} not verified, ${problems.length} problems.`);
  return false;
}

try {
  process.exitCode = await main();
} catch (error) {
  console.error(error instanceof Error ? error.message : error);
  process.exitCode = 1;
}
