/**
 * `npm run bench`: runs suites in Chromium, prints and writes the results, and compares them with a baseline.
 *
 * Invariant: the exit code is 0 when everything ran and was verified and, with `--compare`, nothing has become slower.
 * A missed target is no failure.
 */

import { writeFileSync } from 'node:fs';
import { baselineText, makeBaseline } from '../../core/compare/baseline.ts';
import type { Plan } from '../../core/plan.ts';
import { ENGINES } from '../../peers/all.ts';
import { command, provenanceText, writeFiles } from '../command.ts';
import { runPlanInBrowser, type SavedRun } from './browser-run.ts';
import { type Command, helpText, listText, parseFlags, planOf } from './flags.ts';
import { gatePlan, judgeRuns, readBaseline } from './gate.ts';

/** The plan of a command line: as the baseline says, or everything that it does not leave out. */
function planFor({ params, peers, last }: Command): Plan {
  const compare = last('compare');
  if (!params.has('mode') && compare === undefined) params.set('mode', 'full');
  if (peers !== undefined) {
    const varve = ENGINES.filter(({ role }) => role === 'varve').map(({ name }) => name);
    params.set('engines', [...varve, ...peers].join(','));
  }
  return compare === undefined ? planOf(params) : gatePlan(readBaseline(compare), params);
}

/** The results of a plan that ran so often, one browser after the other; each report is printed. */
async function measure(plan: Plan, runs: number, { last }: Command, profile = last('profile')) {
  const saved: SavedRun[] = [];
  const texts: string[] = [];
  let wasCancelled = false;
  for (let n = 0; n < runs && !wasCancelled; n++) {
    if (runs > 1) console.log(`\nRun ${n + 1} of ${runs}`);
    const run = await runPlanInBrowser(plan, { headed: last('headed') !== undefined, profile });
    saved.push(run.saved);
    texts.push(`${run.markdown}\n${provenanceText(run.saved)}\n`);
    console.log(`\n${texts.at(-1)}`);
    ({ wasCancelled } = run);
  }
  return { saved, text: texts.join('\n'), wasCancelled };
}

async function main(): Promise<void> {
  const asked = parseFlags(process.argv.slice(2));
  const { runs, last } = asked;
  if (last('help') !== undefined) return console.log(helpText());
  if (last('list') !== undefined) return console.log(listText());
  const plan = planFor(asked);
  const { saved, text, wasCancelled } = await measure(plan, runs, asked);
  const compare = last('compare');
  let judged = '';
  let isSlower = false;
  if (compare !== undefined && !wasCancelled) {
    const again = async (part: Plan) => {
      const more = await measure(part, runs, asked, undefined);
      if (more.wasCancelled) throw new Error('The comparison was cancelled: it has no verdict.');
      return more.saved.map(({ rows }) => rows);
    };
    const judgement = await judgeRuns(
      readBaseline(compare),
      plan,
      saved.map(({ rows }) => rows),
      asked.failOver,
      again,
    );
    judged = `\n${judgement.text}`;
    isSlower = !judgement.passed;
    console.log(judged);
  }
  // One run is written as itself, several as a list.
  writeFiles(runs === 1 ? saved[0] : saved, text + judged, { json: last('json'), markdown: last('markdown') });
  const isSound = saved.map(soundness).every(Boolean);
  const baseline = last('save-baseline');
  if (baseline !== undefined) {
    if (!isSound) throw new Error('No baseline was written: not everything ran and was verified.');
    writeFileSync(baseline, baselineText(makeBaseline(saved, saved[0]?.source.commit)));
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
