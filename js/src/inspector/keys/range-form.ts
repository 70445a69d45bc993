/**
 * Which keys are shown: all, those with a prefix, or those between two.
 * Invariant: a range that cannot be read is reported at its field and is not requested.
 */

import type { Key, KeyRange } from '../../types.ts';
import { check, element, errorLine, field, select, setText, submit, textInput } from '../dom.ts';
import { parseKey } from './key-text.ts';

export class RangeForm {
  readonly #kind = select('range-kind', { all: 'all', prefix: 'with a prefix', between: 'between two' });
  readonly #from = textInput('range-from', { placeholder: '["note", 42]', 'aria-describedby': 'range-error' });
  readonly #fromField = field('From', this.#from, 'range-from');
  readonly #to = textInput('range-to', { 'aria-describedby': 'range-error' });
  readonly #reverse = element('input', { id: 'range-reverse' });
  readonly error = errorLine('range-error');
  readonly form = element(
    'form',
    { id: 'range-form' },
    field('Keys', this.#kind),
    this.#fromField,
    field('To, this one included', this.#to, 'range-to'),
    submit('range-show', 'Show'),
    check(this.#reverse, 'Last first'),
  );

  /** @param onShow called when another range is to be shown */
  constructor(onShow: () => void) {
    this.form.addEventListener('submit', (event) => {
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
    setText(this.error, '');
    try {
      if (this.#kind.value === 'prefix') return { prefix: prefixOf(parseKey(this.#from.value)) };
      if (this.#kind.value === 'all') return {};
      const [from, to] = [this.#from.value.trim(), this.#to.value.trim()];
      return { ...(from !== '' && { gte: parseKey(from) }), ...(to !== '' && { lte: parseKey(to) }) };
    } catch (error) {
      setText(this.error, error instanceof Error ? error.message : String(error));
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
    this.form.dataset['kind'] = this.#kind.value;
    setText(this.#fromField.firstElementChild as Element, this.#kind.value === 'prefix' ? 'Begins with' : 'From');
  }
}

function prefixOf(key: Key): string | Uint8Array | readonly Key[] {
  if (typeof key === 'string' || key instanceof Uint8Array || Array.isArray(key)) return key as string;
  throw new Error(
    'A prefix is a text, bytes, or a list: ["name"] is the prefix of ["name", "oslo"]. A number cannot be a prefix.',
  );
}
