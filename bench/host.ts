/** The machine that a benchmark on Node ran on, as its result tells it. */

import { availableParallelism, cpus, loadavg, release, totalmem } from 'node:os';
import process from 'node:process';

/** What a reader needs to judge absolute figures by. */
export interface Host {
  readonly cpu: string;
  readonly cores: number;
  readonly memoryBytes: number;
  readonly system: string;
  /** Programs that wanted to run, on average over the last minute, when the result was written: above `cores`, the machine was busy. */
  readonly load: number;
}

/** This machine, now. */
export function hostNow(): Host {
  return {
    cpu: cpus()[0]?.model.trim() ?? 'unknown',
    cores: availableParallelism(),
    memoryBytes: totalmem(),
    system: `${process.platform} ${release()}, ${process.arch}`,
    load: Math.round((loadavg()[0] ?? 0) * 100) / 100,
  };
}

/** In words: the CPU, its cores and the load. */
export function hostText({ cpu, cores, system, load }: Host): string {
  return `${cpu}, ${cores} cores, ${system}; load average ${load}`;
}
