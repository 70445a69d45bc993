/**
 * The panel of the inspector: which store, who leads it, and its views. It is loaded when an inspector is first opened.
 * Life cycle: `show` opens the chosen store, unless the page gave one, and starts the chosen view; `hide` stops everything, and closes
 * the store that the panel opened.
 * Invariant: a store that the page gave is never closed here. Every error is shown, in the one place for it.
 */

import { bytes, deleteStore, json, listStores, open, structured, utf8 } from '../index.ts';
import { delay } from '../runtime/wait.ts';
import type { Key, StoreStats, ValueCodec } from '../types.ts';
import { css as base } from './base.css';
import { ChangesView } from './changes-view.ts';
import { element, inline, select, setText } from './dom.ts';
import { codeOf, sentence } from './errors.ts';
import { formatDuration } from './format.ts';
import { css as keys } from './keys/keys.css';
import { KeysView } from './keys/keys-view.ts';
import { css as live } from './live/live.css';
import { LiveView } from './live/live-view.ts';
import { css as picture } from './live/picture.css';
import { Watch } from './live/watch.ts';
import { css as own } from './panel.css';
import { sharingText } from './sharing.ts';
import type { AnyStore, View } from './store.ts';
import { StoreActions } from './store-actions.ts';
import { Tabs } from './tabs.ts';
import { Unlock } from './unlock.ts';

/** How long an opening waits for another opener that does not share the store, before the panel shows this. */
const LOCK_WAIT_MS = 1000;
/** Between two looks at the store: for the picture, and for who leads. */
const LOOK_MS = 150;
const LOOK_SELDOM_MS = 1000;

/** How the values of a store that the panel opens are read. */
const CODECS = { structured, json, utf8, bytes } as Readonly<Record<string, ValueCodec<unknown>>>;
const CODEC_WORDS = { structured: 'structured', json: 'JSON', utf8: 'text', bytes: 'bytes' };

/** The view to show. */
export interface Wanted {
  /** An open store of the page. */
  readonly store: AnyStore | undefined;
  /** The name of the store to open. */
  readonly name: string | undefined;
  readonly view: string;
}

/** The styles of the panel. */
export function styles(): CSSStyleSheet {
  const sheet = new CSSStyleSheet();
  sheet.replaceSync([base, own, keys, live, picture].join('\n'));
  return sheet;
}

