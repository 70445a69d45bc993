// Which keys are shown: all, those with a prefix, or those between two.
// Invariant: a range that cannot be read is reported at its field and is not requested.

import type { Key, KeyRange } from 'varve';
import { byId, setText } from '../dom.ts';
import { parseKey } from './key-text.ts';

export class RangeForm {
  readonly #form = byId('range-form', HTMLFormElement);
  readonly #kind = byId('range-kind', HTMLSelectElement);
  readonly #from = byId('range-from', HTMLInputElement);
  readonly #to = byId('range-to', HTMLInputElement);
  readonly #reverse = byId('range-reverse', HTMLInputElement);
  readonly #error = byId('range-error', HTMLElement);

  /** @param onShow called when another range is to be shown */
  constructor(onShow: () => void) {
    this.#form.addEventListener('submit', (event) => {
      event.preventDefault();
      onShow();
    });
    this.#kind.addEventListener('change', () => {
      this.#show();
      if (this.#kind.value === 'all') onShow();
    });
    this.#reverse.addEventListener('change', onShow);
    this.#show();
  }

  get isReverse(): boolean {
    return this.#reverse.checked;
  }

  /** The range, or undefined where it cannot be read, which the form reports. */
  read(): KeyRange | undefined {
    setText(this.#error, '');
    try {
      if (this.#kind.value === 'prefix') return { prefix: prefixOf(parseKey(this.#from.value)) };
      if (this.#kind.value === 'all') return {};
      const [from, to] = [this.#from.value.trim(), this.#to.value.trim()];
      return { ...(from !== '' && { gte: parseKey(from) }), ...(to !== '' && { lte: parseKey(to) }) };
    } catch (error) {
      setText(this.#error, error instanceof Error ? error.message : String(error));
      return undefined;
    }
  }

  /** Shows keys with a prefix. */
  choosePrefix(text: string): void {
    this.#kind.value = text === '' ? 'all' : 'prefix';
    this.#from.value = text;
    this.#show();
  }

  #show(): void {
    this.#form.dataset['kind'] = this.#kind.value;
    setText(byId('range-from-label', HTMLElement), this.#kind.value === 'prefix' ? 'Begins with' : 'From');
  }
}

function prefixOf(key: Key): string | Uint8Array | readonly Key[] {
  if (typeof key === 'string' || key instanceof Uint8Array || Array.isArray(key)) return key as string;
  throw new Error(
    'A prefix is a text, bytes, or a list: ["name"] is the prefix of ["name", "oslo"]. A number cannot be a prefix.',
  );
}
