/**
 * Figures beside the picture: the work of a second, how reads find their blocks, and what the memory is used for.
 * Invariant: it shows what `stats()` reports, and rates between two looks.
 */

import type { StoreStats } from '../../types.ts';
import { element, section, setText, title } from '../dom.ts';
import { formatBytes, formatCount, plural } from '../format.ts';

/** Rates are of the last second or so. */
const WINDOW_MS = 1000;

interface Look {
  readonly atMs: number;
  readonly stats: StoreStats;
}

export class Gauges {
  #looks: Look[] = [];
  readonly #rate = figure('live-rate');
  readonly #state = figure('live-state', 'note');
  readonly #amplification = figure('live-amplification');
  readonly #jobs = figure('live-jobs', 'note');
  readonly #disk = figure('live-disk');
  readonly #hits = bar('live-hits', 'meter');
  readonly #found = figure('live-reads-found', 'note');
  readonly #saved = bar('live-saved', 'meter');
  readonly #filters = figure('live-filters', 'note');
  readonly #memory = bar('live-memory', 'memory');
  readonly #memoryText = figure('live-memory-text', 'note');
  readonly root = section(
    'live-figures',
    title('live-figures-title', 'Figures'),
    element(
      'dl',
      { class: 'figures-list' },
      group('', 'Written just now', this.#rate, this.#state),
      group('', 'Write amplification', this.#amplification, this.#jobs),
      group('', 'On disk', this.#disk),
      group('wide', 'Cache', this.#hits, this.#found),
      group('wide', 'Reads of tables that filters avoid', this.#saved, this.#filters),
      group('wide', 'Memory', this.#memory, this.#memoryText),
    ),
  );

  constructor() {
    this.#memory.append(element('i'), element('i'), element('i'));
  }

  restart(): void {
    this.#looks = [];
  }

  show(stats: StoreStats, nowMs: number): void {
    this.#looks.push({ atMs: nowMs, stats });
    while (this.#looks.length > 2 && nowMs - (this.#looks[1] as Look).atMs >= WINDOW_MS) this.#looks.shift();
    const first = this.#looks[0] as Look;
    const second = Math.max(0.001, (nowMs - first.atMs) / 1000);
    const written = Math.max(0, stats.sequence - first.stats.sequence);
    setText(this.#rate, `${formatCount(written / second)} entries/s`);
    setText(this.#state, stats.stalled ? 'writers wait for the engine' : 'no writer waits');
    this.#state.dataset['stalled'] = String(stats.stalled);
    setText(
      this.#amplification,
      stats.compaction.writeAmplification === 0 ? 'no flush yet' : stats.compaction.writeAmplification.toFixed(2),
    );
    const merged = `${plural(stats.flush.count, 'flush', 'flushes')}, ${plural(stats.compaction.count, 'compaction', 'compactions')}`;
    setText(this.#jobs, `${merged}, ${plural(stats.compaction.movedTables, 'table', 'tables')} moved`);
    setText(this.#disk, formatBytes(stats.disk.bytes));
    this.#showReads(first.stats, stats);
    this.#showFilters(first.stats, stats);
    this.#showMemory(stats);
  }

  #showReads(first: StoreStats, stats: StoreStats): void {
    const hits = Math.max(0, stats.cache.hits - first.cache.hits);
    const misses = Math.max(0, stats.cache.misses - first.cache.misses);
    const all = hits + misses;
    fill(this.#hits, all === 0 ? 0 : hits / all);
    const words = `${((100 * hits) / Math.max(1, all)).toFixed(1)} % of ${plural(all, 'block', 'blocks')} came from the cache`;
    setText(this.#found, all === 0 ? 'no block was read just now' : words);
  }

  /** Each look into a table that a filter saves is one block that need not be found. */
  #showFilters(first: StoreStats, { cache: { filterChecks, filterNegatives } }: StoreStats): void {
    const checks = Math.max(0, filterChecks - first.cache.filterChecks);
    const saved = Math.max(0, filterNegatives - first.cache.filterNegatives);
    const part = checks === 0 ? 0 : saved / checks;
    fill(this.#saved, part);
    const now = `${(100 * part).toFixed(1)} % of ${plural(checks, 'read', 'reads')} of tables were avoided`;
    const words = checks === 0 ? 'no table was read just now' : now;
    setText(this.#filters, `${words}; ${formatCount(filterNegatives)} avoided in all`);
  }

  #showMemory({
    memtable: { bytes: memtableBytes, frozenBytes },
    cache: { indexBytes: residentBytes, bytes: cacheBytes },
    memoryBytes: memoryBytesMax,
  }: StoreStats): void {
    const memtables = memtableBytes + frozenBytes;
    const parts = { memtables, tables: residentBytes, cache: cacheBytes };
    for (const [name, bytes] of Object.entries(parts)) {
      this.#memory.style.setProperty(`--${name}`, String(Math.min(1, bytes / Math.max(1, memoryBytesMax))));
    }
    const used = memtables + residentBytes + cacheBytes;
    setText(
      this.#memoryText,
      `${formatBytes(used)} of ${formatBytes(memoryBytesMax)}: memtables ${formatBytes(memtables)}, indexes and filters ${formatBytes(residentBytes)}, blocks ${formatBytes(cacheBytes)}`,
    );
  }
}

function fill(target: HTMLElement, part: number): void {
  target.style.setProperty('--fill', String(Math.min(1, Math.max(0, part))));
}

function group(kind: string, term: string, ...figures: Node[]): HTMLElement {
  return element('div', { class: kind }, element('dt', { text: term }), ...figures);
}

function figure(id: string, kind = ''): HTMLElement {
  return element('dd', { id, class: kind });
}

/** A figure as a picture; the words below it give the same figure. */
function bar(id: string, kind: string): HTMLElement {
  return element('dd', { id, class: kind, attributes: { 'aria-hidden': 'true' } });
}
