// Lists over ranges of keys: a country by population, or the names between two letters.
// Invariant: rows are read a page at a time, each page a separate scan after the last row shown, so that a list left
// open pins nothing in the engine.

import type { Key } from 'varve';
import { byId, element, setText } from './dom.ts';
import { countryName, formatCount, formatDuration, formatKey, plural } from './format.ts';
import type { Gazetteer, Page, Row } from './gazetteer.ts';

const PAGE_ROWS = 60;
/** The country to begin with. */
const COUNTRY = 'JP';

export interface BrowseEvents {
  onChoose(id: number): void;
  onError(error: unknown): void;
}

export class Browse {
  readonly #gazetteer: Gazetteer;
  readonly #events: BrowseEvents;
  readonly #form = byId('browse-form', HTMLFormElement);
  readonly #country = byId('browse-country', HTMLSelectElement);
  readonly #from = byId('browse-from', HTMLInputElement);
  readonly #to = byId('browse-to', HTMLInputElement);
  readonly #letters = byId('browse-letters', HTMLOutputElement);
  readonly #reverse = byId('browse-reverse', HTMLInputElement);
  readonly #scroller = byId('browse-scroller', HTMLElement);
  readonly #list = byId('browse-list', HTMLOListElement);
  readonly #status = byId('browse-status', HTMLElement);
  readonly #call = byId('browse-call', HTMLElement);
  /** The country that the visitor chose. */
  #chosen = '';
  #after: Key | undefined;
  #isAtEnd = false;
  #isReading = false;
  #running = new AbortController();

