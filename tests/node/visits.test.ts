// The judge of the life tests can fail.

import { expect, test } from 'vitest';
import { type Census, checkBounded, Guestbook, visitWrite } from '../support/visits.ts';

const SEED = 5;
const VISITS = 100;

/** The entries that this many visits leave when all their writes are acknowledged, and the judge that knows of them. */
function lived(): { guestbook: Guestbook; entries: Map<string, string> } {
  const guestbook = new Guestbook(SEED);
  const entries = new Map<string, string>();
  for (let visit = 0; visit < VISITS; visit++) {
    const { key, value } = visitWrite(SEED, visit);
    if (value === undefined) entries.delete(key);
    else entries.set(key, value);
    guestbook.ended(visit, true);
  }
  return { guestbook, entries };
}

test('acknowledged entries pass, in whole and in part', () => {
  const { guestbook, entries } = lived();
  guestbook.checkAll([...entries]);
  guestbook.check(guestbook.asked(VISITS).map((key) => [key, entries.get(key)]));
  expect(guestbook.size).toBe(entries.size);
});

test('an entry that is lost, changed, of an older visit or back after its deletion does not', () => {
  const { guestbook, entries } = lived();
  const [[key = '', value = ''] = []] = entries;
  const deleted = Array.from({ length: VISITS }, (_, visit) => visitWrite(SEED, visit)).find(
    (write) => write.value === undefined && !entries.has(write.key),
  );
  const judged = (change: (copy: Map<string, string>) => void) => () => {
    const copy = new Map(entries);
    change(copy);
    guestbook.checkAll([...copy]);
  };
  expect(judged((copy) => copy.delete(key))).toThrow(`${key} is gone`);
  expect(judged((copy) => copy.set(key, `${value}!`))).toThrow('acknowledged as');
  expect(judged((copy) => copy.set(deleted?.key ?? '', 'back'))).toThrow('acknowledged as undefined');
  expect(() => guestbook.check([[key, undefined]])).toThrow(`${key} is undefined`);
});

test.for([true, false])(
  'a write that was not acknowledged may be there or not (%s), but stays as it was seen',
  (isDone) => {
    const { guestbook, entries } = lived();
    const { key, value } = visitWrite(SEED, VISITS);
    const [seen, other] = isDone ? [value, entries.get(key)] : [entries.get(key), value];
    guestbook.ended(VISITS, false);
    guestbook.check([[key, seen]]);
    guestbook.check([[key, seen]]);
    expect(() => guestbook.check([[key, other]])).toThrow('acknowledged as');
  },
);

test('a write in doubt is asked for until its key was read, also after a visit that was refused', () => {
  const { guestbook } = lived();
  const { key, value } = visitWrite(SEED, VISITS);
  guestbook.ended(VISITS, false);
  for (const visit of [VISITS + 1, VISITS + 2, VISITS + 20]) expect(guestbook.asked(visit)).toContain(key);
  guestbook.check([[key, value]]);
  expect(guestbook.asked(VISITS + 20)).not.toContain(key);
});

test('counts that grow with the visits, or beyond their limit, are refused', () => {
  const census = (files: number): Census => ({ records: 1, segments: 1, tables: 1, files, bytes: 1, calls: 1 });
  const limits = { ...census(50), records: 1 };
  const counts = (files: (visit: number) => number): Census[] =>
    Array.from({ length: 700 }, (_, visit) => census(files(visit)));
  const judged = (files: (visit: number) => number) => () => checkBounded(counts(files), limits);
  judged((visit) => 20 + (visit % 20))();
  // Tables become more until they are merged, and by chance a merge comes late: no growth, though the averages
  // differ.
  judged((visit) => (visit % 50 < 10 ? visit % 10 : visit < 300 ? 2 : 8))();
  // A young store is merged at each visit, a larger one when many tables have piled up.
  judged((visit) => (visit < 330 ? 1 + (visit % 3) : visit % 20))();
  expect(judged((visit) => Math.floor(visit / 14))).toThrow('files grow, from 14 to 37 and more');
  expect(judged((visit) => (visit % 10) + Math.floor(visit / 20))).toThrow('files grow, from 14 to 29 and more');
  checkBounded(counts((visit) => visit).slice(0, 50), limits);
  expect(judged((visit) => (visit === 7 ? 51 : 8))).toThrow('51 files, more than 50');
});
