/**
 * The keys: every entry of a store, whatever it is; to search, change, import and export.
 * Invariants: The list follows the changes of its range, from whichever tab they come. Only the range of the list is saved and deleted,
 * also where the form names another one that is not shown yet.
 */

import type { KeyRange } from '../../types.ts';
import { button, element, section, setText, title } from '../dom.ts';
import { Feed } from '../feed.ts';
import { formatDuration } from '../format.ts';
import { Importer } from '../import/importer.ts';
import { questionDialog } from '../question.ts';
import type { AnyStore, View } from '../store.ts';
import { Editor } from './editor.ts';
import { Exporter } from './exporter.ts';
import { Listing } from './listing.ts';
import { RangeForm } from './range-form.ts';

/** A part of a store. */
interface Shown {
  readonly store: AnyStore;
  readonly range: KeyRange;
}

export class KeysView implements View {
  readonly #onError: (error: unknown) => void;
  readonly #range = new RangeForm(() => this.#show());
  readonly #editor: Editor;
  readonly #importer: Importer;
  readonly #exporter: Exporter;
  readonly #listing: Listing;
  readonly #feed: Feed;
  readonly #deleteRange = button('delete-range', 'Delete these keys', 'danger');
  readonly #dialog = questionDialog({
    id: 'delete',
    title: 'Delete all keys of this range?',
    text: 'This deletes every key of the range in this store, not only those on this page. You cannot undo it, but you can save an export first.',
    no: 'Keep them',
    yes: 'Delete them',
    kind: 'danger',
    onYes: () => this.#deleteAsked(),
  });
  readonly root: HTMLElement;
  #store: AnyStore | undefined;
  #shown: Shown | undefined;
  /** The range that the dialog asks about. An import that ends meanwhile shows another one. */
  #askedFor: Shown | undefined;

  constructor(onError: (error: unknown) => void) {
    this.#onError = onError;
    this.#editor = new Editor({ onChange: () => void this.#listing.renew(), onError });
    this.#listing = new Listing({
      onChoose: (key) => void this.#editor.show(key).then(() => this.#editor.focus()),
      onError,
    });
    this.#importer = new Importer({
      onImported: (prefix) => {
        this.#range.choosePrefix(prefix === undefined ? '' : JSON.stringify([prefix]));
        this.#show();
      },
    });
    this.#exporter = new Exporter({ onAsk: () => this.#shown, onError });
    this.#feed = new Feed({ onChanges: () => this.#listing.follow(), onError });
    this.#deleteRange.addEventListener('click', () => {
      this.#askedFor = this.#shown;
      if (this.#shown !== undefined) this.#dialog.showModal();
    });
    this.root = element('div', { class: 'keys' }, this.#all(), this.#editor.root, this.#importer.root, this.#dialog);
  }

  async start(store: AnyStore): Promise<void> {
    if (store !== this.#store) {
      this.#store = store;
      this.#shown = undefined;
      this.#editor.choose(store);
      this.#importer.choose(store);
    }
    await this.#show();
  }

  stop(): void {
    this.#feed.stop();
  }

  #all(): HTMLElement {
    return section(
      'keys-all',
      title('keys-title', 'All keys'),
      this.#range.form,
      this.#range.error,
      this.#listing.list,
      this.#listing.pager,
      element('div', { class: 'range-actions' }, this.#exporter.form, this.#deleteRange),
      this.#exporter.status,
    );
  }

  async #show(): Promise<void> {
    const asked = this.#asked();
    if (asked === undefined) return;
    this.#shown = asked;
    await this.#feed.follow(asked.store, { ...asked.range, keysOnly: true });
    await this.#listing.show(asked.store, asked.range, this.#range.isReverse);
  }

  #asked(): Shown | undefined {
    const range = this.#range.read();
    return this.#store === undefined || range === undefined ? undefined : { store: this.#store, range };
  }

  async #deleteAsked(): Promise<void> {
    if (this.#askedFor === undefined) return;
    try {
      const start = performance.now();
      // Without bounds there is no range to delete.
      const { store, range } = this.#askedFor;
      const isBounded = Object.keys(range).length > 0;
      await (isBounded ? store.deleteRange(range) : store.clear());
      const took = formatDuration(performance.now() - start);
      this.#editor.begin();
      setText(this.#exporter.status, `Deleted in ${took}, by one range tombstone.`);
      await this.#show();
    } catch (error) {
      this.#onError(error);
    }
  }
}
