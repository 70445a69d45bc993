// The entries of a range, a page at a time.
// Invariant: each page is a separate scan, from the last key of the page before or to the first, so that a list left open
// pins nothing in the engine.

import type { Key, KeyRange, Store } from 'varve';
import { byId, element, setText } from '../dom.ts';
import { formatCount, formatDuration, plural } from '../format.ts';
import { keyText } from './key-text.ts';
import { valueLine } from './value-text.ts';

const PAGE_ROWS = 25;
const LINE_LENGTH = 160;

/** Any store. */
export type AnyStore = Store<Key, unknown>;

type Row = readonly [key: Key, value: unknown];

export interface ListingEvents {
  onChoose(key: Key): void;
  onError(error: unknown): void;
}

export class Listing {
  readonly #events: ListingEvents;
  readonly #list = byId('keys-list', HTMLOListElement);
  readonly #status = byId('keys-status', HTMLElement);
  readonly #count = byId('keys-count', HTMLElement);
  readonly #previous = byId('keys-previous', HTMLButtonElement);
  readonly #next = byId('keys-next', HTMLButtonElement);
  #store: AnyStore | undefined;
  #range: KeyRange = {};
  #reverse = false;
  #rows: readonly Row[] = [];
  #running = new AbortController();

  constructor(events: ListingEvents) {
    this.#events = events;
    this.#previous.addEventListener('click', () => this.#turn(false));
    this.#next.addEventListener('click', () => this.#turn(true));
    this.#list.addEventListener('click', (event) => {
      const button = event.target instanceof Element ? event.target.closest('button') : null;
      const row = button === null ? undefined : this.#rows[Number(button.dataset['row'])];
      if (row !== undefined) this.#events.onChoose(row[0]);
    });
  }

  /** Shows the first page of a range. */
  async show(store: AnyStore, range: KeyRange, reverse: boolean): Promise<void> {
    this.#store = store;
    this.#range = range;
    this.#reverse = reverse;
    await this.#read(range, reverse, false);
    this.#previous.disabled = true;
    await this.#tellCount(store, range);
  }

  /** Reads the shown page again. */
  async renew(): Promise<void> {
    const first = this.#rows[0]?.[0];
    if (first === undefined) {
      if (this.#store !== undefined) await this.show(this.#store, this.#range, this.#reverse);
      return;
    }
    const { disabled } = this.#previous;
    const from = this.#reverse
      ? { ...cut(this.#range, 'upper'), lte: first }
      : { ...cut(this.#range, 'lower'), gte: first };
    await this.#read(disabled ? this.#range : from, this.#reverse, false);
    this.#previous.disabled = disabled;
    if (this.#store !== undefined) await this.#tellCount(this.#store, this.#range);
  }

  /** Goes to the next page, or to the one before. */
  async #turn(isOn: boolean): Promise<void> {
    const edge = (isOn ? this.#rows.at(-1) : this.#rows[0])?.[0];
    if (edge === undefined) return;
    // Upwards in key order when the list continues in that order, or goes back in the reverse order.
    const isUp = isOn !== this.#reverse;
    const range = isUp ? { ...cut(this.#range, 'lower'), gt: edge } : { ...cut(this.#range, 'upper'), lt: edge };
    await this.#read(range, !isUp, !isOn);
    if (isOn) this.#previous.disabled = false;
  }

  /** Reads a page; `isBack` where it is read from its end. */
  async #read(range: KeyRange, reverse: boolean, isBack: boolean): Promise<void> {
    const store = this.#store;
    if (store === undefined) return;
    this.#running.abort();
    const running = new AbortController();
    this.#running = running;
    const start = performance.now();
    try {
      const rows: Row[] = [];
      // One entry more than is shown: it reveals whether there are more.
      for await (const row of store.entries({ ...range, reverse, limit: PAGE_ROWS + 1, signal: running.signal }))
        rows.push(row);
      const hasMore = rows.length > PAGE_ROWS;
      rows.length = Math.min(rows.length, PAGE_ROWS);
      if (isBack) rows.reverse();
      this.#rows = rows;
      this.#draw();
      if (isBack) this.#previous.disabled = !hasMore;
      this.#next.disabled = !isBack && !hasMore;
      const took = formatDuration(performance.now() - start);
      setText(
        this.#status,
        rows.length === 0 ? 'No such keys.' : `${plural(rows.length, 'entry', 'entries')}, read in ${took}`,
      );
    } catch (error) {
      if (!running.signal.aborted) this.#events.onError(error);
    }
  }

  /** Shows how many entries there are, counted by the engine, after the first page. */
  async #tellCount(store: AnyStore, range: KeyRange): Promise<void> {
    const { signal } = this.#running;
    setText(this.#count, '');
    try {
      const start = performance.now();
      const count = await store.count({ ...range, signal });
      const took = formatDuration(performance.now() - start);
      setText(this.#count, `${formatCount(count)} in all, counted in ${took}`);
    } catch (error) {
      if (!signal.aborted) this.#events.onError(error);
    }
  }

  #draw(): void {
    const lines = this.#rows.map(([key, value], i) => {
      const button = element(
        'button',
        { class: 'entry', attributes: { type: 'button', 'data-row': String(i) } },
        element('code', { class: 'entry-key', text: keyText(key) }),
        element('span', { class: 'entry-value', text: valueLine(value, LINE_LENGTH) }),
      );
      return element('li', {}, button);
    });
    this.#list.replaceChildren(...lines);
  }
}

/** A range without its bounds on one side: another one takes their place. A prefix stays. */
function cut({ gt, gte, lt, lte, prefix }: KeyRange, side: 'lower' | 'upper'): KeyRange {
  const whole = side === 'lower' ? { lt, lte, prefix } : { gt, gte, prefix };
  return Object.fromEntries(Object.entries(whole).filter(([, value]) => value !== undefined));
}
