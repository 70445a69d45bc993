import { expect, test } from 'vitest';
import { keyOf, Ledger, numberOf, valueText } from './ledger.ts';

const LAST = 99;

test('the first keys are there, at version 1, and nothing else', () => {
  const ledger = new Ledger(LAST + 1);
  expect([ledger.count(), ledger.version(LAST), ledger.version(LAST + 1)]).toEqual([LAST + 1, 1, 0]);
});

test('keys sort as their numbers do, and give them back', () => {
  const numbers = [0, 9, 10, 99, 100, 123_456];
  expect(numbers.map(keyOf)).toEqual(numbers.map(keyOf).sort());
  expect(numbers.map((number) => numberOf(keyOf(number)))).toEqual(numbers);
});

test('an acknowledged write is what must be there, and no older value is', () => {
  const ledger = new Ledger(10);
  const write = ledger.next(3);
  ledger.acknowledge([write], 17);
  expect(ledger.sequence(3)).toBe(17);
  expect(ledger.matches(keyOf(3), JSON.parse(valueText(write)))).toBe(true);
  expect(ledger.matches(keyOf(3), JSON.parse(valueText({ number: 3, version: 1 })))).toBe(false);
  expect(ledger.matches(keyOf(4), JSON.parse(valueText(write)))).toBe(false);
});

test('a deleted key must be absent, and is missing from the base', () => {
  const ledger = new Ledger(10);
  ledger.acknowledge([{ number: 7, version: 0 }]);
  expect([ledger.count(), ledger.missing()]).toEqual([9, [7]]);
  expect(ledger.matches(keyOf(7), JSON.parse(valueText({ number: 7, version: 1 })))).toBe(false);
});

test('keys behind the base count when they are written', () => {
  const ledger = new Ledger(10);
  ledger.acknowledge([ledger.next(14)]);
  expect([ledger.count(), ledger.end, ledger.version(12)]).toEqual([11, 15, 0]);
});
