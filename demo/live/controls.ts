// The visitor's settings: how fast to write and read, what, and whether at all.
// Invariant: a slider's output states its setting in words.

import { byId, setText } from '../dom.ts';
import { formatCount } from '../format.ts';
import type { Wishes } from './generator.ts';

/** Steps of the sliders, per second. */
const WRITES = [0, 10, 50, 200, 500, 1000, 2000, 5000, 10_000, 20_000, 50_000, Number.POSITIVE_INFINITY];
const READS = [0, 10, 100, 500, 1000, 2000, 5000, 10_000];

export class Controls {
  readonly #writes = byId('live-writes', HTMLInputElement);
  readonly #reads = byId('live-reads', HTMLInputElement);
  readonly #overwrites = byId('live-overwrites', HTMLInputElement);
  readonly #deletes = byId('live-deletes', HTMLInputElement);
  readonly #order = byId('live-order', HTMLSelectElement);

  /** @param onChange called with every change */
  constructor(onChange: (wishes: Wishes) => void) {
    this.#writes.max = String(WRITES.length - 1);
    this.#reads.max = String(READS.length - 1);
    byId('live-form', HTMLFormElement).addEventListener('input', (event) => {
      this.#keepWhole(event.target);
      this.#say();
      onChange(this.wishes);
    });
    byId('live-form', HTMLFormElement).addEventListener('submit', (event) => event.preventDefault());
    this.#say();
  }

  get wishes(): Wishes {
    return {
      writes: WRITES[Number(this.#writes.value)] ?? 0,
      reads: READS[Number(this.#reads.value)] ?? 0,
      overwrites: Number(this.#overwrites.value),
      deletes: Number(this.#deletes.value),
      inOrder: this.#order.value === 'rising',
    };
  }

  /** Overwrites and deletes together are at most all writes. */
  #keepWhole(moved: EventTarget | null): void {
    const rest = 100 - Number(moved === this.#deletes ? this.#deletes.value : this.#overwrites.value);
    const other = moved === this.#deletes ? this.#overwrites : this.#deletes;
    if (Number(other.value) > rest) other.value = String(rest);
  }

  #say(): void {
    const { writes, reads, overwrites, deletes } = this.wishes;
    const speed = writes === Number.POSITIVE_INFINITY ? 'as fast as they go' : `${formatCount(writes)} per second`;
    say('live-writes', writes === 0 ? 'none' : speed);
    say('live-reads', reads === 0 ? 'none' : `${formatCount(reads)} per second`);
    say('live-overwrites', `${overwrites} % of writes`);
    say('live-deletes', `${deletes} % of writes`);
  }
}

/** States the setting of a slider in words, for visitors who see it and for those who hear it. */
function say(id: string, words: string): void {
  setText(byId(`${id}-text`, HTMLOutputElement), words);
  byId(id, HTMLInputElement).setAttribute('aria-valuetext', words);
}
