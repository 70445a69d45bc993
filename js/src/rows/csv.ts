/**
 * The form of CSV files. The first line names the columns. An export has the column `(key)` and a column for each field of values that
 * are objects; other values are in a column `(value)`. CSV has no types: numbers, true and false become such again only where they are
 * written as JavaScript writes them, so that 007 stays a text.
 */

import { Unreadable } from './typed.ts';

/** The column of keys in an export. */
export const KEY_COLUMN = '(key)';
/** The column of values that are not objects. */
export const VALUE_COLUMN = '(value)';

/** The names of the columns, which must differ. */
export function headerOf(fields: readonly string[]): string[] {
  return differing(fields, (name) => `The first line has two columns "${name}". Rename one of them.`);
}

/** The columns of an export, which an import can tell apart. */
export function exportColumns(fields: Iterable<string>): string[] {
  const columns = [KEY_COLUMN, ...fields];
  differing(columns, (name) => `CSV would have two columns "${name}". Export JSON lines, which have all fields.`);
  return columns;
}

/** The names of columns as they are read. */
function differing(fields: readonly string[], problem: (name: string) => string): string[] {
  const names = fields.map((name, i) => name.trim() || `column ${i + 1}`);
  const seen = new Set<string>();
  const twice = names.find((name) => seen.size === seen.add(name).size);
  if (twice !== undefined) throw new Unreadable(problem(twice));
  return names;
}

/** The value of a cell. */
export function cellValue(text: string): string | number | boolean {
  if (text === 'true' || text === 'false') return text === 'true';
  return text !== '' && String(Number(text)) === text && Number.isFinite(Number(text)) ? Number(text) : text;
}
