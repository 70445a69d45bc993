import fc from 'fast-check';
import { expect, test } from 'vitest';
import { firstDirection, ordered } from './ordering.ts';
import { toCsv, toMarkdown, toTsv } from './table-text.ts';

/** Reads CSV as RFC 4180 says. */
function readCsv(text: string): string[][] {
  const lines: string[][] = [];
  let cells: string[] = [];
  for (const [, quoted, plain, end] of text.matchAll(/(?:"((?:[^"]|"")*)"|([^",\r\n]*))(,|\r\n)/g)) {
    cells.push(quoted === undefined ? (plain ?? '') : quoted.replaceAll('""', '"'));
    if (end === ',') continue;
    lines.push(cells);
    cells = [];
  }
  return lines;
}

test('CSV reads back as the same cells, whatever they hold', () => {
  const cell = fc.oneof(fc.string(), fc.constantFrom('a,b', '"', 'x\r\ny', '""', ','));
  const table = fc.array(fc.tuple(cell, cell, cell), { maxLength: 5 });
  fc.assert(
    fc.property(table, (lines) => {
      expect(readCsv(toCsv({ titles: ['a', 'b', 'c'], lines }))).toEqual([['a', 'b', 'c'], ...lines]);
    }),
  );
});

test('a pipe or a new line ends no cell of Markdown', () => {
  const text = toMarkdown({ titles: ['name', 'rate'], lines: [['a|b\nc', '1.5k']] });
  expect(text).toBe('| name   | rate |\n| ------ | ---: |\n| a\\|b c | 1.5k |\n');
  expect(toTsv({ titles: ['a'], lines: [['x\ty']] })).toBe('a\nx y\n');
});

test('lines are ordered by figures, equal ones as they were, absent ones last both ways', () => {
  const items = [
    { name: 'a', rate: 5 },
    { name: 'b', rate: undefined },
    { name: 'c', rate: 50 },
    { name: 'd', rate: 5 },
    { name: 'e', rate: Number.NaN },
  ];
  const names = (direction: 'ascending' | 'descending'): string =>
    ordered(items, ({ rate }) => rate, direction)
      .map(({ name }) => name)
      .join('');
  expect(names('ascending')).toBe('adcbe');
  expect(names('descending')).toBe('cadbe');
});

test('names are ordered as people count, and begin with A', () => {
  const names = ['range-500', 'range-100', 'range-1000'];
  expect(ordered(names, (name) => name, 'ascending')).toEqual(['range-100', 'range-500', 'range-1000']);
  expect(firstDirection(names)).toBe('ascending');
  expect(firstDirection([undefined, 3])).toBe('descending');
});
