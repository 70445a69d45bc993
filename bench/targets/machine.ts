/** What a run was made on and of: the machine, and the commit of the working tree. */

import { cpus, loadavg, release, type as system, totalmem } from 'node:os';
import { capture } from '../../scripts/tools.mjs';

/** The machine, without anything that names it or its owner. */
export interface Machine {
  /** The processor's model as the system tells it. */
  readonly processor: string;
  readonly cores: number;
  readonly memoryBytes: number;
  /** Kind and version of the kernel. */
  readonly system: string;
  /** Of Node, which drives the browser and runs the server suites. */
  readonly node: string;
}

/** What was measured. */
export interface Source {
  /** The abbreviated hash of the commit; undefined outside of a repository. */
  readonly commit?: string;
  /** Nothing was changed beside that commit. */
  readonly clean: boolean;
}

/** This machine. */
export function machine(): Machine {
  const all = cpus();
  return {
    processor: all[0]?.model.trim() || 'not told',
    cores: all.length,
    memoryBytes: totalmem(),
    // The version alone: what is behind it names a provider or a build.
    system: `${system()} ${/^[\d.]+/.exec(release())?.[0] ?? release()}`,
    node: process.versions.node,
  };
}

/** The load of the last minute; 0 where the system does not tell it (Windows). */
export function loadNow(): number {
  return Number((loadavg()[0] ?? 0).toFixed(1));
}

/** A machine and its load in words. */
export function machineText({ processor, cores, system }: Machine, load: number): string {
  return `${processor}, ${cores} cores, ${system}; load average ${load}`;
}

/** The commit of this working tree. */
export function source(): Source {
  const commit = capture('git', ['rev-parse', '--short=10', 'HEAD'])?.trim();
  const status = capture('git', ['status', '--porcelain']);
  return { ...(commit === undefined ? {} : { commit }), clean: status?.trim() === '' };
}
