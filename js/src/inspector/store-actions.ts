/**
 * Making and deleting stores.
 * Invariant: a store that the page gave to the inspector cannot be deleted here.
 */

import { button, element, field, setText, textInput } from './dom.ts';
import { questionDialog } from './question.ts';

/** Called when the developer has agreed. */
interface StoreActionsOptions {
  onCreate(name: string): unknown;
  onDelete(): unknown;
}

/** The buttons beside the choice of the store. */
export class StoreActions {
  readonly #delete = button('delete-store', 'Delete it', 'danger');
  readonly #deletion: HTMLDialogElement;
  readonly root: HTMLElement;

  constructor({ onCreate, onDelete }: StoreActionsOptions) {
    const name = textInput('new-store-name', { required: '' });
    const create = button('new-store', 'New store');
    const creation = questionDialog({
      id: 'create-store',
      title: 'Make a store?',
      text: 'It is made in this origin, with the default options, and empty. A store of that name that is there already is opened.',
      no: 'Cancel',
      yes: 'Make it',
      input: field('Name', name),
      onYes: () => onCreate(name.value),
    });
    this.#deletion = questionDialog({
      id: 'drop-store',
      title: '',
      text: 'This deletes the store with all its data. You cannot undo it. Every tab that has the store open closes it.',
      no: 'Keep it',
      yes: 'Delete it',
      kind: 'danger',
      onYes: onDelete,
    });
    create.addEventListener('click', () => {
      name.value = '';
      creation.showModal();
    });
    this.#delete.addEventListener('click', () => this.#deletion.showModal());
    this.root = element('div', { class: 'store-actions' }, create, this.#delete, creation, this.#deletion);
    this.show(undefined);
  }

  /** The store that can be deleted; undefined if there is none. */
  show(name: string | undefined): void {
    this.#delete.hidden = name === undefined;
    setText(this.#deletion.querySelector('h2') as Element, `Delete the store ${name}?`);
  }
}
