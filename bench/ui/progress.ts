/**
 * How far a run is: a bar, what runs now, how long it may take still.
 *
 * Invariant: people who listen to the page hear when a run begins, at most once a minute how far it is, and how it ended;
 * the lines that change all the time are not read out.
 */

import type { RunEvent } from '../core/plan.ts';
import { announce, byId, setText } from './dom.ts';

const FIRST_GUESS_MS = 3000;
const ANNOUNCED_MS = 60_000;

/** The progress of one run after another. */
export class Progress {
  readonly #section = byId('progress');
  readonly #bar = byId<HTMLProgressElement>('bar');
  readonly #step = byId('step');
  readonly #left = byId('left');
  readonly #title = document.title;
  #began_ms = 0;
  #announced_ms = 0;

  /** A run begins. */
  begin(): void {
    this.#began_ms = performance.now();
    this.#announced_ms = this.#began_ms;
    this.#section.hidden = false;
    this.#bar.value = 0;
    setText(this.#step, 'Starts.');
    setText(this.#left, '');
    announce('The run begins.');
  }

  /** A run went on. */
  take({ done, total, text }: Extract<RunEvent, { type: 'progress' }>): void {
    const share = done / Math.max(total, 1);
    const spent_ms = performance.now() - this.#began_ms;
    this.#bar.value = share;
    setText(this.#step, text);
    const guess = share > 0 && spent_ms > FIRST_GUESS_MS ? leftText((spent_ms / share) * (1 - share)) : '';
    setText(this.#left, `${Math.floor(share * 100)}%${guess === '' ? '' : `, ${guess}`}`);
    document.title = `${Math.floor(share * 100)}% - ${this.#title}`;
    if (performance.now() - this.#announced_ms > ANNOUNCED_MS) {
      this.#announced_ms = performance.now();
      announce(`${this.#left.textContent}.`);
    }
  }

  /** A run ended. */
  end(text: string): void {
    this.#bar.value = 1;
    setText(this.#step, text);
    setText(this.#left, '');
    document.title = this.#title;
    announce(text);
  }
}

/** About how long, in words. */
export function leftText(left_ms: number): string {
  const seconds = left_ms / 1000;
  if (seconds < 10) return 'a few seconds left';
  if (seconds < 90) return `about ${Math.round(seconds / 10) * 10} s left`;
  return `about ${Math.round(seconds / 60)} min left`;
}
