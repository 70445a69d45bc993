/** The rows of the `scale` run as texts: one table for the page and for the command line. */

import { bytes, duration, rate } from '../../core/figures.ts';
import type { ScaleRow } from './phases.ts';

/** The titles of the columns. */
export const SCALE_COLUMNS = ['phase', 'operations', 'seconds', 'a second', 'more'] as const;

/** The cells of a row, in the order of the columns. */
export function scaleCells({ phase, ops, seconds, more }: ScaleRow): string[] {
  const notes = Object.entries(more).map(([name, figure]) => shown(name, figure));
  return [phase, String(ops), seconds.toFixed(2), ops > 1 ? rate(ops / seconds) : '-', notes.join(', ')];
}

/** How a figure beside the rate is shown. */
function shown(name: string, figure: number | string): string {
  const title = name.replace(/_(us|bytes)$/, '').replaceAll('_', ' ');
  if (typeof figure === 'string') return `${title} ${figure}`;
  if (name.endsWith('_us')) return `${title} ${duration(figure)}`;
  if (name.endsWith('bytes') || name.startsWith('memory')) return `${title} ${bytes(figure)}`;
  return `${title} ${figure >= 1000 ? rate(figure) : figure.toFixed(2)}`;
}
