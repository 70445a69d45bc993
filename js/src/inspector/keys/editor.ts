/**
 * One entry: its key, its value as JSON, and the actions on it.
 * Invariant: a value is written only over the one that was shown: if another writer changed it meanwhile, the page shows this and
 * nothing is written. A value that JSON cannot express is shown and not edited.
 */

import { InexactJson, inexact, parseExactJson } from '../../http/exact-json.ts';
import type { Entry, Key } from '../../types.ts';
import { button, element, errorLine, field, section, setText, statusLine, submit, textInput, title } from '../dom.ts';
import { codeOf } from '../errors.ts';
import { formatCount, formatDuration } from '../format.ts';
import type { AnyStore } from '../store.ts';
import { keyText, parseKey } from './key-text.ts';
import { valueText } from './value-text.ts';

interface EditorEvents {
  /** An entry was written or deleted. */
  onChange(): void;
  onError(error: unknown): void;
}

export class Editor {
  readonly #events: EditorEvents;
  readonly #title = title('editor-title', 'New entry');
  readonly #keyInput = textInput('editor-key', { 'aria-describedby': 'editor-facts editor-error' });
  readonly #valueInput = element('textarea', {
    id: 'editor-value',
    attributes: { rows: '9', spellcheck: 'false', 'aria-describedby': 'editor-error' },
  });
  readonly #facts = element('p', { id: 'editor-facts', class: 'note' });
  readonly #error = errorLine('editor-error');
  readonly #status = statusLine('editor-status');
  readonly #save = submit('editor-save', 'Save', 'primary');
  readonly #new = button('editor-new', 'New entry');
  readonly #delete = button('editor-delete', 'Delete', 'danger');
  readonly #form = element(
    'form',
    { id: 'editor-form' },
    field('Key', this.#keyInput),
    this.#facts,
    field('Value, as JSON', this.#valueInput),
    this.#error,
    element('div', { class: 'form-actions' }, this.#save, this.#new, this.#delete),
    this.#status,
  );
  readonly root = section('editor', this.#title, this.#form);
  #store: AnyStore | undefined;
  #key: Key | undefined;
  /** The shown entry. Another value does not change when it expires. */
  /** Counts what was asked for. A slow answer must not take the place of a later one, or of an entry of another store. */
  #turn = 0;
  #entry: Entry<unknown> | undefined;

  constructor(events: EditorEvents) {
    this.#events = events;
    this.#form.addEventListener('submit', (event) => {
      event.preventDefault();
      this.#write();
    });
    this.#delete.addEventListener('click', () => this.#remove());
    this.#new.addEventListener('click', () => {
      this.begin();
      this.#keyInput.focus();
    });
    this.begin();
  }

  /** Works in this store from now on. */
  choose(store: AnyStore): void {
    this.#store = store;
    this.begin();
  }

  /** Moves the focus to the value. */
  focus(): void {
    this.#valueInput.focus();
  }

  /** Begins an entry that does not exist yet. */
  begin(): void {
    this.#turn++;
    this.#key = undefined;
    this.#entry = undefined;
    this.#keyInput.readOnly = false;
    this.#keyInput.value = '';
    this.#valueInput.readOnly = false;
    this.#valueInput.value = '';
    this.#save.disabled = false;
    this.#delete.hidden = true;
    setText(this.#title, 'New entry');
    setText(this.#facts, 'A key is JSON or a word without quotes: note, 42, ["note", 42].');
    this.#say('');
  }

  /** Shows an entry as it is now. */
  async show(key: Key): Promise<void> {
    const store = this.#store;
    if (store === undefined) return;
    const turn = ++this.#turn;
    try {
      const start = performance.now();
      const entry = await store.getEntry(key);
      const took = formatDuration(performance.now() - start);
      if (turn !== this.#turn) return;
      if (entry === undefined) return this.#say('', `${keyText(key)} is not there any more.`);
      const { text, isExact } = valueText(entry.value);
      this.#key = key;
      this.#entry = entry;
      this.#keyInput.value = keyText(key);
      this.#keyInput.readOnly = true;
      this.#valueInput.value = text;
      this.#valueInput.readOnly = !isExact;
      this.#save.disabled = !isExact;
      this.#delete.hidden = false;
      setText(this.#title, 'Entry');
      const expires = entry.expiresAt === undefined ? '' : `, expires ${entry.expiresAt.toLocaleString('en')}`;
      const shown = isExact ? '' : '. JSON cannot express this value, so it is shown but cannot be edited';
      setText(this.#facts, `Written by sequence ${formatCount(entry.sequence)}${expires}; read in ${took}${shown}.`);
      this.#say('');
    } catch (error) {
      this.#events.onError(error);
    }
  }

  /** The sequence of the write that made the shown value; null where there is none. */
  get #sequence(): number | null {
    return this.#entry?.sequence ?? null;
  }

  async #write(): Promise<void> {
    const store = this.#store;
    if (store === undefined || this.#valueInput.readOnly) return;
    const turn = this.#turn;
    let key: Key;
    let value: unknown;
    try {
      if (this.#key === undefined && this.#keyInput.value.trim() === '') throw new Error('An entry needs a key.');
      key = this.#key ?? parseKey(this.#keyInput.value);
      value = this.#parseValue();
    } catch (error) {
      return this.#say(error instanceof Error ? error.message : String(error));
    }
    try {
      const start = performance.now();
      await store.set(key, value, { ifSequence: this.#sequence, expiresAt: this.#entry?.expiresAt });
      const took = formatDuration(performance.now() - start);
      if (turn === this.#turn) {
        await this.show(key);
        this.#say('', `Saved in ${took}`);
      }
      this.#events.onChange();
    } catch (error) {
      this.#refused(error);
    }
  }

  #parseValue(): unknown {
    try {
      return parseExactJson(this.#valueInput.value);
    } catch (error) {
      if (error instanceof InexactJson) throw new Error(inexact(error));
      const why = error instanceof Error ? error.message : String(error);
      throw new Error(`The value is not JSON: ${why}. Put a text in quotes.`);
    }
  }

  async #remove(): Promise<void> {
    const [store, key, turn] = [this.#store, this.#key, this.#turn];
    if (store === undefined || key === undefined) return;
    try {
      const start = performance.now();
      await store.delete(key, { ifSequence: this.#sequence });
      const took = formatDuration(performance.now() - start);
      if (turn === this.#turn) {
        this.begin();
        this.#say('', `${keyText(key)} was deleted in ${took}`);
        this.#keyInput.focus();
      }
      this.#events.onChange();
    } catch (error) {
      this.#refused(error);
    }
  }

  #refused(error: unknown): void {
    const code = codeOf(error);
    if (code === undefined) return this.#events.onError(error);
    if (code !== 'VARVE_CONFLICT') return this.#say((error as Error).message);
    this.#say(
      this.#sequence === null
        ? 'There is an entry with this key already. Choose it in the list to change it.'
        : 'Another tab or page changed this entry meanwhile, so nothing was written. Choose it in the list again.',
    );
  }

  #say(error: string, status = ''): void {
    setText(this.#error, error);
    setText(this.#status, status);
  }
}
