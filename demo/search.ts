// The search field and its list: the largest cities whose names begin with the typed text.
// Invariant: the list always answers the text in the field; an outdated answer is dropped.

import { type City, coveredLength, fold } from './city.ts';
import { byId, element, setText } from './dom.ts';
import { countryName, formatCount, formatDuration, plural } from './format.ts';
import type { Found, Gazetteer } from './gazetteer.ts';

const RESULTS = 8;

export interface SearchEvents {
  /** The visitor chose a city with Enter, a click or a touch. */
  onChoose(id: number): void;
  onError(error: unknown): void;
}

export class Search {
  readonly #gazetteer: Gazetteer;
  readonly #events: SearchEvents;
  readonly #input = byId('find-input', HTMLInputElement);
  readonly #list = byId('find-results', HTMLElement);
  readonly #status = byId('find-status', HTMLElement);
  readonly #call = byId('find-call', HTMLElement);
  #cities: readonly City[] = [];
  #active = -1;
  #shownText = '';
  #running = new AbortController();

  constructor(gazetteer: Gazetteer, events: SearchEvents) {
    this.#gazetteer = gazetteer;
    this.#events = events;
    this.#input.addEventListener('input', () => this.run());
    this.#input.addEventListener('keydown', (event) => this.#onKey(event));
    // Before the click, so that the field keeps the focus.
    this.#list.addEventListener('mousedown', (event) => event.preventDefault());
    this.#list.addEventListener('click', (event) => {
      const option = event.target instanceof Element ? event.target.closest('[role=option]') : null;
      if (option !== null) this.#choose([...this.#list.children].indexOf(option));
    });
    document.addEventListener('keydown', (event) => {
      if (event.key !== '/' || event.ctrlKey || event.metaKey || event.altKey || isTyping(event.target)) return;
      event.preventDefault();
      this.#input.focus();
      this.#input.select();
    });
  }

  /** The first city of the list. */
  get first(): City | undefined {
    return this.#cities[0];
  }

  /** Searches again for the text in the field. */
  async run(): Promise<void> {
    this.#running.abort();
    const running = new AbortController();
    this.#running = running;
    const text = this.#input.value;
    try {
      const found = await this.#gazetteer.search(text, RESULTS, running.signal);
      if (!running.signal.aborted) this.#show(text, found);
    } catch (error) {
      if (!running.signal.aborted) this.#events.onError(error);
    }
  }

  #show(text: string, found: Found): void {
    const prefix = fold(text);
    const active = this.#cities[this.#active]?.id;
    this.#cities = found.cities;
    this.#list.replaceChildren(...found.cities.map((city, i) => option(city, i, prefix)));
    // The chosen city stays chosen when the list is read again.
    const stays = text === this.#shownText && active !== undefined;
    this.#shownText = text;
    this.#activate(stays ? found.cities.findIndex(({ id }) => id === active) : -1);
    setText(this.#status, sentence(prefix, found));
    setText(this.#call, found.call);
  }

  #onKey(event: KeyboardEvent): void {
    if (event.isComposing) return;
    const count = this.#cities.length;
    if (event.key === 'ArrowDown' && count > 0) this.#activate((this.#active + 1) % count);
    else if (event.key === 'ArrowUp' && count > 0) this.#activate(this.#active <= 0 ? count - 1 : this.#active - 1);
    else if (event.key === 'Enter') this.#choose(Math.max(0, this.#active));
    else if (event.key === 'Escape' && this.#input.value !== '') {
      this.#input.value = '';
      this.run();
    } else return;
    event.preventDefault();
  }

  #activate(index: number): void {
    this.#list.children[this.#active]?.setAttribute('aria-selected', 'false');
    this.#active = index;
    const option = this.#list.children[index];
    if (option === undefined) {
      this.#input.removeAttribute('aria-activedescendant');
      return;
    }
    option.setAttribute('aria-selected', 'true');
    this.#input.setAttribute('aria-activedescendant', option.id);
  }

  #choose(index: number): void {
    const city = this.#cities[index];
    if (city === undefined) return;
    this.#activate(index);
    this.#events.onChoose(city.id);
  }
}

function sentence(prefix: string, { cities, matches, tookMs }: Found): string {
  const took = formatDuration(tookMs);
  if (cities.length === 0)
    return prefix === '' ? 'Nothing is stored yet.' : `No name begins with "${prefix}" (${took})`;
  if (prefix === '') return `The ${formatCount(cities.length)} largest cities, read in ${took}`;
  if (matches === undefined) return `The largest that begin with "${prefix}", read in ${took}`;
  return `${plural(matches, 'name begins', 'names begin')} with "${prefix}", read in ${took}`;
}

function option(city: City, index: number, prefix: string): HTMLElement {
  const covered = coveredLength(city.name, prefix);
  return element(
    'div',
    { class: 'row', attributes: { role: 'option', id: `find-option-${index}`, 'aria-selected': 'false' } },
    element(
      'span',
      { class: 'row-name' },
      element('mark', { text: city.name.slice(0, covered) }),
      city.name.slice(covered),
    ),
    element('span', { class: 'row-place', text: countryName(city.country) }),
    element('span', { class: 'row-count', text: formatCount(city.population) }),
  );
}

function isTyping(target: EventTarget | null): boolean {
  return target instanceof Element && target.closest('input, textarea, select') !== null;
}
