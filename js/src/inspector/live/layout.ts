/**
 * Where the parts of the picture are, for a width: memory above, the disk below, the levels under each other.
 * Invariant: a function of the width and of which levels are shown; all of it in pixels of the page, so that text is as
 * large in a narrow picture as in a wide one.
 */

/** A part of the picture, in pixels. */
export interface Box {
  readonly x: number;
  readonly y: number;
  readonly width: number;
  readonly height: number;
}

/** All parts of the picture. */
export interface Layout {
  readonly width: number;
  readonly height: number;
  readonly isNarrow: boolean;
  readonly memtable: Box;
  /** Where frozen memtables wait. */
  readonly frozen: Box;
  readonly cache: Box;
  /** Height of the line between memory and disk. */
  readonly surfaceY: number;
  readonly log: Box;
  /** One for each level that is shown, by its number. */
  readonly levels: ReadonlyMap<number, Box>;
  /** The line under everything. */
  readonly axisY: number;
}

/** Room above a part for its name and its figures. */
export const LABEL_HEIGHT = 24;
const GAP = 14;
const NARROW_WIDTH = 560;
const MEMORY_HEIGHT = 168;
const LOG_HEIGHT = 28;
/** Of level 0 and of the others. */
const LEVELS_NARROW = { first: 100, other: 46 };
const LEVELS_WIDE = { first: 140, other: 64 };
/** Above the first part: room for the falling drops. */
const RAIN_HEIGHT = 30;

/** Lays the picture out. `levels` are the numbers of the levels shown, rising. */
export function layoutOf(width: number, levels: readonly number[]): Layout {
  const isNarrow = width < NARROW_WIDTH;
  const memory = isNarrow ? narrowMemory(width) : wideMemory(width);
  let y = memory.bottom + GAP + 12;
  const surfaceY = y;
  y += 6 + LABEL_HEIGHT;
  const log = { x: 0, y, width, height: LOG_HEIGHT };
  y += LOG_HEIGHT + GAP;
  const heights = isNarrow ? LEVELS_NARROW : LEVELS_WIDE;
  const boxes = new Map<number, Box>();
  for (const level of levels) {
    y += LABEL_HEIGHT;
    const height = level === 0 ? heights.first : heights.other;
    boxes.set(level, { x: 0, y, width, height });
    y += height + GAP;
  }
  const { memtable, frozen, cache } = memory;
  return { width, height: y + 26, isNarrow, memtable, frozen, cache, surfaceY, log, levels: boxes, axisY: y + 4 };
}

interface Memory {
  readonly memtable: Box;
  readonly frozen: Box;
  readonly cache: Box;
  readonly bottom: number;
}

function wideMemory(width: number): Memory {
  const y = RAIN_HEIGHT + LABEL_HEIGHT;
  const gap = 24;
  const third = (width - 2 * gap) / 10;
  return {
    memtable: { x: 0, y, width: 4.4 * third, height: MEMORY_HEIGHT },
    frozen: { x: 4.4 * third + gap, y, width: 2.4 * third, height: MEMORY_HEIGHT },
    cache: { x: 6.8 * third + 2 * gap, y, width: 3.2 * third, height: MEMORY_HEIGHT },
    bottom: y + MEMORY_HEIGHT,
  };
}

function narrowMemory(width: number): Memory {
  const y = RAIN_HEIGHT + LABEL_HEIGHT;
  const [upper, lower] = [104, 60];
  const below = y + upper + GAP + LABEL_HEIGHT;
  const half = (width - 16) / 2;
  return {
    memtable: { x: 0, y, width, height: upper },
    frozen: { x: 0, y: below, width: half, height: lower },
    cache: { x: half + 16, y: below, width: half, height: lower },
    bottom: below + lower,
  };
}
