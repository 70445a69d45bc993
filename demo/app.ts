// The demo: the cities of the world in one store, and the engine at work under them.
// Life cycle: open (together with the other tabs that have the store), show the stored cities, load the missing ones on request, and
// follow the changes of other tabs.
// The address may set how many cities to load: ?cities=5000.

import type { StoreStats } from 'varve';
import { isPassing } from '../js/src/inspector/errors.ts';
import { Browse } from './browse.ts';
import type { City } from './city.ts';
import { Details } from './details.ts';
import { byId, setText } from './dom.ts';
import { EnginePanel } from './engine-panel.ts';
import { type Changes, Following } from './following.ts';
import { formatBytes, formatCount, formatDuration, plural } from './format.ts';
import { Gazetteer } from './gazetteer.ts';
import { load } from './loader.ts';
import { Notice } from './notice.ts';
import { askedCities, openCities } from './opening.ts';
import { Search } from './search.ts';
import { Sharing } from './sharing.ts';
import { Status } from './status.ts';
import { WorldMap } from './world-map.ts';

const FILE = './cities.tsv';
/** The tab that loads has this lock: the others see its cities arrive. */
const LOADING_LOCK = 'cities-loading';
/** How long to wait before a draw that a new leader interrupted is repeated. */
const AGAIN_MS = 1000;
/** Records to draw at a time. */
const DRAW_ROWS = 2000;

const status = new Status();

class App {
  readonly #gazetteer: Gazetteer;
  readonly #limit: number;
  readonly #map: WorldMap;
  readonly #search: Search;
  readonly #browse: Browse;
  readonly #details: Details;
  readonly #notice = new Notice();
  readonly #sharing = new Sharing();
  readonly #following: Following;
  readonly #loadButton = byId('load', HTMLButtonElement);
  readonly #clearButton = byId('clear', HTMLButtonElement);
  readonly #compactButton = byId('compact', HTMLButtonElement);
  readonly #checkButton = byId('check', HTMLButtonElement);
  readonly #mapText = byId('map-text', HTMLElement);
  #loading: AbortController | undefined;
  /** Another tab loads. */
  #isLoadingElsewhere = false;
  #drawing = new AbortController();

