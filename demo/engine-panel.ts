// The engine at work: its memtable, log, tables and cache, four times a second while the page is visible.
// Invariant: it shows what `stats()` reports and computes nothing itself but rates between two looks.

import type { LevelStats, StoreStats } from 'varve';
import { isPassing } from '../js/src/inspector/errors.ts';
import { byId, element, setText } from './dom.ts';
import { formatAgo, formatBytes, formatCount, plural } from './format.ts';
import type { CityStore } from './gazetteer.ts';
import { WriteRecord } from './write-record.ts';

const LOOK_MS = 250;
/** More tables than this in one level are not drawn one by one. */
const BLOCKS_MAX = 48;
/** Number of looks for the rate of cache hits. */
const HIT_LOOKS = 3;
const NO_LEVEL: LevelStats = { tables: 0, bytes: 0, entries: 0, targetBytes: 0, score: 0 };

export interface EngineEvents {
  /** After each look, with the time that the store took to answer. */
  onLook(stats: StoreStats, tookMs: number): void;
  /** The leading tab does not answer; undefined: it answers again. */
  onStall(error: unknown): void;
  onError(error: unknown): void;
}

export class EnginePanel {
  readonly #store: CityStore;
  readonly #events: EngineEvents;
  readonly #panel = byId('engine', HTMLElement);
  readonly #levels = byId('engine-levels', HTMLElement);
  readonly #memtable = byId('engine-memtable', HTMLElement);
  readonly #frozen = byId('engine-frozen', HTMLElement);
  readonly #wal = byId('engine-wal', HTMLElement);
  readonly #hits = byId('engine-hits', HTMLElement);
  readonly #record = new WriteRecord();
  /** Counts of the looks at which blocks had been read. */
  readonly #lookups: { hits: number; reads: number }[] = [{ hits: 0, reads: 0 }];
  #isInView = true;
  #isLooking = false;
  #isStalled = false;
  #timer: ReturnType<typeof setTimeout> | undefined;

