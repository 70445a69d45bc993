/**
 * How an engine looks in every chart: colour, dash and shape.
 *
 * Invariant: an engine looks the same wherever it is drawn, and no two are told apart by colour alone. Varve is amber,
 * peers have the colours of Okabe and Ito (https://jfly.uni-koeln.de/color/), which stay apart for the colour-blind,
 * floors are grey.
 */

import type { Role } from '../core/engine.ts';
import { ENGINES } from '../peers/list.ts';
import { isDark } from './theme.ts';

/** How one engine is drawn. */
export interface Look {
  readonly colour: string;
  /** Lengths of strokes and gaps; empty is a whole line. */
  readonly dash: number[];
  /** A point style of Chart.js. */
  readonly shape: 'circle' | 'rect' | 'triangle' | 'rectRot' | 'star' | 'cross' | 'crossRot';
  /** Width of a line in pixels. */
  readonly width: number;
}

/** Each as [light, dark]: against its ground each has a contrast of at least 3. */
const AMBER = ['#a35f00', '#f2b155'] as const;
const GREY = ['#6a7176', '#9aa4a9'] as const;
const PEERS = [
  ['#0072b2', '#56b4e9'],
  ['#00795a', '#2fc79a'],
  ['#c04a00', '#ff8d57'],
  ['#a2427a', '#e69ac4'],
  ['#4b4fb8', '#a3a6ff'],
  ['#7a6a00', '#e3d34a'],
] as const;
const SHAPES = ['circle', 'rect', 'triangle', 'rectRot', 'star', 'cross', 'crossRot'] as const;
const DASHES: readonly number[][] = [[], [8, 3], [3, 3], [10, 3, 2, 3], [2, 5]];

/** The look of an engine in the theme of now. */
export function lookOf(engine: string): Look {
  const role = ENGINES.find(({ name }) => name === engine)?.role ?? 'peer';
  const index = Math.max(
    0,
    ENGINES.filter((one) => one.role === role).findIndex(({ name }) => name === engine),
  );
  const shades: Readonly<Record<Role, readonly [string, string]>> = {
    varve: AMBER,
    peer: PEERS[index % PEERS.length] as readonly [string, string],
    floor: GREY,
  };
  const shape = SHAPES[index % SHAPES.length] as Look['shape'];
  const turn = role === 'peer' ? Math.floor(index / PEERS.length) : index;
  const dash = [...(DASHES[turn % DASHES.length] as number[])];
  return { colour: shades[role][isDark() ? 1 : 0], dash, shape, width: role === 'varve' ? 3 : 1.75 };
}
