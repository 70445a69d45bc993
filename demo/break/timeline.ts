// The steps of an experiment, each with its time and in plain words.
// Invariant: it states only what was observed. A step that is bad news is marked so in words, not by its colour alone.

import { element } from '../dom.ts';
import { formatDuration } from '../format.ts';

/** The kind of step: an action, deliberate damage, a report of the store, a verified fact, an unexpected fault. */
export type StepKind = 'done' | 'broken' | 'reported' | 'verified' | 'wrong';

const NAMES: Readonly<Record<StepKind, string>> = {
  done: 'Done',
  broken: 'Broken',
  reported: 'Report',
  verified: 'Verified',
  wrong: 'Wrong',
};

export class Timeline {
  readonly #list: HTMLOListElement;
  #startMs = 0;

  constructor(list: HTMLOListElement) {
    this.#list = list;
  }

  /** Begins a new one. */
  restart(): void {
    this.#startMs = performance.now();
    this.#list.replaceChildren();
  }

  add(kind: StepKind, words: string): void {
    const at = element('time', { text: formatDuration(performance.now() - this.#startMs) });
    const badge = element('strong', { text: NAMES[kind] });
    this.#list.append(
      element('li', { attributes: { 'data-kind': kind } }, at, badge, element('span', { text: words })),
    );
  }
}
