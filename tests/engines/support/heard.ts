// The test's end of the reports of a life (fixtures/tab-writer.ts): how far it is acknowledged, and the faults it found.
// Invariant: it is never ahead of the life; after a kill it may be behind what the life knew, which only makes the test more
// lenient.

import type { Tab } from './engine.ts';

/** A life that makes no progress for this long has hung. */
const HANG_MS = 60_000;

export class Heard {
  readonly faults: string[] = [];
  acknowledged = { groups: 0, links: 0, count: 0, shared: 0 };
  readonly #life: number;
  #waiting: { readonly groups: number; readonly resolve: () => void; readonly reject: (error: Error) => void }[] = [];

  constructor(life: number, tab: Tab) {
    this.#life = life;
    tab.hear((line) => this.#hear(line));
  }

  /** Resolves when so many more groups, and something of everything else, are acknowledged; rejects when the life finds something wrong. */
  async more(groups: number): Promise<void> {
    const { links } = this.acknowledged;
    const target = this.acknowledged.groups + groups;
    let timer: NodeJS.Timeout | undefined;
    await new Promise<void>((resolve, reject) => {
      timer = setTimeout(() => {
        const { groups: now, links: linksNow } = this.acknowledged;
        reject(new Error(`life ${this.#life} hangs: ${now} groups of ${target}, ${linksNow - links} links since`));
      }, HANG_MS);
      this.#waiting.push({ groups: target, resolve, reject });
      this.#wake();
    }).finally(() => clearTimeout(timer));
  }

  #hear(line: string): void {
    const [word, life, ...rest] = line.split(' ');
    if (Number(life) !== this.#life) return;
    if (word === 'done') {
      const [groups = 0, links = 0, count = 0, shared = 0] = rest.map(Number);
      this.acknowledged = { groups, links, count, shared };
    } else if (word === 'fault') this.faults.push(rest.join(' '));
    this.#wake();
  }

  #wake(): void {
    const [fault] = this.faults;
    this.#waiting = this.#waiting.filter(({ groups, resolve, reject }) => {
      if (fault !== undefined) reject(new Error(`life ${this.#life}: ${fault}`));
      else if (this.acknowledged.groups >= groups) resolve();
      else return true;
      return false;
    });
  }
}
