// The projects of examples/ in fresh folders, each with the dependencies that it names and no others.

import { cpSync, readFileSync } from 'node:fs';
import { basename, delimiter, dirname, join } from 'node:path';
import { expect } from 'vitest';
import { version } from '../../../package.json' with { type: 'json' };
import { env, root } from '../../../scripts/tools.mjs';
import { RUNTIMES } from '../../support/runtimes.ts';
import { Project } from './project.ts';

/** Not installed here: workerd runs without it (`worker.test.ts`). */
const WRANGLER = 'wrangler';

/** The programs of npm packages; those of runtimes also work without the scripts of their packages. */
const PATH = [...RUNTIMES.map(({ command }) => dirname(command)), env.PATH].join(delimiter);

/** A file of examples/. */
export function exampleFile(...path: readonly string[]): string {
  return readFileSync(join(root, 'examples', ...path), 'utf8');
}

/** An example whose types are checked, of the running test. */
export async function exampleProject(name: string): Promise<Project> {
  const { scripts, dependencies, devDependencies } = JSON.parse(exampleFile(name, 'package.json'));
  const { varve, ...others } = { ...dependencies, ...devDependencies };
  expect(varve).toBe(`^${version}`);
  const project = Project.forTest(
    {},
    Object.keys(others).filter((other) => other !== WRANGLER),
  );
  const filter = (path: string): boolean => !['node_modules', 'dist', 'data'].includes(basename(path));
  cpSync(join(root, 'examples', name), project.folder, { recursive: true, filter });
  if (scripts.check) await project.run('env', `PATH=${PATH}`, 'sh', '-c', scripts.check);
  return project;
}

/** Starts an example; resolves with the address at which it serves. `more` are more arguments, `settings` are variables: `PORT=0`. */
export async function startExample(name: string, more: string, ...settings: readonly string[]): Promise<string> {
  const project = await exampleProject(name);
  const { start } = JSON.parse(exampleFile(name, 'package.json')).scripts;
  const shell = ['env', `PATH=${PATH}`, ...settings, 'sh', '-c', `exec ${start} ${more}`] as const;
  const [url] = await project.serve(/http:\/\/[\w.]+:\d+/, ...shell);
  return url;
}
