// The card of one city: what is stored, a form that changes it in place, and its deletion.
// Invariant: the card shows the record as the store has it, whichever tab changed it; its own change is shown after it was
// acknowledged. Typed text that is not saved is never replaced.

import { type City, indexKeys, recordKey } from './city.ts';
import { byId, element, mayMove, setText } from './dom.ts';
import type { CityChange } from './following.ts';
import { countryName, featureName, formatCount, formatDuration, formatKey, formatPlace, plural } from './format.ts';
import type { Gazetteer } from './gazetteer.ts';

export interface DetailsEvents {
  onShow(city: City | undefined): void;
  onChange(after: City): void;
  onDelete(city: City, tookMs: number): void;
  onError(error: unknown): void;
}

export class Details {
  readonly #gazetteer: Gazetteer;
  readonly #events: DetailsEvents;
  readonly #card = byId('details', HTMLElement);
  readonly #title = byId('details-title', HTMLElement);
  readonly #facts = byId('details-facts', HTMLElement);
  readonly #form = byId('details-form', HTMLFormElement);
  readonly #name = byId('details-name', HTMLInputElement);
  readonly #population = byId('details-population', HTMLInputElement);
  readonly #note = byId('details-note', HTMLTextAreaElement);
  readonly #save = byId('details-save', HTMLButtonElement);
  readonly #revert = byId('details-revert', HTMLButtonElement);
  readonly #keys = byId('details-keys', HTMLElement);
  readonly #keysTitle = byId('details-keys-title', HTMLElement);
  readonly #status = byId('details-status', HTMLElement);
  #city: City | undefined;
  /** The sequence of the write that made the shown city. */
  #sequence = 0;
  /** The card is writing its own change: that change is no news. */
  #isWriting = false;

  constructor(gazetteer: Gazetteer, events: DetailsEvents) {
    this.#gazetteer = gazetteer;
    this.#events = events;
    this.#form.addEventListener('input', () => this.#watchChanges());
    this.#form.addEventListener('submit', (event) => {
      event.preventDefault();
      this.#saveChanges();
    });
    this.#revert.addEventListener('click', () => this.#fill());
    byId('details-delete', HTMLButtonElement).addEventListener('click', () => this.#delete());
    this.#render(undefined);
  }

  get city(): City | undefined {
    return this.#city;
  }

  /** Reads a city from the store and shows it. */
  async show(id: number): Promise<void> {
    try {
      const start = performance.now();
      const found = await this.#gazetteer.city(id);
      const took = formatDuration(performance.now() - start);
      this.#render(found?.city, found?.sequence);
      if (found === undefined) setText(this.#status, `City ${id} is not stored (${took})`);
      else setText(this.#status, `${found.city.name}, ${countryName(found.city.country)}: read in ${took}`);
    } catch (error) {
      this.#events.onError(error);
    }
  }

  /** Scrolls the card into view when it is out of view. */
  reveal(): void {
    const { top, bottom } = this.#title.getBoundingClientRect();
    if (top >= 0 && bottom <= innerHeight) return;
    this.#card.scrollIntoView({ block: 'start', behavior: mayMove() ? 'smooth' : 'auto' });
  }

  /** Shows no city. */
  clear(): void {
    this.#render(undefined);
    setText(this.#status, '');
  }

  /** Applies a change of the shown city, unless this tab made it. */
  take(cities: ReadonlyMap<number, CityChange>): void {
    const before = this.#city;
    const change = before && cities.get(before.id);
    if (before === undefined || change === undefined || this.#isWriting || change.sequence <= this.#sequence) return;
    const { city, sequence } = change;
    const isEdited = !this.#revert.disabled;
    if (city === undefined) {
      this.clear();
      setText(this.#status, `${before.name} was deleted in another tab`);
    } else {
      this.#render(city, sequence, isEdited);
      const and = isEdited ? '; your changes are not saved yet' : '';
      setText(this.#status, `Changed in another tab just now${and}`);
    }
  }

  async #saveChanges(): Promise<void> {
    const before = this.#city;
    const after = this.#edited();
    if (before === undefined || after === undefined || isSame(before, after) || !this.#form.reportValidity()) return;
    this.#isWriting = true;
    try {
      const start = performance.now();
      const isStored = await this.#gazetteer.replace(after);
      const took = formatDuration(performance.now() - start);
      const now = await this.#gazetteer.city(after.id);
      this.#render(now?.city, now?.sequence);
      if (isStored) {
        setText(this.#status, `Saved in ${took}: the record and its index keys in one transaction`);
        this.#events.onChange(after);
      } else setText(this.#status, `${before.name} was deleted in another tab: nothing was saved`);
    } catch (error) {
      this.#events.onError(error);
    }
    this.#isWriting = false;
  }

  async #delete(): Promise<void> {
    const city = this.#city;
    if (city === undefined) return;
    this.#isWriting = true;
    try {
      const start = performance.now();
      await this.#gazetteer.remove(city.id);
      this.clear();
      this.#events.onDelete(city, performance.now() - start);
    } catch (error) {
      this.#events.onError(error);
    }
    this.#isWriting = false;
  }

  /** The city with the values of the form. */
  #edited(): City | undefined {
    const name = this.#name.value.trim();
    if (this.#city === undefined || name === '') return undefined;
    const population = Math.round(this.#population.valueAsNumber);
    return { ...this.#city, name, population, note: this.#note.value.trim() };
  }

  #watchChanges(): void {
    const edited = this.#edited();
    const isChanged = this.#city !== undefined && (edited === undefined || !isSame(this.#city, edited));
    this.#save.disabled = !isChanged || !this.#form.checkValidity();
    this.#revert.disabled = !isChanged;
  }

  #render(city: City | undefined, sequence = 0, keepsForm = false): void {
    this.#city = city;
    this.#sequence = sequence;
    this.#events.onShow(city);
    this.#card.dataset['state'] = city === undefined ? 'empty' : 'shown';
    setText(this.#title, city?.name ?? 'No city chosen');
    if (city === undefined) return;
    this.#facts.replaceChildren(
      ...fact('Country', `${countryName(city.country)} (${city.country})`),
      ...fact('Kind', featureName(city.feature)),
      ...fact('Place', formatPlace(city.latitude, city.longitude)),
      ...fact('Population', formatCount(city.population)),
      ...fact('Written by', `sequence ${formatCount(sequence)}`),
    );
    const keys = [recordKey(city.id), ...indexKeys(city)];
    setText(this.#keysTitle, `Stored under ${plural(keys.length, 'key', 'keys')}`);
    this.#keys.replaceChildren(...keys.map((key) => element('li', {}, element('code', { text: formatKey(key) }))));
    if (keepsForm) this.#watchChanges();
    else this.#fill();
  }

  #fill(): void {
    const city = this.#city;
    if (city === undefined) return;
    this.#name.value = city.name;
    this.#population.value = String(city.population);
    this.#note.value = city.note;
    this.#watchChanges();
  }
}

function fact(name: string, value: string): HTMLElement[] {
  return [element('dt', { text: name }), element('dd', { text: value })];
}

function isSame(a: City, b: City): boolean {
  return a.name === b.name && a.population === b.population && a.note === b.note;
}