export class Panel {
  readonly #stores = select('store');
  readonly #codec = select('codec', CODEC_WORDS);
  readonly #codecLabel = inline('Values', this.#codec);
  readonly #actions = new StoreActions({
    onCreate: (name) => this.#create(name),
    onDelete: () => this.#delete(),
  });
  readonly #opened = element('p', { id: 'opened', class: 'note' });
  readonly #sharing = element('p', { id: 'sharing', class: 'note', attributes: { role: 'status' } });
  readonly #alert = element('p', { id: 'alert', attributes: { role: 'alert', hidden: '' } });
  readonly #unlock = new Unlock((name) => this.#open(name));
  readonly #onError = (error: unknown): void => this.#alarm(error);
  readonly #views: Readonly<Record<string, View>> = {
    keys: new KeysView(this.#onError),
    engine: new LiveView(),
    changes: new ChangesView(this.#onError),
  };
  readonly #watch = new Watch({ onLook: (stats) => this.#look(stats), onError: this.#onError });
  readonly #tabs: Tabs;
  readonly root: HTMLElement;
  #wanted: Wanted = { store: undefined, name: undefined, view: '' };
  #names: readonly string[] = [];
  #store: AnyStore | undefined;
  /** The stores that the panel has opened, and closes. */
  readonly #own = new WeakSet<AnyStore>();
  /** Aborts when another store is chosen, or the panel is hidden. */
  #running: AbortController | undefined;

  /** @param onView called when the visitor chooses another view */
  constructor(onView: (name: string) => void) {
    this.#tabs = new Tabs(onView);
    this.#tabs.add('keys', 'Keys', (this.#views['keys'] as View).root);
    this.#tabs.add('engine', 'Engine', (this.#views['engine'] as View).root);
    this.#tabs.add('changes', 'Changes', (this.#views['changes'] as View).root);
    for (const choice of [this.#stores, this.#codec])
      choice.addEventListener('change', () => this.#open(this.#stores.value));
    for (const event of ['focus', 'pointerenter']) this.#stores.addEventListener(event, () => this.#list());
    const head = element(
      'div',
      { class: 'head' },
      inline('Store', this.#stores),
      this.#codecLabel,
      this.#actions.root,
      this.#sharing,
      this.#opened,
    );
    this.root = element('div', { id: 'panel' }, head, this.#alert, this.#unlock.root, this.#tabs.root);
  }

  /** Shows what is wanted. Without a store or a name it is the first store of the origin. */
  async show(wanted: Wanted): Promise<void> {
    const before = this.#wanted;
    this.#wanted = wanted;
    const isSame = wanted.store === before.store && wanted.name === before.name && this.#running !== undefined;
    if (wanted.view !== this.#tabs.chosen) {
      this.#views[this.#tabs.chosen]?.stop();
      this.#tabs.choose(wanted.view);
    }
    if (isSame) return this.#present();
    const signal = this.#begin();
    await this.#list();
    if (signal.aborted) return;
    await this.#open(wanted.store?.name ?? wanted.name ?? this.#names[0]);
  }

  /** Stops everything. */
  async hide(): Promise<void> {
    this.#running?.abort();
    this.#running = undefined;
    this.#unlock.forget();
    await this.#leave();
  }

  /** Reads the names of the stores. */
  async #list(): Promise<void> {
    const { store, name } = this.#wanted;
    const found = await listStores().catch((error) => {
      this.#alarm(error);
      return [];
    });
    const more = [store?.name, name, this.#store?.name].filter((each) => each !== undefined);
    const names = [...new Set([...found, ...more])].sort();
    if (names.join('\n') === this.#names.join('\n')) return;
    const chosen = this.#stores.value;
    this.#names = names;
    this.#stores.replaceChildren(
      ...names.map((each) => element('option', { text: each, attributes: { value: each } })),
    );
    if (names.includes(chosen)) this.#stores.value = chosen;
  }

  /** Ends what was begun before. */
  #begin(): AbortSignal {
    this.#running?.abort();
    this.#running = new AbortController();
    return this.#running.signal;
  }

  /** Opens a store, and leaves the one before. */
  async #open(name: string | undefined): Promise<void> {
    const signal = this.#begin();
    this.root.dataset['state'] = 'opening';
    this.#alarm(undefined);
    this.#unlock.hide();
    await this.#leave();
    if (signal.aborted) return;
    if (name === undefined) {
      this.root.dataset['state'] = 'empty';
      return setText(this.#opened, 'This origin has no stores yet.');
    }
    this.#stores.value = name;
    try {
      const start = performance.now();
      const store = await this.#opening(name, signal);
      if (signal.aborted) return this.#close(store);
      this.#store = store;
      this.#tellOpened(store, performance.now() - start);
      await this.#present();
    } catch (error) {
      if (signal.aborted) return;
      this.root.dataset['state'] = 'failed';
      this.#alarm(error);
      if (codeOf(error) === 'VARVE_KEY') this.#unlock.ask(name);
    }
  }

  async #create(name: string): Promise<void> {
    await this.#open(name);
    await this.#list();
    this.#stores.value = name;
  }

  /** Deletes the open store, and opens the first one that is left. A store that cannot be deleted is opened again. */
  async #delete(): Promise<void> {
    const [name, running] = [this.#store?.name, this.#running];
    if (name === undefined) return;
    try {
      await this.#leave();
      await deleteStore(name, { lockTimeout: LOCK_WAIT_MS });
    } catch (error) {
      if (running === this.#running) await this.#open(name);
      return this.#alarm(error);
    }
    if (this.#wanted.name === name) this.#wanted = { ...this.#wanted, name: undefined };
    await this.#list();
    // Meanwhile another store may have been chosen, or the panel hidden.
    if (running === this.#running) await this.#open(this.#names[0]);
  }

  /** Opens a store as soon as no page or worker has it open without sharing it. */
  async #opening(name: string, signal: AbortSignal): Promise<AnyStore> {
    const { store } = this.#wanted;
    if (store?.name === name) return store;
    for (;;) {
      try {
        const values = CODECS[this.#codec.value];
        const key = this.#unlock.key(name);
        const encryption = key === undefined ? undefined : { key };
        const opened = await open<Key, unknown>(name, { lockTimeout: LOCK_WAIT_MS, signal, values, encryption });
        this.#own.add(opened);
        this.#alarm(undefined);
        return opened;
      } catch (error) {
        if (codeOf(error) !== 'VARVE_LOCKED') throw error;
        this.#alarm(error);
        await delay(LOCK_WAIT_MS);
        signal.throwIfAborted();
      }
    }
  }

  /** Starts the chosen view. */
  async #present(): Promise<void> {
    const store = this.#store;
    if (store === undefined) return;
    const name = this.#tabs.chosen;
    this.#watch.follow(store, name === 'engine' ? LOOK_MS : LOOK_SELDOM_MS);
    await this.#views[name]?.start(store);
    if (store === this.#store) this.root.dataset['state'] = 'ready';
  }

  async #leave(): Promise<void> {
    this.#watch.stop();
    for (const view of Object.values(this.#views)) view.stop();
    const store = this.#store;
    this.#store = undefined;
    setText(this.#sharing, '');
    setText(this.#opened, '');
    this.#actions.show(undefined);
    if (store !== undefined) await this.#close(store);
  }

  /** Closes a store that the panel opened. Its leader may not answer: the panel goes on. */
  async #close(store: AnyStore): Promise<void> {
    if (this.#own.has(store)) await store.close().catch(this.#onError);
  }

  #look(stats: StoreStats): void {
    const { sharing } = stats;
    setText(this.#sharing, sharing === undefined ? '' : sharingText(sharing));
    this.#sharing.dataset['role'] = sharing?.leads ? 'leader' : 'follower';
    this.#views[this.#tabs.chosen]?.look?.(stats);
  }

  #tellOpened(store: AnyStore, tookMs: number): void {
    const { storage, recovery } = store;
    const found = recovery.state === 'replayed' ? `replayed ${recovery.records} records` : recovery.state;
    const isGiven = store === this.#wanted.store;
    this.#codecLabel.hidden = isGiven;
    this.#actions.show(isGiven ? undefined : store.name);
    const how = isGiven ? 'Opened by the page' : `Opened in ${formatDuration(tookMs)}`;
    setText(this.#opened, `${how}: ${found}, in ${storage.kind}.`);
  }

  #alarm(error: unknown): void {
    this.#alert.hidden = error === undefined;
    setText(this.#alert, error === undefined ? '' : sentence(error));
  }
}