  constructor(gazetteer: Gazetteer, events: BrowseEvents) {
    this.#gazetteer = gazetteer;
    this.#events = events;
    this.#form.addEventListener('input', (event) => {
      if (event.target === this.#country) this.#chosen = this.#country.value;
      this.#keepOrder(event.target);
      this.restart();
    });
    this.#form.addEventListener('submit', (event) => event.preventDefault());
    this.#list.addEventListener('click', (event) => {
      const button = event.target instanceof Element ? event.target.closest('button') : null;
      if (button !== null) this.#events.onChoose(Number(button.dataset['id']));
    });
    this.#scroller.addEventListener('scroll', () => this.#more(), { passive: true });
    this.#keepOrder(null);
  }

  /** Fills the countries with their counts, keeping the one that is chosen. */
  showCountries(): void {
    // Not while the visitor is choosing in the list.
    if (document.activeElement === this.#country && this.#country.childElementCount > 0) return;
    const wanted = this.#chosen || COUNTRY;
    const codes = [...this.#gazetteer.counts].filter(([, count]) => count > 0);
    const names = codes.map(([code, count]) => ({ code, name: countryName(code), count }));
    names.sort((a, b) => a.name.localeCompare(b.name, 'en'));
    this.#country.replaceChildren(
      ...names.map(({ code, name, count }) =>
        element('option', { text: `${name} (${formatCount(count)})`, attributes: { value: code } }),
      ),
    );
    if (codes.some(([code]) => code === wanted)) this.#country.value = wanted;
  }

  /** Reads the shown rows again; where none is shown, it restarts the list. */
  async renew(): Promise<void> {
    const shown = this.#list.childElementCount;
    if (shown === 0) return this.restart();
    this.#running.abort();
    const running = new AbortController();
    this.#running = running;
    this.#isReading = true;
    const start = performance.now();
    try {
      const limit = Math.max(shown, PAGE_ROWS);
      const page = { after: undefined, reverse: this.#reverse.checked, limit, signal: running.signal };
      const rows = await this.#read(page);
      if (running.signal.aborted) return;
      const { scrollTop } = this.#scroller;
      this.#isAtEnd = rows.length < limit;
      this.#after = rows.at(-1)?.key;
      this.#replace(rows);
      this.#scroller.scrollTop = scrollTop;
      this.#showCount(rows.length, performance.now() - start);
    } catch (error) {
      if (!running.signal.aborted) this.#events.onError(error);
    }
    if (running.signal.aborted) return;
    this.#isReading = false;
    this.#more();
  }

  /** Reads the list anew, from its start. */
  restart(): void {
    this.#running.abort();
    this.#running = new AbortController();
    this.#after = undefined;
    this.#isAtEnd = this.#isReading = false;
    this.#list.replaceChildren();
    this.#scroller.scrollTop = 0;
    this.#more();
  }

  async #more(): Promise<void> {
    if (this.#isReading || this.#isAtEnd || !this.#isNearEnd()) return;
    this.#isReading = true;
    const { signal } = this.#running;
    const start = performance.now();
    try {
      const rows = await this.#read({ after: this.#after, reverse: this.#reverse.checked, limit: PAGE_ROWS, signal });
      if (signal.aborted) return;
      this.#isAtEnd = rows.length < PAGE_ROWS;
      this.#after = rows.at(-1)?.key ?? this.#after;
      this.#list.append(...rows.map((row) => this.#line(row)));
      this.#showCount(rows.length, performance.now() - start);
    } catch (error) {
      if (!signal.aborted) this.#events.onError(error);
    }
    if (signal.aborted) return;
    this.#isReading = false;
  }

  /** Replaces the shown rows; the row that has the focus keeps it. */
  #replace(rows: readonly Row[]): void {
    const { activeElement: active } = document;
    const focused = active instanceof HTMLElement && this.#list.contains(active) ? active.dataset['id'] : undefined;
    this.#list.replaceChildren(...rows.map((row) => this.#line(row)));
    if (focused === undefined) return;
    this.#list.querySelector<HTMLElement>(`[data-id="${focused}"]`)?.focus({ preventScroll: true });
  }

  /** Whether the list will soon need more rows. */
  #isNearEnd(): boolean {
    const { scrollHeight, scrollTop, clientHeight } = this.#scroller;
    return this.#list.childElementCount === 0 || scrollHeight - scrollTop < 2 * clientHeight;
  }

  #read(page: Page): Promise<Row[]> {
    const { reverse } = page;
    const after = page.after === undefined ? '' : `, ${reverse ? 'lt' : 'gt'}: ${formatKey(page.after)}`;
    const order = reverse ? ', reverse: true' : '';
    if (this.#isByName) {
      const [from, to] = [letter(this.#from), letter(this.#to)];
      const lower = after !== '' && !reverse ? after.slice(2) : `gte: ['name', '${from}']`;
      const upper = after !== '' && reverse ? after.slice(2) : `lt: ['name', '${to}\\u{10ffff}']`;
      setText(this.#call, `db.entries({ ${lower}, ${upper}${order}, limit: ${page.limit} })`);
      return this.#gazetteer.byName(from, to, page);
    }
    const country = this.#country.value;
    setText(this.#call, `db.entries({ prefix: ['country', '${country}']${after}${order}, limit: ${page.limit} })`);
    return this.#gazetteer.byCountry(country, page);
  }

  #showCount(rows: number, tookMs: number): void {
    const shown = this.#list.childElementCount;
    if (shown === 0) return setText(this.#status, 'Nothing here yet.');
    const end = this.#isAtEnd ? 'that is all' : 'scroll for more';
    setText(this.#status, `${plural(shown, 'row', 'rows')}, ${end}; the last ${rows} took ${formatDuration(tookMs)}`);
  }

  #line({ id, name, country, population }: Row): HTMLLIElement {
    const place = this.#isByName ? [element('span', { class: 'row-place', text: countryName(country) })] : [];
    const button = element(
      'button',
      { class: 'row', attributes: { type: 'button', 'data-id': String(id) } },
      element('span', { class: 'row-name', text: name }),
      ...place,
      element('span', { class: 'row-count', text: formatCount(population) }),
    );
    return element('li', {}, button);
  }

  get #isByName(): boolean {
    return new FormData(this.#form).get('by') === 'name';
  }

  /** Keeps the two ends of the alphabet from crossing, and shows the controls of the chosen kind of list. */
  #keepOrder(moved: EventTarget | null): void {
    if (Number(this.#from.value) > Number(this.#to.value)) {
      if (moved === this.#from) this.#to.value = this.#from.value;
      else this.#from.value = this.#to.value;
    }
    const [from, to] = [letter(this.#from), letter(this.#to)];
    this.#from.setAttribute('aria-valuetext', from);
    this.#to.setAttribute('aria-valuetext', to);
    setText(this.#letters, from === to ? from.toUpperCase() : `${from.toUpperCase()} to ${to.toUpperCase()}`);
    this.#form.dataset['by'] = this.#isByName ? 'name' : 'country';
    const track = byId('browse-range', HTMLElement);
    track.style.setProperty('--from', String(Number(this.#from.value) / 25));
    track.style.setProperty('--to', String(Number(this.#to.value) / 25));
  }
}

function letter(input: HTMLInputElement): string {
  return String.fromCharCode(97 + Number(input.value));
}
