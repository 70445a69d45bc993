// npm as the user of a project calls it. Invariant: it asks no registry for anything; what is not in the tarball is unavailable.

import { spawnSync } from 'node:child_process';

/** Variables through which the npm that runs the tests would change the npm that a test runs. */
const INHERITED = /^npm_(config|package|lifecycle)_/i;

/** Far more than npm needs on a busy machine. */
const LIMIT_MS = 300_000;

/** Runs npm in a folder; returns its standard output. */
export function npm(args: readonly string[], folder: string): string {
  const env = Object.fromEntries(Object.entries(process.env).filter(([name]) => !INHERITED.test(name)));
  const { status, stdout, stderr, error } = spawnSync('npm', [...args, '--offline', '--no-audit', '--no-fund'], {
    cwd: folder,
    env: { ...env, NO_COLOR: '1', npm_config_update_notifier: 'false' },
    encoding: 'utf8',
    timeout: LIMIT_MS,
    shell: process.platform === 'win32',
  });
  if (status !== 0) throw new Error(`npm ${args.join(' ')} ended with ${status ?? error}: ${stderr}${stdout}`);
  return stdout;
}
