/** The engines of the browser, as peers/all.ts hands them in: options and pages name them without knowing them. */

import type { Engine } from './engine.ts';

let known: readonly Engine[] = [];

/** Makes these the engines that can be chosen. */
export function useEngines(engines: readonly Engine[]): void {
  known = engines;
}

/** The engines that can be chosen. */
export function engines(): readonly Engine[] {
  return known;
}
