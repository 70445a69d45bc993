/**
 * The engine, live: the picture of the last look at a store, its figures, and what happened since the view was opened.
 * Invariant: while the picture is held, nothing in the view changes.
 */

import type { StoreStats } from '../../types.ts';
import { button, check, element, section, setText, title } from '../dom.ts';
import type { AnyStore, View } from '../store.ts';
import { Gauges } from './gauges.ts';
import { Picture } from './picture.ts';
import { Story } from './story.ts';
import { svg } from './svg.ts';
import { summaryOf } from './words.ts';

/** The parts of the picture, in the order of their numbers, each with what happens there. */
const LEGEND = [
  ['A write', ' is appended to the log and put into the memtable. Then it is acknowledged: no other file is touched.'],
  ['A full memtable', ' is frozen and written out as a sorted table of level 0. The log up to there is deleted.'],
  [
    'Tables of level 0',
    ' can each contain any key, so they lie on top of each other. Eight of them are merged into the next level.',
  ],
  [
    'Deeper tables',
    ' each cover their own range of keys. A level that grows too large passes tables down. Levels that are not needed yet are not shown.',
  ],
  [
    'A read',
    ' looks from top to bottom and stops at the first hit. Each table has a filter, so that a read can skip most tables that lack the key.',
  ],
] as const;

export class LiveView implements View {
  readonly #title = title('live-title', 'The engine, now');
  readonly #slow = element('input', { id: 'live-slow' });
  readonly #hold = button('live-hold', 'Hold the picture');
  readonly #drawing = svg('svg', {
    id: 'live-picture',
    role: 'img',
    'aria-label': 'The engine as layers',
    'aria-describedby': 'live-summary',
  });
  readonly #picture = new Picture(this.#drawing);
  readonly #summary = element('figcaption', { id: 'live-summary', class: 'note' });
  readonly #gauges = new Gauges();
  readonly #story = new Story();
  readonly root: HTMLElement;
  #store: AnyStore | undefined;
  #isHeld = false;

  constructor() {
    const head = element('div', { class: 'view-head' }, this.#title, check(this.#slow, 'Slow motion'), this.#hold);
    const figure = element(
      'figure',
      { class: 'panel live-show', attributes: { 'aria-labelledby': this.#title.id } },
      head,
      this.#drawing,
      this.#summary,
    );
    const lines = LEGEND.map(([part, words]) => element('li', {}, element('strong', { text: part }), words));
    const legend = element('ol', { class: 'legend' }, ...lines);
    const log = section('live-log', title('live-log-title', 'What happened'), this.#story.list);
    const key = section('live-key', title('live-key-title', 'How to read it'), legend);
    this.root = element('div', { class: 'live' }, figure, this.#gauges.root, log, key);
    this.#hold.setAttribute('aria-pressed', 'false');
    this.#hold.addEventListener('click', () => this.#toggleHold());
    this.#slow.addEventListener('change', () => {
      this.#picture.motion.isSlow = this.#slow.checked;
    });
  }

  start(store: AnyStore): void {
    if (store === this.#store) return;
    this.#store = store;
    this.#picture.restart();
    this.#gauges.restart();
    this.#story.clear();
  }

  stop(): void {
    this.#picture.motion.clear();
  }

  look(stats: StoreStats): void {
    if (this.#isHeld) return;
    this.#story.show(this.#picture.show(stats));
    this.#gauges.show(stats, performance.now());
    setText(this.#summary, summaryOf(stats));
  }

  #toggleHold(): void {
    this.#isHeld = !this.#isHeld;
    this.#hold.setAttribute('aria-pressed', String(this.#isHeld));
    if (this.#isHeld) this.#picture.motion.clear();
  }
}
