/**
 * One level of the picture: in level 0 tables lie on each other, since each may contain any key. Below they lie side by side, each
 * with its own stretch of the keys. Invariant: as many blocks as tables, up to `BLOCKS_MAX`; a block that stays is not touched, so
 * that only new ones play the animation.
 */

import type { StoreStats } from '../../types.ts';
import { setText } from '../dom.ts';
import { type Box, LABEL_HEIGHT } from './layout.ts';
import { change, label, place, svg } from './svg.ts';

const BLOCKS_MAX = 160;
/** The number of tables that fit in the height of level 0: more than may accumulate before writers wait. */
const TABLES_HIGH = 20.5;

export class LevelRow {
  readonly root: SVGGElement;
  readonly #level: number;
  readonly #ground = svg('rect', { class: 'ground', rx: 4 });
  readonly #blocks = svg('g');
  readonly #gauge = svg('rect', { class: 'gauge' });
  readonly #name: SVGTextElement;
  readonly #text = label('', { class: 'figures', 'text-anchor': 'end' });
  readonly #mark = svg('line', { class: 'mark' });
  #box: Box = { x: 0, y: 0, width: 0, height: 0 };
  #count = 0;

  constructor(level: number) {
    this.#level = level;
    // The numbers are those of the page's list "How to read it".
    this.#name = label(`${level === 0 ? '\u2462' : '\u2463'} Level ${level}`, { class: 'name' });
    this.root = svg('g', { class: `level-row level-${level}`, 'data-level': level, 'data-tables': 0 });
    this.root.append(this.#ground, this.#blocks, this.#gauge, this.#name, this.#text, this.#mark);
  }

  /** Where the last table lies, or the next one would. */
  get newest(): Box {
    const { x, y, width, height } = this.#box;
    const step = this.#step;
    return { x: x + 4, y: y + height - Math.max(1, this.#count) * step, width: width - 8, height: step - 1 };
  }

  /** Height of a table of level 0 with the gap above it. */
  get #step(): number {
    return this.#box.height / TABLES_HIGH;
  }

  /** Puts the level in its place. */
  arrange(box: Box): void {
    this.#box = box;
    change(this.#ground, place(box));
    change(this.#name, { x: box.x, y: box.y - (LABEL_HEIGHT - 16) });
    change(this.#text, { x: box.x + box.width, y: box.y - (LABEL_HEIGHT - 16) });
    change(this.#mark, { visibility: this.#level === 0 ? 'visible' : 'hidden' });
    this.#layBlocks();
  }

  show({ levels, compaction: { levelZeroTrigger } }: StoreStats, words: string): void {
    const { tables = 0, score = 0 } = levels[this.#level] ?? {};
    setText(this.#text, words);
    change(this.root, { 'data-tables': tables });
    if (this.#level === 0) this.#drawMark(levelZeroTrigger);
    else this.#drawGauge(score);
    const count = Math.min(BLOCKS_MAX, tables);
    if (count === this.#count && this.#blocks.childElementCount === count) return;
    this.#count = count;
    while (this.#blocks.childElementCount > count) this.#blocks.lastElementChild?.remove();
    while (this.#blocks.childElementCount < count) this.#blocks.append(svg('rect', { class: 'table', rx: 1.5 }));
    this.#layBlocks();
  }

  remove(): void {
    this.root.remove();
  }

  #layBlocks(): void {
    const { x, y, width, height } = this.#box;
    const inner = width - 8;
    const step = this.#step;
    [...this.#blocks.children].forEach((block, i) => {
      if (this.#level === 0) {
        change(block, place({ x: x + 4, y: y + height - (i + 1) * step, width: inner, height: step - 1 }));
      } else {
        const each = inner / this.#count;
        const gap = each > 6 ? 2 : 0.5;
        change(block, place({ x: x + 4 + i * each, y: y + 5, width: each - gap, height: height - 14 }));
      }
    });
  }

  /** Where a merge begins. */
  #drawMark(trigger: number): void {
    const { x, y, width, height } = this.#box;
    const at = y + height - trigger * this.#step - 0.5;
    change(this.#mark, { x1: x, x2: x + width, y1: at, y2: at });
  }

  /** How full the level is, as a line under its tables. */
  #drawGauge(score: number): void {
    const { x, y, width, height } = this.#box;
    const part = Math.min(1, score);
    change(this.#gauge, place({ x: x + 4, y: y + height - 6, width: (width - 8) * part, height: 3 }));
    change(this.#gauge, { class: score >= 1 ? 'gauge due' : 'gauge' });
  }
}
