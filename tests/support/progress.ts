// The test's end of the reports of writers: how far each store's history is acknowledged. Invariant: it never runs ahead of
// the writer; after a kill it may be behind what the writer knew, which only makes the test more lenient.

import type { Page } from 'playwright';
import { ACKNOWLEDGED, FAILED } from './writer.ts';

interface Waiter {
  readonly name: string;
  readonly sets: number;
  readonly resolve: () => void;
  readonly reject: (error: Error) => void;
}

/** Calls a listener with every line that a page and its workers log. */
export type Hear = (listener: (text: string) => void) => void;

/** The lines that a page and its workers log, where Playwright drives it. */
export function consoleOf(page: Page): Hear {
  return (listener) => void page.on('console', (message) => listener(message.text()));
}

/** Listens to the writers of one page and its workers. */
export class Progress {
  readonly #groups = new Map<string, number>();
  readonly #sets = new Map<string, number>();
  #waiters: Waiter[] = [];

  constructor(hear: Hear) {
    hear((text) => this.#hear(text));
  }

  /** How many groups of a store are acknowledged. */
  groups(name: string): number {
    return this.#groups.get(name) ?? 0;
  }

  /** Resolves when so many sets of a store are acknowledged; rejects when its writer failed. */
  reached(name: string, sets: number): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#waiters.push({ name, sets, resolve, reject });
      this.#wake();
    });
  }

  #hear(text: string): void {
    if (text.startsWith(ACKNOWLEDGED)) {
      const [, name = '', groups, sets] = text.split(' ');
      this.#groups.set(name, Number(groups));
      this.#sets.set(name, Number(sets));
      this.#wake();
    } else if (text.startsWith(FAILED)) {
      for (const waiter of this.#waiters.splice(0)) waiter.reject(new Error(text));
    }
  }

  #wake(): void {
    this.#waiters = this.#waiters.filter(({ name, sets, resolve }) => {
      if ((this.#sets.get(name) ?? 0) < sets) return true;
      resolve();
      return false;
    });
  }
}
