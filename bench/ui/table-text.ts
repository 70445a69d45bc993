/**
 * A table as text: Markdown, CSV (RFC 4180) and tab-separated, for pasting and for files.
 *
 * Invariant: reading the text back as its format gives the same cells; nothing a cell holds can end it early.
 */

import { table } from '../core/table.ts';

/** A table of texts. */
export interface TextTable {
  readonly titles: readonly string[];
  readonly lines: readonly (readonly string[])[];
}

/** As a Markdown table; the first column is left-aligned, the others right-aligned. */
export function toMarkdown({ titles, lines }: TextTable): string {
  return `${table(titles, lines)}\n`;
}

/** As CSV, with CRLF ends of lines. */
export function toCsv({ titles, lines }: TextTable): string {
  const quoted = (cell: string): string => (/[",\r\n]/.test(cell) ? `"${cell.replaceAll('"', '""')}"` : cell);
  return [titles, ...lines].map((cells) => `${cells.map(quoted).join(',')}\r\n`).join('');
}

/** As spreadsheets paste it: tabs between cells, no quotes. */
export function toTsv({ titles, lines }: TextTable): string {
  return [titles, ...lines].map((cells) => `${cells.map(oneLine).join('\t')}\n`).join('');
}

function oneLine(cell: string): string {
  return cell.replaceAll(/\s+/g, ' ');
}
