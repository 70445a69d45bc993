/**
 * The engine as a section through sediment: water above, where writes fall in; the surface of the disk; the log; and the
 * levels under each other, the older the deeper.
 * Invariant: what it shows at rest is a function of the last `stats()` and the width. Motion shows what changed since the look
 * before, and nothing else (engine-events.ts).
 */

import type { StoreStats } from '../../types.ts';
import { setText } from '../dom.ts';
import { formatBytes, formatCount, plural } from '../format.ts';
import { type EngineEvent, eventsBetween } from './engine-events.ts';
import { type Box, type Layout, layoutOf } from './layout.ts';
import { LevelRow } from './level-row.ts';
import { Motion } from './motion.ts';
import { change, label, place, svg } from './svg.ts';
import { fullness } from './words.ts';

/** Drops to fall in between two looks, at most. */
const DROPS_MAX = 6;

export class Picture {
  readonly #root: SVGSVGElement;
  readonly #rows = new Map<number, LevelRow>();
  readonly #under = svg('g');
  readonly #above = svg('g', { class: 'motion' });
  readonly motion = new Motion(this.#above);
  readonly #water = svg('rect', { class: 'water' });
  readonly #basin = svg('rect', { class: 'hollow' });
  readonly #waiting = svg('g');
  readonly #cacheRoom = svg('rect', { class: 'hollow' });
  readonly #cacheFill = svg('rect', { class: 'cached' });
  readonly #tableFill = svg('rect', { class: 'resident' });
  readonly #surface = svg('line', { class: 'surface' });
  readonly #axis = svg('line', { class: 'axis' });
  readonly #segments = svg('g');
  readonly #names: Readonly<Record<Name, SVGTextElement>>;
  #layout: Layout | undefined;
  #stats: StoreStats | undefined;
  #width = 0;

  constructor(root: SVGSVGElement) {
    this.#root = root;
    const names = {} as Record<Name, SVGTextElement>;
    for (const name of NAMES) names[name] = label('', { class: name.endsWith('Text') ? 'figures' : 'name' });
    this.#names = names;
    this.#under.append(this.#surface, this.#axis, this.#basin, this.#water, this.#cacheRoom);
    this.#under.append(this.#tableFill, this.#cacheFill, this.#waiting, this.#segments, ...Object.values(names));
    root.replaceChildren(this.#under, this.#above);
    new ResizeObserver(() => this.#resize()).observe(root);
  }

  /** Shows a look; returns the events since the one before. */
  show(stats: StoreStats): EngineEvent[] {
    const before = this.#stats;
    this.#stats = stats;
    this.#draw();
    const events = before === undefined ? [] : eventsBetween(before, stats);
    if (before !== undefined) this.#move(events, stats.sequence - before.sequence);
    return events;
  }

  /** Begins again: the next stats are of another store. */
  restart(): void {
    this.#stats = undefined;
    this.motion.clear();
  }

  #resize(): void {
    const width = Math.round(this.#root.clientWidth);
    if (width === 0 || width === this.#width) return;
    this.#width = width;
    this.#layout = undefined;
    this.#draw();
  }

  #draw(): void {
    const stats = this.#stats;
    if (stats === undefined || this.#width === 0) return;
    const shown = levelsShown(stats);
    if (this.#layout === undefined || [...this.#layout.levels.keys()].join() !== shown.join()) this.#arrange(shown);
    const layout = this.#layout;
    if (layout === undefined) return;
    this.#drawMemory(stats, layout);
    this.#drawLog(stats, layout);
    for (const [level, row] of this.#rows) row.show(stats, fullness(level, stats, layout.isNarrow));
  }

  /** Puts everything in its place. */
  #arrange(shown: readonly number[]): void {
    const layout = layoutOf(this.#width, shown);
    this.#layout = layout;
    const { width, height, memtable, frozen, cache, log, surfaceY, axisY } = layout;
    change(this.#root, { viewBox: `0 0 ${width} ${height}`, height });
    change(this.#basin, place(memtable));
    change(this.#cacheRoom, place(cache));
    change(this.#surface, { x1: 0, x2: width, y1: surfaceY, y2: surfaceY });
    change(this.#axis, { x1: 0, x2: width, y1: axisY, y2: axisY });
    this.#title('memtable', memtable, '\u2460 Memtable');
    this.#title('frozen', frozen, '\u2461 Frozen');
    this.#title('cache', cache, layout.isNarrow ? '\u2464 Cache' : '\u2464 Block cache');
    this.#title('log', log, '\u2460 Log');
    setText(this.#names.rain, '');
    change(this.#names.rain, { x: 0, y: 16 });
    this.#put('disk', 'The disk', width, surfaceY - 5, 'end');
    this.#put('axis', layout.isNarrow ? 'keys in order \u2192' : 'keys, in order \u2192', width, axisY + 16, 'end');
    for (const [level, row] of this.#rows) {
      if (layout.levels.has(level)) continue;
      row.remove();
      this.#rows.delete(level);
    }
    for (const [level, box] of layout.levels) {
      let row = this.#rows.get(level);
      if (row === undefined) {
        row = new LevelRow(level);
        this.#under.append(row.root);
        this.#rows.set(level, row);
      }
      row.arrange(box);
    }
  }

  #drawMemory(stats: StoreStats, { memtable, frozen, cache, isNarrow }: Layout): void {
    const {
      memtable: { bytes: memtableBytes, maxBytes: memtableBytesMax, entries: memtableEntries },
      cache: { bytes: cacheBytes, maxBytes: cacheBytesMax, indexBytes: residentBytes },
    } = stats;
    change(this.#water, place(filled(memtable, memtableBytes / memtableBytesMax)));
    setText(this.#names.memtableText, `${formatBytes(memtableBytes)} of ${formatBytes(memtableBytesMax)}`);
    const tables = filled(cache, residentBytes / cacheBytesMax);
    const blocks = filled(cache, (residentBytes + cacheBytes) / cacheBytesMax);
    change(this.#tableFill, place(tables));
    change(this.#cacheFill, place({ ...blocks, height: blocks.height - tables.height }));
    setText(this.#names.cacheText, formatBytes(cacheBytes));
    setText(
      this.#names.frozenText,
      isNarrow && stats.memtable.frozen === 0 ? 'none' : `${stats.memtable.frozen} waiting`,
    );
    setText(this.#names.rain, plural(memtableEntries, 'entry in the memtable', 'entries in the memtable'));
    const room = Math.max(1, stats.memtable.maxFrozen, stats.memtable.frozen);
    const height = (frozen.height - (room - 1) * 6) / room;
    const boxes = Array.from({ length: room }, (_, i) =>
      svg('rect', {
        ...place({ ...frozen, y: frozen.y + frozen.height - (i + 1) * height - i * 6, height }),
        class: i < stats.memtable.frozen ? 'ice' : 'hollow',
        rx: 4,
      }),
    );
    this.#waiting.replaceChildren(...boxes);
  }

  /** The retained segments, and the one being written, filled as far as it is. */
  #drawLog(
    {
      log: { segments: walSegments, segmentBytes: walSegmentBytes },
      memtable: { maxBytes: memtableBytesMax },
    }: StoreStats,
    { log }: Layout,
  ): void {
    const kept = Math.max(0, Math.min(walSegments - 1, 24));
    const oldWidth = Math.min(34, (log.width * 0.5) / Math.max(1, kept));
    const boxes: SVGElement[] = [];
    for (let i = 0; i < kept; i += 1) {
      const box = { ...log, x: i * oldWidth, width: oldWidth - 3 };
      boxes.push(svg('rect', { ...place(box), class: 'segment kept', rx: 3 }));
    }
    const rest = { ...log, x: kept * oldWidth, width: log.width - kept * oldWidth };
    const part = Math.min(1, walSegmentBytes / Math.max(1, memtableBytesMax));
    boxes.push(svg('rect', { ...place(rest), class: 'hollow', rx: 3 }));
    boxes.push(svg('rect', { ...place({ ...rest, width: rest.width * part }), class: 'segment', rx: 3 }));
    this.#segments.replaceChildren(...boxes);
    setText(
      this.#names.logText,
      `${formatBytes(walSegmentBytes)} in the open segment, ${formatCount(Math.max(0, walSegments - 1))} older`,
    );
  }

  /** Animates the changes. */
  #move(events: readonly EngineEvent[], written: number): void {
    const layout = this.#layout;
    if (layout === undefined) return;
    this.#rain(written, layout);
    for (const event of events) {
      if (event.kind === 'flush') this.#flush(event.tables, layout);
      else if (event.kind === 'compaction') this.#sink(event.from, event.into, event.tables, layout);
      else if (event.kind === 'move') this.#sink([event.into - 1], event.into, event.tables, layout);
    }
  }

  /** Written entries fall into the log and the memtable. */
  #rain(written: number, { memtable, log, surfaceY }: Layout): void {
    const drops = written <= 0 ? 0 : Math.min(DROPS_MAX, 1 + Math.floor(Math.log10(written) * 2));
    for (let i = 0; i < drops; i += 1) {
      const x = memtable.x + memtable.width * (0.08 + 0.84 * Math.random());
      this.motion.drop(x, 2, memtable.y + memtable.height - 6, i * 40);
      if (i % 3 === 0) this.motion.drop(log.x + log.width * 0.02 + i * 9, surfaceY - 18, log.y + 10, i * 40);
    }
  }

  /** Memtables become tables of level 0. */
  #flush(tables: number, { frozen, memtable }: Layout): void {
    const to = this.#rows.get(0)?.newest;
    if (to === undefined) return;
    const from = { ...(tables > 1 ? frozen : memtable), height: 26 };
    for (let i = 0; i < Math.min(4, tables); i += 1) this.motion.sink(from, to, 'water', i * 120);
  }

  /** Tables of some levels merge into a deeper one. */
  #sink(from: readonly number[], into: number, tables: number, { levels }: Layout): void {
    const to = levels.get(into);
    if (to === undefined) return;
    for (const level of from) this.#merge(levels.get(level), level, to, tables);
    this.motion.flash(to, 'merged');
  }

  #merge(from: Box | undefined, level: number, to: Box, tables: number): void {
    if (from === undefined) return;
    const count = Math.min(8, Math.max(1, tables));
    for (let i = 0; i < count; i += 1) {
      const strip =
        level === 0
          ? { ...from, y: from.y + from.height - (i + 1) * (from.height / 20), height: 4 }
          : { ...from, x: from.x + (i * from.width) / count, width: from.width / count - 2 };
      // Each becomes a separate layer. Together they fill the level, and hide nothing on their way.
      const landing =
        level === 0
          ? { ...to, y: to.y + ((i + 0.5) * to.height) / count - 2, height: 4 }
          : { ...to, x: strip.x, width: strip.width };
      this.motion.sink(strip, landing, `level-${level}`, i * 40);
    }
  }

  #title(name: PartName, box: Box, words: string): void {
    this.#put(name, words, box.x, box.y - 8, 'start');
    this.#put(`${name}Text`, '', box.x + box.width, box.y - 8, 'end');
  }

  #put(name: Name, words: string, x: number, y: number, anchor: string): void {
    if (words !== '') setText(this.#names[name], words);
    change(this.#names[name], { x, y, 'text-anchor': anchor });
  }
}

type PartName = 'memtable' | 'frozen' | 'cache' | 'log';
type Name = PartName | `${PartName}Text` | 'disk' | 'axis' | 'rain';
const NAMES: readonly Name[] = [
  ...(['memtable', 'frozen', 'cache', 'log'] as const).flatMap((name): Name[] => [name, `${name}Text`]),
  'disk',
  'axis',
  'rain',
];

/** Level 0, the deepest, and those between that contain tables or may do so. */
function levelsShown({ levels }: StoreStats): number[] {
  const shown = levels.flatMap(({ tables, targetBytes: target }, number) =>
    number === 0 || tables > 0 || (target > 0 && number > 0) ? [number] : [],
  );
  return shown.length === 0 ? [0] : shown;
}

/** The lower part of a box. */
function filled(box: Box, part: number): Box {
  const height = box.height * Math.min(1, Math.max(0, part));
  return { ...box, y: box.y + box.height - height, height };
}
