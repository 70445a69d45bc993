/**
 * A Markdown table whose columns line up, so that it can be read as text as well.
 *
 * Invariant: nothing that a cell holds can end it early.
 */

/** The first column is a name and stands to the left, the others to the right unless `left` says so. */
export function table(
  columns: readonly string[],
  rows: readonly (readonly string[])[],
  left: readonly number[] = [0],
): string {
  const [head = [], ...body] = [columns, ...rows].map((cells) => cells.map(safe));
  const widths = head.map((title, i) => Math.max(title.length, 3, ...body.map((cells) => cells[i]?.length ?? 0)));
  const isLeft = (i: number): boolean => left.includes(i);
  const line = (cells: readonly string[]): string =>
    `| ${widths.map((width, i) => (isLeft(i) ? (cells[i] ?? '').padEnd(width) : (cells[i] ?? '').padStart(width))).join(' | ')} |`;
  const rule = widths.map((width, i) => (isLeft(i) ? '-'.repeat(width) : `${'-'.repeat(width - 1)}:`)).join(' | ');
  return [line(head), `| ${rule} |`, ...body.map(line)].join('\n');
}

/** The same without the columns in which nothing stands; `words` are the titles of those that stand to the left. */
export function filledTable(
  columns: readonly string[],
  rows: readonly (readonly string[])[],
  words: ReadonlySet<string>,
): string {
  const shown = columns.map((_, i) => i).filter((i) => rows.some((cells) => cells[i] !== ''));
  const pick = (cells: readonly string[]): string[] => shown.map((i) => cells[i] ?? '');
  const titles = pick(columns);
  const left = titles.flatMap((title, i) => (words.has(title) ? [i] : []));
  return table(titles, rows.map(pick), left);
}

function safe(cell: string): string {
  return cell.replaceAll(/\s+/g, ' ').replaceAll('|', '\\|');
}
