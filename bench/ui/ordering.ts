/**
 * The order of the lines of a table by one column.
 *
 * Invariant: equal lines keep their order, and what is absent (undefined, NaN) comes last in both directions.
 */

/** What a line is sorted by. */
export type SortValue = number | string | undefined;

/** As `aria-sort` says it. */
export type Direction = 'ascending' | 'descending';

/** The items in the order of a value. */
export function ordered<T>(items: readonly T[], valueIn: (item: T) => SortValue, direction: Direction): T[] {
  const sign = direction === 'ascending' ? 1 : -1;
  return [...items].sort((a, b) => {
    const [x, y] = [valueIn(a), valueIn(b)];
    const [noX, noY] = [isAbsent(x), isAbsent(y)];
    if (noX || noY) return Number(noX) - Number(noY);
    return sign * compare(x as number | string, y as number | string);
  });
}

/** The direction that a first click on a column gives: the largest figures first, names from A on. */
export function firstDirection(values: readonly SortValue[]): Direction {
  return values.some((value) => typeof value === 'string') ? 'ascending' : 'descending';
}

const FACTORS: Readonly<Record<string, number>> = { k: 1e3, M: 1e6, us: 1, ms: 1e3, s: 1e6 };

/** What a formatted figure sorts by: its size, where it begins with a number. */
export function sortable(cell: string): SortValue {
  if (cell === '' || cell === '-') return undefined;
  const found = /^(-?\d+(?:\.\d+)?) ?(k|M|us|ms|s)?(?![a-z])/.exec(cell);
  return found === null ? cell : Number(found[1]) * (FACTORS[found[2] ?? ''] ?? 1);
}

function isAbsent(value: SortValue): boolean {
  return value === undefined || Number.isNaN(value);
}

function compare(x: number | string, y: number | string): number {
  if (typeof x === 'number' && typeof y === 'number') return x < y ? -1 : x > y ? 1 : 0;
  return String(x).localeCompare(String(y), 'en', { numeric: true });
}
