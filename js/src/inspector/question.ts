/**
 * Dialogs that ask before something is done.
 * Invariant: nothing is done unless its button is pressed.
 */

import { element, submit, title } from './dom.ts';

/** A question, and the words of its buttons. */
interface Question {
  /** The ids in the dialog begin with it. */
  readonly id: string;
  readonly title: string;
  readonly text: string;
  readonly no: string;
  readonly yes: string;
  /** The kind of the button that does it. */
  readonly kind?: 'danger';
  /** A further question. Enter in it is a yes. */
  readonly input?: HTMLElement;
  onYes(): unknown;
}

/** Makes a dialog, which `showModal()` opens. */
export function questionDialog({ id, title: words, text, no, yes, kind, input, onYes }: Question): HTMLDialogElement {
  const heading = title(`${id}-title`, words);
  const [refuse, agree] = [submit(`${id}-no`, no), submit(`${id}-yes`, yes, kind)];
  refuse.formNoValidate = true;
  agree.value = 'yes';
  const actions = element('div', { class: 'form-actions' }, ...(input ? [agree, refuse] : [refuse, agree]));
  const children = [heading, element('p', { text }), ...(input ? [input] : []), actions];
  const form = element('form', { attributes: { method: 'dialog' } }, ...children);
  const dialog = element('dialog', { id: `${id}-dialog`, attributes: { 'aria-labelledby': heading.id } }, form);
  dialog.addEventListener('close', () => {
    if (dialog.returnValue === 'yes') onYes();
    dialog.returnValue = '';
  });
  return dialog;
}