  constructor(gazetteer: Gazetteer, limit: number) {
    this.#gazetteer = gazetteer;
    this.#limit = limit;
    const onError = (error: unknown): void => status.alarm(error);
    const onChoose = (id: number): void => void this.#details.show(id).then(() => this.#details.reveal());
    this.#map = new WorldMap(onChoose);
    this.#search = new Search(gazetteer, { onChoose, onError });
    this.#browse = new Browse(gazetteer, { onChoose, onError });
    this.#details = new Details(gazetteer, {
      onShow: (city) => this.#map.mark(city),
      onChange: (city) => this.#onSaved(city),
      onDelete: (city, tookMs) => this.#onDelete(city, tookMs),
      onError,
    });
    this.#following = new Following(gazetteer.store, { onChanges: (changes) => this.#onChanges(changes), onError });
    const onLook = ({ sharing }: StoreStats, tookMs: number): void => this.#sharing.show(sharing, tookMs);
    new EnginePanel(gazetteer.store, { onLook, onStall: onError, onError });
    this.#loadButton.addEventListener('click', () => this.#toggleLoading());
    this.#compactButton.addEventListener('click', () => this.#compact());
    this.#checkButton.addEventListener('click', () => this.#check());
    const dialog = byId('clear-dialog', HTMLDialogElement);
    this.#clearButton.addEventListener('click', () => {
      // Escape would leave the answer of the last time.
      dialog.returnValue = '';
      dialog.showModal();
    });
    dialog.addEventListener('close', () => dialog.returnValue === 'clear' && this.#clear());
  }

  /** Shows the content of the store. */
  async start(tookMs: number): Promise<void> {
    const { size } = this.#gazetteer;
    const took = formatDuration(tookMs);
    status.say(
      size === 0
        ? `An empty store, opened in ${took}`
        : `${plural(size, 'city was', 'cities were')} here already: opened in ${took}`,
    );
    this.#showButtons();
    this.#following.start();
    this.#watchLoading();
    await this.#refresh();
    if (this.#search.first !== undefined) await this.#details.show(this.#search.first.id);
    await this.#draw();
  }

  get #isComplete(): boolean {
    const { rows, isComplete } = this.#gazetteer.progress;
    return isComplete || rows >= this.#limit;
  }

  #showButtons(): void {
    const isEmpty = this.#gazetteer.progress.rows === 0;
    const isLoading = this.#loading !== undefined;
    const isElsewhere = this.#isLoadingElsewhere;
    const label = isLoading
      ? 'Pause'
      : isElsewhere
        ? 'Loading'
        : isEmpty
          ? 'Load cities'
          : this.#isComplete
            ? 'All loaded'
            : 'Continue loading';
    setText(this.#loadButton, label);
    this.#loadButton.disabled = !isLoading && (isElsewhere || this.#isComplete);
    this.#clearButton.disabled = isLoading || isElsewhere || isEmpty;
    this.#compactButton.disabled = isLoading || isEmpty;
    this.#checkButton.disabled = isEmpty;
    document.body.dataset['state'] = isLoading ? 'loading' : isEmpty ? 'empty' : 'ready';
  }

  /** Reads everything shown again. */
  async #refresh(): Promise<void> {
    this.#browse.showCountries();
    await Promise.all([this.#browse.renew(), this.#search.run()]);
  }

  /** Draws the map from every record in the store. */
  async #draw(): Promise<void> {
    const { signal } = this.#drawing;
    const start = performance.now();
    let cities: City[] = [];
    try {
      for await (const city of this.#gazetteer.records(signal)) {
        cities.push(city);
        if (cities.length < DRAW_ROWS) continue;
        this.#map.put(cities);
        cities = [];
        // The visitor's typing has priority.
        await new Promise((resolve) => setTimeout(resolve));
      }
      this.#map.put(cities);
      const took = formatDuration(performance.now() - start);
      if (this.#map.size > 0) setText(this.#mapText, `${formatCount(this.#map.size)} records, scanned in ${took}`);
    } catch (error) {
      if (signal.aborted) return;
      if (isPassing(error)) setTimeout(() => signal.aborted || this.#draw(), AGAIN_MS);
      else status.alarm(error);
    }
  }

  async #toggleLoading(): Promise<void> {
    if (this.#loading !== undefined) return this.#loading.abort();
    const loading = new AbortController();
    this.#loading = loading;
    this.#showButtons();
    const isOurs = await navigator.locks.request(LOADING_LOCK, { ifAvailable: true }, async (lock) => {
      if (lock !== null) await this.#load(loading);
      return lock !== null;
    });
    this.#loading = undefined;
    this.#showButtons();
    if (!isOurs) this.#watchLoading();
  }

  async #load(loading: AbortController): Promise<void> {
    status.alarm(undefined);
    status.say('Loading the cities, largest first');
    status.showLoading(true);
    this.#showButtons();
    // This tab needs no reports of the cities that it loads itself.
    this.#following.stop();
    try {
      await this.#gazetteer.start();
      const state = await load(this.#gazetteer, FILE, {
        limit: this.#limit,
        signal: loading.signal,
        onBatch: (now, cities) => {
          status.progress(now, this.#limit);
          this.#onLoaded(cities);
        },
      });
      const took = formatDuration(state.elapsedMs);
      status.say(`${plural(this.#gazetteer.size, 'city', 'cities')} stored in ${took}. Reload the page: they stay`);
    } catch (error) {
      if (loading.signal.aborted) status.say(`Paused at ${plural(this.#gazetteer.size, 'city', 'cities')}`);
      else {
        status.say('Loading stopped');
        status.alarm(error);
      }
    }
    this.#loading = undefined;
    status.showLoading(false);
    this.#following.start();
    await this.#gazetteer.start();
    this.#showButtons();
    await this.#refresh();
  }

  /** Finds out whether another tab loads, and waits for its end in the background. */
  async #watchLoading(): Promise<void> {
    if (this.#isLoadingElsewhere || this.#loading !== undefined) return;
    const { held = [] } = await navigator.locks.query();
    if (!held.some(({ name }) => name === LOADING_LOCK)) return;
    this.#isLoadingElsewhere = true;
    this.#showElsewhere();
    this.#showButtons();
    this.#untilLoaded();
  }

  async #untilLoaded(): Promise<void> {
    await navigator.locks.request(LOADING_LOCK, { mode: 'shared' }, () => undefined);
    this.#isLoadingElsewhere = false;
    await this.#gazetteer.start();
    this.#showCount();
    this.#showButtons();
    await this.#refresh();
  }

  #showElsewhere(): void {
    status.say(`Another tab is loading: ${plural(this.#gazetteer.size, 'city', 'cities')} so far`);
  }

  /** Shows changes, whichever tab made them. */
  async #onChanges({ cities, counts, progress, isAnew }: Changes): Promise<void> {
    const size = this.#gazetteer.size;
    if (isAnew) {
      this.#drawing.abort();
      this.#drawing = new AbortController();
      this.#map.clear();
      await this.#gazetteer.start();
      if (this.#details.city !== undefined) await this.#details.show(this.#details.city.id);
      this.#draw();
    } else {
      this.#gazetteer.take(counts, progress);
      const all = [...cities.values()].map(({ city }) => city);
      this.#map.put(all.filter((city) => city !== undefined));
      this.#map.remove([...cities].flatMap(([id, { city }]) => (city === undefined ? [id] : [])));
      this.#details.take(cities);
      if (cities.size > 0) this.#showMap();
    }
    // If changes were missed, one of them may be that a tab began to load.
    if (progress !== undefined || isAnew) await this.#watchLoading();
    if (this.#isLoadingElsewhere) this.#showElsewhere();
    else if (size !== this.#gazetteer.size) this.#showCount();
    this.#showButtons();
    await this.#refresh();
    const { first } = this.#search;
    if (size === 0 && first !== undefined && this.#details.city === undefined) await this.#details.show(first.id);
  }

  #onSaved(city: City): void {
    this.#map.put([city]);
    this.#refresh();
  }

  #onLoaded(cities: readonly City[]): void {
    const isFirst = this.#map.size === 0;
    this.#map.put(cities);
    setText(this.#mapText, `${formatCount(this.#map.size)} cities, each drawn as it is stored`);
    if (isFirst) this.#showFirst();
  }

  /** Shows content as soon as there is any. */
  async #showFirst(): Promise<void> {
    await this.#refresh();
    const { first } = this.#search;
    if (first !== undefined && this.#details.city === undefined) await this.#details.show(first.id);
  }

  #onDelete(city: City, tookMs: number): void {
    this.#map.remove([city.id]);
    this.#showCount();
    this.#refresh();
    this.#notice.show(`${city.name} was deleted in ${formatDuration(tookMs)}.`, () => this.#restore(city));
  }

  async #restore(city: City): Promise<void> {
    try {
      await this.#gazetteer.restore(city);
      this.#map.put([city]);
      this.#showCount();
      await this.#refresh();
      await this.#details.show(city.id);
      byId('find-input', HTMLInputElement).focus();
    } catch (error) {
      status.alarm(error);
    }
  }

  #showCount(): void {
    status.say(`${plural(this.#gazetteer.size, 'city', 'cities')} in the store`);
    this.#showMap();
  }

  #showMap(): void {
    setText(this.#mapText, plural(this.#map.size, 'record', 'records'));
  }

  async #compact(): Promise<void> {
    const { store } = this.#gazetteer;
    this.#compactButton.disabled = true;
    status.say('Merging all tables');
    try {
      const before = await store.stats();
      const start = performance.now();
      await store.compact();
      const took = formatDuration(performance.now() - start);
      const after = await store.stats();
      const tables = after.levels.reduce((sum, level) => sum + level.tables, 0);
      const sizes = `${formatBytes(bytesOf(before))} to ${formatBytes(bytesOf(after))}`;
      status.say(`Merged in ${took}: ${sizes}, ${plural(tables, 'table', 'tables')}`);
    } catch (error) {
      status.alarm(error);
    }
    this.#showButtons();
  }

  async #check(): Promise<void> {
    this.#checkButton.disabled = true;
    try {
      const start = performance.now();
      const { bytes, entries, problems } = await this.#gazetteer.store.check({
        onProgress: ({ done, total }) => status.say(`Verifying: ${formatBytes(done)} of ${formatBytes(total)}`),
      });
      const took = formatDuration(performance.now() - start);
      const [first] = problems;
      if (first === undefined) {
        status.say(
          `Verified in ${took}: ${plural(entries, 'entry', 'entries')} in tables, ${formatBytes(bytes)}, no problem`,
        );
      } else {
        status.say(`${plural(problems.length, 'problem', 'problems')}: ${first.message} in ${first.file}`);
      }
    } catch (error) {
      status.alarm(error);
    }
    this.#showButtons();
  }

  async #clear(): Promise<void> {
    this.#drawing.abort();
    this.#drawing = new AbortController();
    this.#notice.hide();
    try {
      const start = performance.now();
      await this.#gazetteer.clear();
      status.say(`Everything was deleted in ${formatDuration(performance.now() - start)}, by one range tombstone`);
      this.#details.clear();
      this.#map.clear();
      setText(this.#mapText, '');
      await this.#refresh();
    } catch (error) {
      status.alarm(error);
    }
    this.#showButtons();
  }
}

/** The size of a store's tables. */
function bytesOf({ levels }: { levels: readonly { bytes: number }[] }): number {
  return levels.reduce((sum, level) => sum + level.bytes, 0);
}

async function main(): Promise<void> {
  byId('reload', HTMLButtonElement).addEventListener('click', () => location.reload());
  try {
    const { store, tookMs } = await openCities((error) => status.locked(error));
    status.show(store.storage, store.recovery);
    const gazetteer = new Gazetteer(store);
    await gazetteer.start();
    await new App(gazetteer, askedCities()).start(tookMs);
  } catch (error) {
    status.say('The store did not open');
    document.body.dataset['state'] = 'failed';
    status.alarm(error);
  }
}

main();
