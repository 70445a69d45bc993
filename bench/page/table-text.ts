/**
 * A table as text: Markdown, CSV (RFC 4180) and tab-separated, for pasting and for files.
 *
 * Invariant: reading the text back as its format gives the same cells; nothing a cell holds can end it early.
 */

/** A table of texts. */
export interface TextTable {
  readonly titles: readonly string[];
  readonly lines: readonly (readonly string[])[];
}

/** As a Markdown table; the first column is left-aligned, the others right-aligned. */
export function toMarkdown({ titles, lines }: TextTable): string {
  const escaped = [titles, ...lines].map((cells) => cells.map((cell) => oneLine(cell).replaceAll('|', '\\|')));
  const widths = titles.map((_, i) => Math.max(3, ...escaped.map((cells) => cells[i]?.length ?? 0)));
  const line = (cells: readonly string[]): string =>
    `| ${widths.map((width, i) => (i === 0 ? (cells[i] ?? '').padEnd(width) : (cells[i] ?? '').padStart(width))).join(' | ')} |`;
  const rule = `| ${widths.map((width, i) => (i === 0 ? '-'.repeat(width) : `${'-'.repeat(width - 1)}:`)).join(' | ')} |`;
  const [head = [], ...body] = escaped;
  return `${[line(head), rule, ...body.map(line)].join('\n')}\n`;
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
