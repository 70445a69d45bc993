// The page "The engine, live": a picture of an LSM engine at work, and the controls that drive it.
// Life cycle: It opens a store made for it, with little memory, so that the memtable is small and fills while one watches. It writes
// to the store as fast as the visitor wants, and reads its stats some times a second. The page can also show the cities, but does not
// write to them.

import { open, type StoreStats } from 'varve';
import { byId, setText } from './dom.ts';
import { formatBytes, formatDuration, plural } from './format.ts';
import { Controls } from './live/controls.ts';
import { Gauges } from './live/gauges.ts';
import { Generator, KEYS, type SampleStore } from './live/generator.ts';
import { Picture } from './live/picture.ts';
import { Story } from './live/story.ts';
import { Watch } from './live/watch.ts';
import { summaryOf } from './live/words.ts';
import { alarm, onVisibility, openPatiently } from './page.ts';

const STORE = 'engine-room';
const CITIES = 'cities';
/** The memtable is at most an eighth of it. */
const MEMORY_BYTES = 2 * 2 ** 20;

class Live {
  readonly #store: SampleStore;
  readonly #picture = new Picture(byId('live-picture', SVGSVGElement));
  readonly #gauges = new Gauges();
  readonly #story = new Story();
  readonly #watch: Watch;
  readonly #generator: Generator;
  readonly #runButton = byId('live-run', HTMLButtonElement);
  readonly #holdButton = byId('live-hold', HTMLButtonElement);
  readonly #compactButton = byId('live-compact', HTMLButtonElement);
  readonly #status = byId('live-status', HTMLElement);
  readonly #which = byId('live-store', HTMLSelectElement);
  #cities: { stats(): Promise<StoreStats>; close(): Promise<void> } | undefined;
  #isHeld = false;
  #isFull = false;

  constructor(store: SampleStore) {
    this.#store = store;
    const controls = new Controls((wishes) => {
      this.#generator.wishes = wishes;
      this.#picture.motion.isSlow = wishes.isSlow;
    });
    this.#generator = new Generator(store, controls.wishes, {
      onError: (error) => {
        this.#showRunning();
        alarm(error);
      },
    });
    this.#watch = new Watch({ onLook: (stats) => this.#look(stats), onError: alarm });
    this.#runButton.addEventListener('click', () => this.#toggle());
    this.#holdButton.addEventListener('click', () => this.#toggleHold());
    this.#compactButton.addEventListener('click', () => this.#compact());
    byId('live-half', HTMLButtonElement).addEventListener('click', () => this.#deleteHalf());
    byId('live-empty', HTMLButtonElement).addEventListener('click', () => this.#empty());
    this.#which.addEventListener('change', () => this.#choose());
    onVisibility((isVisible) => isVisible || this.#pause());
    this.#gauges.restart();
    this.#watch.follow(store);
    document.body.dataset['state'] = 'ready';
  }

  #look(stats: StoreStats): void {
    const events = this.#picture.show(stats);
    this.#gauges.show(stats, performance.now());
    this.#story.show(events);
    setText(byId('live-summary', HTMLElement), summaryOf(stats));
    if (this.#generator.made < KEYS || this.#isFull) return;
    this.#isFull = true;
    this.#story.say(
      `All ${plural(KEYS, 'key', 'keys')} are made: from here on every write overwrites or deletes.`,
      'full',
    );
  }

  #toggle(): void {
    if (this.#generator.isRunning) this.#generator.stop();
    else this.#generator.start();
    this.#showRunning();
  }

  /** Stops writing. */
  #pause(): void {
    if (!this.#generator.isRunning) return;
    this.#generator.stop();
    this.#showRunning();
    setText(this.#status, 'Paused while the page was out of sight');
  }

  #showRunning(): void {
    const { isRunning, written } = this.#generator;
    setText(this.#runButton, isRunning ? 'Pause writing' : 'Start writing');
    const paused = written === 0 ? '' : `Paused after ${plural(written, 'write', 'writes')}`;
    setText(this.#status, isRunning ? 'Writing' : paused);
    document.body.dataset['run'] = isRunning ? 'writing' : 'paused';
  }

  #toggleHold(): void {
    this.#isHeld = !this.#isHeld;
    this.#watch.hold(this.#isHeld);
    this.#holdButton.setAttribute('aria-pressed', String(this.#isHeld));
    if (this.#isHeld) this.#picture.motion.clear();
  }

  async #compact(): Promise<void> {
    await this.#alone(this.#compactButton, async () => {
      const start = performance.now();
      const before = await this.#store.stats();
      await this.#store.compact({
        onProgress: ({ done, planned }) =>
          setText(this.#status, `Merging everything: ${formatBytes(done)} of ${formatBytes(planned)}`),
      });
      const took = formatDuration(performance.now() - start);
      const after = await this.#store.stats();
      const sizes = `${formatBytes(tableBytes(before))} of tables are ${formatBytes(tableBytes(after))} now`;
      setText(this.#status, `Merged in ${took}: ${sizes}`);
    });
  }

  async #deleteHalf(): Promise<void> {
    await this.#alone(byId('live-half', HTMLButtonElement), async () => {
      const start = performance.now();
      await this.#store.deleteRange({ gte: ['k'], lt: ['k', KEYS] });
      const took = formatDuration(performance.now() - start);
      const words = `The lower half of the keys was deleted in ${took}, by one range tombstone`;
      setText(this.#status, words);
      this.#story.say(`${words}. Merges drop what it covers.`, 'delete');
    });
  }

  async #empty(): Promise<void> {
    await this.#alone(byId('live-empty', HTMLButtonElement), async () => {
      this.#generator.stop();
      this.#showRunning();
      await this.#store.clear();
      this.#generator.restart();
      this.#isFull = false;
      await this.#store.compact();
      this.#story.clear();
      this.#story.say('The store was emptied.', 'delete');
      setText(this.#status, 'The store is empty');
    });
  }

  /** Runs work that its button must not start twice. */
  async #alone(button: HTMLButtonElement, act: () => Promise<void>): Promise<void> {
    button.disabled = true;
    try {
      await act();
      alarm(undefined);
    } catch (error) {
      alarm(error);
    }
    button.disabled = false;
  }

  /** Shows another store. */
  async #choose(): Promise<void> {
    const isOwn = this.#which.value === STORE;
    document.body.dataset['store'] = this.#which.value;
    byId('live-controls', HTMLFieldSetElement).disabled = !isOwn;
    if (!isOwn) this.#pause();
    try {
      if (!isOwn) this.#cities ??= await openPatiently(() => open(CITIES, { lockTimeout: 1000 }));
      this.#picture.restart();
      this.#gauges.restart();
      this.#story.clear();
      if (isOwn) this.#watch.follow(this.#store);
      else if (this.#cities !== undefined) this.#watch.follow(this.#cities);
    } catch (error) {
      alarm(error);
    }
  }
}

function tableBytes({ levels }: StoreStats): number {
  return levels.reduce((sum, { bytes }) => sum + bytes, 0);
}

async function main(): Promise<void> {
  try {
    const store: SampleStore = await openPatiently(() => open(STORE, { memoryBytes: MEMORY_BYTES, lockTimeout: 1000 }));
    new Live(store);
  } catch (error) {
    document.body.dataset['state'] = 'failed';
    alarm(error);
  }
}

main();