  constructor(store: CityStore, events: EngineEvents) {
    this.#store = store;
    this.#events = events;
    new IntersectionObserver(([entry]) => {
      this.#isInView = entry?.isIntersecting ?? true;
      this.#look();
    }).observe(this.#panel);
    document.addEventListener('visibilitychange', () => this.#look());
    this.#look();
  }

  async #look(): Promise<void> {
    clearTimeout(this.#timer);
    if (this.#isLooking || document.visibilityState === 'hidden') return;
    this.#isLooking = true;
    const goesOn = await this.#lookOnce();
    this.#isLooking = false;
    if (goesOn) this.#timer = setTimeout(() => this.#look(), LOOK_MS);
  }

  /** Whether another look is useful. */
  async #lookOnce(): Promise<boolean> {
    try {
      const start = performance.now();
      const stats = await this.#store.stats();
      this.#events.onLook(stats, performance.now() - start);
      if (this.#isInView) this.#show(stats);
      if (this.#isStalled) this.#events.onStall(undefined);
      this.#isStalled = false;
      return true;
    } catch (error) {
      this.#isStalled = isPassing(error);
      if (this.#isStalled) this.#events.onStall(error);
      else this.#events.onError(error);
      return this.#isStalled;
    }
  }

  #show(stats: StoreStats): void {
    this.#showMemory(stats);
    this.#showLevels(stats.levels.length > 0 ? stats.levels : [NO_LEVEL]);
    this.#showGauges(stats);
    this.#record.add(stats.sequence);
  }

  #showMemory(stats: StoreStats): void {
    const {
      memtable: { bytes: memtableBytes, maxBytes: memtableBytesMax, frozen },
      log: { segmentBytes: walSegmentBytes, segments: walSegments },
    } = stats;
    fill(this.#memtable, memtableBytes / memtableBytesMax);
    fill(this.#wal, walSegmentBytes / memtableBytesMax);
    resize(this.#frozen, Math.min(frozen, BLOCKS_MAX));
    write('engine-memtable-text', `${formatBytes(memtableBytes)} of ${formatBytes(memtableBytesMax)}`);
    write('engine-memtable-entries', plural(stats.memtable.entries, 'entry', 'entries'));
    write('engine-wal-text', `${formatBytes(walSegmentBytes)}, ${plural(walSegments, 'segment', 'segments')}`);
    write('engine-wal-syncs', plural(stats.log.syncs, 'flush', 'flushes'));
  }

  /** Level 0 always, and every level that has tables. */
  #showLevels(levels: readonly LevelStats[]): void {
    levels.forEach((level, number) => {
      const row = this.#levels.children[number] ?? this.#levels.appendChild(levelRow(number));
      const [blocks, tables, bytes] = [row.children[1], row.querySelector('.tables'), row.querySelector('.bytes')];
      if (!(row instanceof HTMLElement) || !(blocks instanceof HTMLElement) || !tables || !bytes) return;
      row.hidden = number > 0 && level.tables === 0;
      setText(tables, plural(level.tables, 'table', 'tables'));
      setText(bytes, level.tables === 0 ? '' : formatBytes(level.bytes));
      resize(blocks, Math.min(level.tables, BLOCKS_MAX));
    });
  }

  /** The hits of the last seconds in which blocks were read, and all of them in words. */
  #showHits({ cache: { hits, misses } }: StoreStats): void {
    const reads = hits + misses;
    if (reads !== this.#lookups.at(-1)?.reads) {
      this.#lookups.push({ hits, reads });
      if (this.#lookups.length > HIT_LOOKS) this.#lookups.shift();
    }
    const first = this.#lookups[0] ?? { hits: 0, reads: 0 };
    const recent = reads - first.reads;
    const rate = recent === 0 ? 0 : (hits - first.hits) / recent;
    fill(this.#hits, rate);
    write('engine-hits-text', recent === 0 ? 'no block read yet' : `${(100 * rate).toFixed(1)} % lately`);
    write('engine-hits-count', `${formatCount(hits)} of ${plural(reads, 'block read', 'block reads')} in all`);
  }

  #showGauges(stats: StoreStats): void {
    const nowMs = Date.now();
    this.#showHits(stats);
    write('engine-disk', formatBytes(stats.disk.bytes));
    write('engine-cache', `${formatBytes(stats.cache.bytes)} of ${formatBytes(stats.cache.maxBytes)}`);
    write('engine-resident', formatBytes(stats.cache.indexBytes));
    write('engine-sequence', formatCount(stats.sequence));
    write('engine-flush', formatAgo(stats.flush.lastAt, nowMs));
    write('engine-flush-count', `${formatCount(stats.flush.count)} so far, ${formatBytes(stats.flush.writtenBytes)}`);
    write('engine-compaction', formatAgo(stats.compaction.lastAt, nowMs));
    const compacted = formatBytes(stats.compaction.writtenBytes);
    write('engine-compaction-count', `${formatCount(stats.compaction.count)} so far, ${compacted}`);
  }
}

function levelRow(number: number): HTMLElement {
  const label = element(
    'p',
    { class: 'stratum-label' },
    element('strong', { text: `Level ${number}` }),
    element('span', { class: 'tables' }),
    element('span', { class: 'bytes' }),
  );
  // Tables of level 0 overlap and lie on each other; those of deeper levels divide the keys among them and lie side by side.
  const blocks = element('div', {
    class: number === 0 ? 'blocks stacked' : 'blocks',
    attributes: { 'aria-hidden': 'true' },
  });
  return element('div', { class: 'stratum level', attributes: { 'data-level': String(number) } }, label, blocks);
}

/** Gives a row so many blocks; blocks that stay are not touched, so that only new ones play the animation. */
function resize(blocks: HTMLElement, count: number): void {
  while (blocks.childElementCount > count) blocks.lastElementChild?.remove();
  while (blocks.childElementCount < count) blocks.append(element('i', { class: 'block' }));
}

function fill(target: HTMLElement, part: number): void {
  target.style.setProperty('--fill', String(Math.min(1, Math.max(0, part))));
}

function write(id: string, text: string): void {
  setText(byId(id, HTMLElement), text);
}
