// A line at the foot of the page that states what was done and can undo it.
// Invariant: there is at most one; a new one replaces the one before.

import { byId, setText } from './dom.ts';

export class Notice {
  readonly #box = byId('notice', HTMLElement);
  readonly #text = byId('notice-text', HTMLElement);
  readonly #undo = byId('notice-undo', HTMLButtonElement);
  #onUndo: (() => void) | undefined;

  constructor() {
    this.#undo.addEventListener('click', () => {
      const undo = this.#onUndo;
      this.hide();
      undo?.();
    });
    byId('notice-close', HTMLButtonElement).addEventListener('click', () => this.hide());
  }

  /** States what was done. The undo button gets the focus, because the element that had it is gone. */
  show(text: string, onUndo: () => void): void {
    this.#onUndo = onUndo;
    this.#box.hidden = false;
    setText(this.#text, text);
    this.#undo.focus();
  }

  hide(): void {
    this.#onUndo = undefined;
    this.#box.hidden = true;
    setText(this.#text, '');
  }
}
