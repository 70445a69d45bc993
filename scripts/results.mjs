// The results page: measures its figures, and checks that the shown figures are the measured ones.
// Invariant: there is no page of a run of which a part failed. The other parts stay in files, and the page can be made from them.

import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { build as bundle } from 'esbuild';
import { Problem, root } from './tools.mjs';

/** Rounds of the browser's suites: as many as an interval needs. */
const ROUNDS = 5;
/** Milliseconds of a round at most: with every suite beside every peer, rounds of two seconds would take over three hours. */
const ROUND_MS = 500;

/** @typedef {(entry: string, args: string[]) => Promise<void>} RunEntry runs a file of bench/ */

/**
 * `npm run bench -- results`: the browser's suites, then those on Node, over HTTP and from the navigation on, then the page.
 * @param {string[]} args
 * @param {RunEntry} runEntry
 * @param {(name: string) => string} target the program of a target
 */
export async function measureResults(args, runEntry, target) {
  const page = join('results', 'cli.ts');
  if (args.some((arg) => /^--(from|help)\b/.test(arg))) return runEntry(page, args);
  const { out, rest } = takeOut(args);
  const quick = rest.filter((arg) => arg === '--quick');
  const isGiven = (/** @type {string} */ flag) => rest.some((arg) => arg === flag || arg.startsWith(`${flag}=`));
  const rounds = isGiven('--rounds') ? [] : ['--rounds', String(ROUNDS)];
  const length = isGiven('--round-ms') || quick.length > 0 ? [] : ['--round-ms', String(ROUND_MS)];
  const folder = mkdtempSync(join(tmpdir(), 'varve-results-'));
  /** @type {[name: string, entry: string, args: string[]][]} */
  const parts = [
    ['browser', target('browser'), [...rest, ...rounds, ...length]],
    ['fs', target('fs'), ['--peers', 'sqlite,leveldb', ...quick]],
    ['http', target('http'), quick],
    ['visit', target('visit'), quick],
  ];
  const fileOf = (/** @type {string} */ name) => join(folder, `${name}.json`);
  /** @type {string[]} */
  const failed = [];
  for (const [name, entry, flags] of parts) {
    await runEntry(entry, [...flags, '--json', fileOf(name)]).catch((error) => {
      if (!(error instanceof Problem)) throw error;
      failed.push(name);
    });
    // For example a flag that it does not know; the other suites would take ten minutes for nothing.
    if (name === 'browser' && !existsSync(fileOf(name))) break;
  }
  const files = parts.map(([name]) => fileOf(name)).filter((file) => existsSync(file));
  if (failed.length > 0) {
    throw new Problem(
      `${failed.join(' and ')} did not end well, as the output above says.${files.length === 0 ? '' : ` A page of what was measured: npm run bench -- results --add --from ${files.join(',')}`}`,
    );
  }
  await runEntry(page, ['--from', files.join(','), ...out]);
  rmSync(folder, { recursive: true });
}

/**
 * Separates `--out`, which only the page accepts, from the other arguments.
 * @param {string[]} args
 */
function takeOut(args) {
  const at = args.indexOf('--out');
  if (at < 0) return { out: [], rest: args };
  return { out: args.slice(at, at + 2), rest: [...args.slice(0, at), ...args.slice(at + 2)] };
}

/** The code that reads docs/results.json.gz. */
async function resultsCode() {
  const outfile = join(root, 'build', 'results-code.mjs');
  await bundle({
    entryPoints: [join(root, 'bench', 'results', 'files.ts')],
    outfile,
    bundle: true,
    format: 'esm',
    platform: 'node',
    packages: 'external',
    logLevel: 'warning',
  });
  return import(pathToFileURL(outfile).href);
}

/** The published figures that the page of the benchmark shows, as JSON. */
export async function publishedFigures() {
  const { DATA, publishedOf, readResults } = await resultsCode();
  return JSON.stringify(publishedOf(readResults(join(root, DATA))));
}

/** Fails when the results page, its charts or the README's figures differ from what docs/results.json.gz yields. */
export async function checkResults() {
  const check = await resultsCode();
  /** @type {string[]} */
  const problems = check.checkResults(root);
  if (problems.length === 0) return;
  throw new Problem(
    `${problems.join('\n')}\nFigures come from docs/results.json.gz alone: \`npm run bench -- results\` measures and writes them.`,
  );
}
