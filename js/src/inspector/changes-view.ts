/**
 * Changes as they come, newest first, from every tab.
 * Invariant: at most `LINES_MAX` of them are shown. Screen readers do not announce them by themselves: that would never end.
 */

import { button, element, setText, title } from './dom.ts';
import { type AnyChange, Feed } from './feed.ts';
import { formatCount, plural } from './format.ts';
import { keyText } from './keys/key-text.ts';
import { valueLine } from './keys/value-text.ts';
import type { AnyStore, View } from './store.ts';

const LINES_MAX = 200;
const LINE_LENGTH = 200;
const clock = new Intl.DateTimeFormat('en', { timeStyle: 'medium', hour12: false });

export class ChangesView implements View {
  readonly #list = element('ol', {
    id: 'changes-list',
    class: 'story',
    // A list that scrolls must be reachable with the keyboard.
    attributes: { tabindex: '0', 'aria-label': 'Changes, newest first' },
  });
  readonly #hold = button('changes-hold', 'Hold the list');
  readonly #count = element('p', { id: 'changes-count', class: 'note' });
  readonly #feed: Feed;
  readonly root = element(
    'section',
    { class: 'panel', attributes: { 'aria-labelledby': 'changes-title' } },
    element('div', { class: 'view-head' }, title('changes-title', 'Changes'), this.#hold),
    this.#count,
    this.#list,
  );
  #store: AnyStore | undefined;
  #seen = 0;
  #isHeld = false;

  constructor(onError: (error: unknown) => void) {
    this.#feed = new Feed({ onChanges: (changes, count) => this.#show(changes, count), onError });
    this.#hold.setAttribute('aria-pressed', 'false');
    this.#hold.addEventListener('click', () => {
      this.#isHeld = !this.#isHeld;
      this.#hold.setAttribute('aria-pressed', String(this.#isHeld));
    });
  }

  async start(store: AnyStore): Promise<void> {
    if (store !== this.#store) {
      this.#store = store;
      this.#seen = 0;
      this.#list.replaceChildren();
    }
    await this.#feed.follow(store);
    this.#report();
  }

  stop(): void {
    this.#feed.stop();
  }

  #show(changes: readonly AnyChange[], count: number): void {
    this.#seen += count;
    if (this.#isHeld) return;
    const time = clock.format(new Date());
    this.#list.prepend(...changes.map((change) => line(change, time)).reverse());
    while (this.#list.childElementCount > LINES_MAX) this.#list.lastElementChild?.remove();
    this.#report();
  }

  #report(): void {
    const shown = this.#list.childElementCount;
    const rest = this.#seen > shown ? `, the newest ${formatCount(shown)} are shown` : '';
    const seen = `${plural(this.#seen, 'change', 'changes')} since the view was opened${rest}.`;
    setText(this.#count, this.#seen === 0 ? 'Changes of every tab appear here, as they are committed.' : seen);
  }
}

function line(change: AnyChange, time: string): HTMLElement {
  const [what, value] = wordsOf(change);
  return element(
    'li',
    { attributes: { 'data-kind': change.type } },
    element('time', { text: time }),
    element('span', { class: 'change-kind', text: change.type === 'deleteRange' ? 'delete range' : change.type }),
    element('code', { class: 'change-key', text: what }),
    element('span', { class: 'entry-value', text: value }),
  );
}

/** The key or the range of a change, and its value. */
function wordsOf(change: AnyChange): [what: string, value: string] {
  switch (change.type) {
    case 'set':
      return [keyText(change.key), valueLine(change.value, LINE_LENGTH)];
    case 'delete':
      return [keyText(change.key), ''];
    case 'deleteRange': {
      const bounds = Object.entries(change.range).map(([name, bound]) => `${name} ${keyText(bound)}`);
      return [bounds.length === 0 ? 'all keys' : bounds.join(', '), ''];
    }
    case 'gap':
      return [`sequences ${formatCount(change.since + 1)} to ${formatCount(change.sequence)} are not known`, ''];
  }
}
