// The page "All keys": every entry of a store, whatever it is; to search, change, import and export.
// Life cycle: open the store of the cities, which other tabs may have open too, or another one of the demo; show its keys.

import { type Key, open } from 'varve';
import { byId, setText } from './dom.ts';
import { formatDuration } from './format.ts';
import { Importer } from './import/importer.ts';
import { Editor } from './keys/editor.ts';
import { Exporter } from './keys/exporter.ts';
import { type AnyStore, Listing } from './keys/listing.ts';
import { RangeForm } from './keys/range-form.ts';
import { alarm, openPatiently } from './page.ts';

class Keys {
  readonly #which = byId('keys-store', HTMLSelectElement);
  readonly #range = new RangeForm(() => this.#show());
  readonly #editor: Editor;
  readonly #importer: Importer;
  readonly #listing: Listing;
  readonly #dialog = byId('delete-dialog', HTMLDialogElement);
  #store: AnyStore | undefined;

  constructor() {
    this.#editor = new Editor({ onChange: () => void this.#listing.renew(), onError: alarm });
    this.#listing = new Listing({
      onChoose: (key: Key) => void this.#editor.show(key).then(() => byId('editor-value', HTMLElement).focus()),
      onError: alarm,
    });
    this.#importer = new Importer({
      onImported: (prefix) => {
        this.#range.choosePrefix(prefix === undefined ? '' : JSON.stringify([prefix]));
        this.#show();
      },
    });
    new Exporter({ onAsk: () => this.#asked(), onError: alarm });
    this.#which.addEventListener('change', () => this.open());
    byId('delete-range', HTMLButtonElement).addEventListener('click', () => {
      if (this.#asked() !== undefined) this.#dialog.showModal();
    });
    this.#dialog.addEventListener('close', () => this.#dialog.returnValue === 'delete' && this.#deleteRange());
  }

  /** Opens the chosen store, and closes the one before. */
  async open(): Promise<void> {
    document.body.dataset['state'] = 'opening';
    const before = this.#store;
    this.#store = undefined;
    this.#importer.choose(undefined);
    try {
      await before?.close();
      const name = this.#which.value;
      const start = performance.now();
      const store: AnyStore = await openPatiently(() => open(name, { lockTimeout: 1000 }));
      const took = formatDuration(performance.now() - start);
      this.#store = store;
      const found =
        store.recovery.state === 'replayed' ? `replayed ${store.recovery.records} records` : store.recovery.state;
      setText(byId('keys-opened', HTMLElement), `Opened in ${took}: ${found}.`);
      this.#editor.choose(store);
      this.#importer.choose(store);
      await this.#show();
      document.body.dataset['state'] = 'ready';
    } catch (error) {
      document.body.dataset['state'] = 'failed';
      alarm(error);
    }
  }

  async #show(): Promise<void> {
    const range = this.#range.read();
    if (this.#store === undefined || range === undefined) return;
    await this.#listing.show(this.#store, range, this.#range.isReverse);
  }

  #asked(): { store: AnyStore; range: ReturnType<RangeForm['read']> & object } | undefined {
    const range = this.#range.read();
    return this.#store === undefined || range === undefined ? undefined : { store: this.#store, range };
  }

  async #deleteRange(): Promise<void> {
    const asked = this.#asked();
    if (asked === undefined) return;
    try {
      const start = performance.now();
      // Without bounds there is no range to delete.
      const { store, range } = asked;
      const isBounded = Object.keys(range).length > 0;
      await (isBounded ? store.deleteRange(range) : store.clear());
      const took = formatDuration(performance.now() - start);
      this.#editor.begin();
      await this.#show();
      setText(byId('keys-status', HTMLElement), `Deleted in ${took}, by one range tombstone.`);
    } catch (error) {
      alarm(error);
    }
  }
}

new Keys().open();
