// The page "The engine, live": what drives an engine, beside the inspector, which shows it at work.
// Life cycle: It opens a store made for it, with little memory, so that the memtable is small and fills while one watches. It writes
// to the store as fast as the visitor wants. The inspector can show other stores meanwhile.

import 'varve/inspector';
import { open, type StoreStats, VarveError } from 'varve';
import { sentence } from '../js/src/inspector/errors.ts';
import { byId, setText } from './dom.ts';
import { formatBytes, formatDuration, plural } from './format.ts';
import { Controls } from './live/controls.ts';
import { Generator, KEYS, type SampleStore } from './live/generator.ts';

const STORE = 'engine-room';
/** The memtable is at most an eighth of it. */
const MEMORY_BYTES = 2 * 2 ** 20;

class Live {
  readonly #store: SampleStore;
  readonly #generator: Generator;
  readonly #runButton = byId('live-run', HTMLButtonElement);
  readonly #compactButton = byId('live-compact', HTMLButtonElement);
  readonly #status = byId('live-status', HTMLElement);

  constructor(store: SampleStore) {
    this.#store = store;
    const controls = new Controls((wishes) => {
      this.#generator.wishes = wishes;
    });
    this.#generator = new Generator(store, controls.wishes, {
      onError: (error) => {
        this.#showRunning();
        alarm(error);
      },
    });
    this.#runButton.addEventListener('click', () => this.#toggle());
    this.#compactButton.addEventListener('click', () => this.#compact());
    byId('live-half', HTMLButtonElement).addEventListener('click', () => this.#deleteHalf());
    byId('live-empty', HTMLButtonElement).addEventListener('click', () => this.#empty());
    document.addEventListener('visibilitychange', () => document.visibilityState === 'visible' || this.#pause());
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

  async #compact(): Promise<void> {
    await this.#alone(this.#compactButton, async () => {
      const start = performance.now();
      const before = await this.#store.stats();
      await this.#store.compact({
        onProgress: ({ done, total }) =>
          setText(this.#status, `Merging everything: ${formatBytes(done)} of ${formatBytes(total)}`),
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
      setText(this.#status, `The lower half of the keys was deleted in ${took}, by one range tombstone`);
    });
  }

  async #empty(): Promise<void> {
    await this.#alone(byId('live-empty', HTMLButtonElement), async () => {
      this.#generator.stop();
      this.#showRunning();
      await this.#store.clear();
      this.#generator.restart();
      await this.#store.compact();
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
}

function tableBytes({ levels }: StoreStats): number {
  return levels.reduce((sum, { bytes }) => sum + bytes, 0);
}

/** Shows an error, in a sentence; undefined when there is none any more. */
function alarm(error: unknown): void {
  const alert = byId('alert', HTMLElement);
  alert.hidden = error === undefined;
  setText(alert, error === undefined ? '' : sentence(error));
}

/** Opens the store as soon as no page or worker has it open without sharing it. */
async function openStore(): Promise<SampleStore> {
  for (;;) {
    try {
      const store: SampleStore = await open(STORE, { memoryBytes: MEMORY_BYTES, lockTimeout: 1000 });
      alarm(undefined);
      return store;
    } catch (error) {
      if (!(error instanceof VarveError) || error.code !== 'VARVE_LOCKED') throw error;
      alarm(error);
    }
  }
}

async function main(): Promise<void> {
  try {
    const store = await openStore();
    new Live(store);
    const inspector = document.querySelector('varve-inspector');
    if (inspector === null) return;
    inspector.store = store;
    inspector.open = true;
  } catch (error) {
    alarm(error);
  }
}

main();
