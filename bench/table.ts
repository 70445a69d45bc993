/** A Markdown table whose columns line up, so that it can be read as text as well. */

/** The first column is a name and stands to the left, the others to the right unless `left` says so. */
export function table(
  columns: readonly string[],
  rows: readonly (readonly string[])[],
  left: readonly number[] = [0],
): string {
  const widths = columns.map((title, i) => Math.max(title.length, 3, ...rows.map((cells) => cells[i]?.length ?? 0)));
  const isLeft = (i: number): boolean => left.includes(i);
  const line = (cells: readonly string[]): string =>
    `| ${cells.map((cell, i) => (isLeft(i) ? cell.padEnd(widths[i] ?? 0) : cell.padStart(widths[i] ?? 0))).join(' | ')} |`;
  const rule = widths.map((width, i) => (isLeft(i) ? '-'.repeat(width) : `${'-'.repeat(width - 1)}:`)).join(' | ');
  return [line(columns), `| ${rule} |`, ...rows.map(line)].join('\n');
}
