/**
 * The events in words, newest first.
 * Invariant: at most `LINES_MAX` lines; each has its time. Screen readers do not announce it by themselves: that would never end.
 */

import { element } from '../dom.ts';
import type { EngineEvent } from './engine-events.ts';
import { sentenceOf } from './words.ts';

const LINES_MAX = 40;
const clock = new Intl.DateTimeFormat('en', { timeStyle: 'medium', hour12: false });

export class Story {
  readonly list = element('ol', {
    id: 'live-story',
    class: 'story',
    // A list that scrolls must be reachable with the keyboard.
    attributes: { tabindex: '0', 'aria-label': 'What the engine did, newest first' },
  });

  show(events: readonly EngineEvent[]): void {
    for (const event of events) this.say(sentenceOf(event), event.kind);
  }

  say(words: string, kind: string): void {
    const time = element('time', { text: clock.format(new Date()) });
    const line = element('li', { attributes: { 'data-kind': kind } }, time, element('span', { text: words }));
    this.list.prepend(line);
    while (this.list.childElementCount > LINES_MAX) this.list.lastElementChild?.remove();
  }

  clear(): void {
    this.list.replaceChildren();
  }
}
