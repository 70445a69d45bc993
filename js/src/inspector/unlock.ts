/**
 * Asks for the passphrase of an encrypted store.
 * Invariant: a passphrase is nowhere in the document once it was given, and its key is kept only until the panel is hidden.
 */

import { deriveKey, type PassphraseKey } from '../index.ts';
import { element, field, submit, textInput } from './dom.ts';

/** The form, and the keys of the passphrases that were given. */
export class Unlock {
  readonly #given = new Map<string, PassphraseKey>();
  readonly #input = textInput('passphrase', { type: 'password', required: '' });
  #name = '';
  readonly root: HTMLFormElement;

  /** @param onGiven called with the name of the store to open again */
  constructor(onGiven: (name: string) => unknown) {
    this.root = element('form', { id: 'unlock' }, field('Passphrase', this.#input), submit('unlock-store', 'Open it'));
    this.root.addEventListener('submit', async (event) => {
      event.preventDefault();
      const [name, given] = [this.#name, deriveKey(this.#input.value)];
      this.hide();
      this.#name = name;
      const key = await given;
      // Meanwhile another store may have been chosen, or the panel hidden.
      if (this.#name !== name) return;
      this.#given.set(name, key);
      onGiven(name);
    });
    this.hide();
  }

  /** The key of a store, if its passphrase was given. */
  key(name: string): PassphraseKey | undefined {
    return this.#given.get(name);
  }

  /** Asks for that of a store which no key so far has opened. */
  ask(name: string): void {
    this.#given.delete(name);
    this.#name = name;
    this.root.hidden = false;
    this.#input.focus();
  }

  /** Asks no more. */
  hide(): void {
    this.#name = '';
    this.root.hidden = true;
    this.#input.value = '';
  }

  /** Removes all keys. */
  forget(): void {
    this.#given.clear();
    this.hide();
  }
}
