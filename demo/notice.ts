// A line at the foot of the page that says what was done and can take it back.
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

  /** Says what was done; the undo button has the focus, as what had it is gone. */
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
