/**
 * `npm run bench`: runs suites in Chromium, prints and writes the results, and compares them with a baseline.
 *
 * Invariant: the exit code is 0 when everything ran and was verified and, with `--compare`, nothing has become slower.
 * A missed target is no failure.
 */

import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { type Baseline, baselineText, makeBaseline, parseBaseline } from '../../core/baseline.ts';
import type { Plan } from '../../core/plan.ts';
import { command, provenanceText, writeFiles } from '../command.ts';
import { runPlanInBrowser, type SavedRun } from './browser-run.ts';
import { type Flags, listText, parseFlags, planOf } from './flags.ts';
import { judgeRun } from './gate.ts';

function readBaseline(file: string): Baseline {
  if (!existsSync(file)) throw new Error(`There is no baseline ${file}: write one with --save-baseline ${file}.`);
  return parseBaseline(readFileSync(file, 'utf8'), file);
}

/** The plan of a command line: everything that it does not leave out. */
function planFor(params: URLSearchParams): Plan {
  if (!params.has('mode')) params.set('mode', 'full');
  return planOf(params);
}

/** The results of a plan that ran so often, one browser after the other; each report is printed. */
async function measure(plan: Plan, { runs }: Flags, profile?: string) {
  const saved: SavedRun[] = [];
  const texts: string[] = [];
  let wasCancelled = false;
  for (let n = 0; n < runs && !wasCancelled; n++) {
    if (runs > 1) console.log(`\nRun ${n + 1} of ${runs}`);
    const run = await runPlanInBrowser(plan, { profile });
    saved.push(run.saved);
    texts.push(`${run.markdown}\n${provenanceText(run.saved)}\n`);
    console.log(`\n${texts.at(-1)}`);
    ({ wasCancelled } = run);
  }
  return { saved, text: texts.join('\n'), wasCancelled };
}

async function main(): Promise<void> {
  const { flags, params } = parseFlags(process.argv.slice(2));
  const { runs, compare, saveBaseline } = flags;
  if (flags.list) return console.log(listText());
  const baseline = compare === undefined ? undefined : readBaseline(compare);
  if (baseline && params.size > 0) throw new Error('With --compare the baseline says what is run.');
  const { saved, text, wasCancelled } = await measure(baseline?.plan ?? planFor(params), flags, flags.profile);
  let judged = '';
  let isSlower = false;
  if (baseline !== undefined && !wasCancelled) {
    const again = async (part: Plan) => {
      const more = await measure(part, flags);
      if (more.wasCancelled) throw new Error('The comparison was cancelled: it has no verdict.');
      return more.saved[0]?.rows ?? [];
    };
    const judgement = await judgeRun(baseline, saved[0]?.rows ?? [], flags.failOver, again);
    judged = `\n${judgement.text}`;
    isSlower = !judgement.passed;
    console.log(judged);
  }
  // One run is written as itself, several as a list.
  writeFiles(runs === 1 ? saved[0] : saved, text + judged, flags);
  const isSound = saved.map(soundness).every(Boolean);
  if (saveBaseline !== undefined) {
    if (!isSound) throw new Error('No baseline was written: not everything ran and was verified.');
    writeFileSync(saveBaseline, baselineText(makeBaseline(saved, saved[0]?.source.commit)));
  }
  if (!isSound || isSlower) process.exitCode = 1;
}

function soundness({ rows, problems }: SavedRun): boolean {
  const unverified = rows.filter(({ verified }) => !verified);
  if (rows.length > 0 && unverified.length === 0 && problems.length === 0) return true;
  console.error(`${rows.length} rows, ${unverified.length} not verified, ${problems.length} problems.`);
  return false;
}

await command(main);
