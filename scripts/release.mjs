// `npm run release [-- --dry-run]`: publishes one version everywhere: the package on npm and JSR, the engine and its cipher on crates.io.
// Invariant: it publishes nothing unless all three registries' own dry runs are without a warning that is not known. `--dry-run` ends there.
// On GitHub it publishes to npm with provenance, for which the package must name its repository.

import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { build } from './build.mjs';
import { JSR, JSR_WARNING, stageJsr } from './jsr.mjs';
import { env, main, Problem, root, run, step } from './tools.mjs';

const CRATES = ['--package', 'varve-cipher', '--package', 'varve-engine'];
/** The build was made here; `prepack` would make it again. */
const NPM = ['publish', '--ignore-scripts'];
/** The folder is a copy, outside of the repository's history. */
const DENO = ['publish', '--allow-dirty'];
/** Known warnings: npm's in every dry run of somebody who is not logged in, JSR's, and the last line of each dry run of cargo. */
const KNOWN = ['requires you to be logged in', JSR_WARNING, 'warning: aborting upload due to dry run'];

const isDry = process.argv.includes('--dry-run');
const { GITHUB_SERVER_URL, GITHUB_REPOSITORY, GITHUB_REF_TYPE, GITHUB_REF_NAME } = process.env;

await main(async () => {
  checkVersions();
  if (GITHUB_REPOSITORY) {
    const url = `git+${GITHUB_SERVER_URL}/${GITHUB_REPOSITORY}.git`;
    await run('npm', ['pkg', 'set', 'repository.type=git', `repository.url=${url}`]);
  }
  await build();
  stageJsr();
  await step('npm, dry run', () => withoutWarnings('npm', [...NPM, '--dry-run']));
  await step('JSR, dry run', () => withoutWarnings('deno', [...DENO, '--dry-run'], JSR));
  await step('crates.io, dry run', () => withoutWarnings('cargo', ['publish', ...CRATES, '--dry-run']));
  if (isDry) return;
  await run('npm', [...NPM, ...(GITHUB_REPOSITORY ? ['--provenance', '--access', 'public'] : [])]);
  await run('deno', DENO, { cwd: JSR });
  await run('cargo', ['publish', ...CRATES]);
});

/** One version is in package.json, Cargo.toml, the changelog and the tag. */
function checkVersions() {
  const text = (/** @type {string} */ file) => readFileSync(join(root, file), 'utf8');
  const { version } = JSON.parse(text('package.json'));
  const crate = /^version = "(.*)"$/m.exec(text('Cargo.toml'))?.[1];
  if (crate !== version) throw new Problem(`package.json has version ${version}, Cargo.toml has ${crate}.`);
  if (isDry) return;
  const [, date] =
    text('CHANGELOG.md').match(new RegExp(`^## ${version.replaceAll('.', '\\.')} \\((.*)\\)$`, 'm')) ?? [];
  if (!date || date === 'unreleased') throw new Problem(`CHANGELOG.md has no date for version ${version}.`);
  if (GITHUB_REF_TYPE === 'tag' && GITHUB_REF_NAME !== `v${version}`) {
    throw new Problem(`The tag is ${GITHUB_REF_NAME}, the version ${version}.`);
  }
}

/**
 * Runs a dry run; its warnings are failures.
 * @param {string} command
 * @param {string[]} args
 * @param {string} [cwd]
 */
function withoutWarnings(command, args, cwd = root) {
  const { status, stdout, stderr } = spawnSync(command, args, {
    cwd,
    env: { ...env, NO_COLOR: '1' },
    encoding: 'utf8',
  });
  const warnings = stderr.split('\n').filter((line) => /^(npm )?warn(ing)?\b/i.test(line));
  const found = warnings.filter((line) => !KNOWN.some((known) => line.includes(known)));
  if (status !== 0 || found.length > 0) throw new Problem(`${[command, ...args].join(' ')}:\n${stdout}${stderr}`);
}
