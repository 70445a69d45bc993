import { expect, test } from 'vitest';
import { ProgressLine } from './progress.ts';

/** A line that writes into `printed`, at a time that the test tells. */
function lineTo(isTTY: boolean) {
  const printed: string[] = [];
  const clock = { now: 0 };
  const write = (text: string): boolean => printed.push(text) > 0;
  const line = new ProgressLine({ isTTY, write: write as NodeJS.WriteStream['write'] }, () => clock.now);
  return { line, printed, clock };
}

test('a terminal sees every step, each in the place of the one before', () => {
  const { line, printed } = lineTo(true);
  line.tell('1 of 2');
  line.tell('2 of 2');
  expect(printed).toEqual(['\r\u001b[K1 of 2\r', '\r\u001b[K2 of 2\r']);
});

test('elsewhere a line comes only when nothing was printed for half a minute', () => {
  const { line, printed, clock } = lineTo(false);
  for (clock.now = 0; clock.now <= 65_000; clock.now += 5000) line.tell(`${clock.now / 1000} s`);
  expect(printed).toEqual(['  ... 30 s\n', '  ... 60 s\n']);
  line.rest();
  clock.now += 20_000;
  line.tell('too soon');
  expect(printed).toHaveLength(2);
});
