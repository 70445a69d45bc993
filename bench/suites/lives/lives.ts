/**
 * The lives: a queue, a log that rotates, counters, documents that are saved again and again, and many short sessions.
 *
 * Invariant: each follows from the numbers of its steps alone, so that every engine lives the same. Keys of one life have one
 * length, and no key is the beginning of another one.
 */

import { now } from '../../core/clock.ts';
import { at, makeDataset, sameBytes } from '../../core/generator.ts';
import { count } from '../../core/suite.ts';
import { type Course, type Life, type LifeCall, type LifeStore, type Pair, samePair } from './life.ts';

const JOBS = 2000;
const JOB_BYTES = 100;
const DAY = 20;
const DAYS = 10;
const LOG_SCAN = 50;
const COUNTERS = 10;
const DOCUMENTS = count(2000, 20_000);
const DOCUMENT_BYTES = 900;
const SAVES = 25;
/** As fast as it goes, merges come later than most programs would have it: how steady overwrites are is their pace. */
const SAVES_A_SECOND = count(20_000, 5000);
/** Coprime to both counts of documents: each is saved once before any is saved twice, in no order of keys. */
const STRIDE = 7919;
const NOTES = 300;
const NOTES_A_SESSION = 3;

const digits = (number: number, length: number): string => String(number).padStart(length, '0');

/** The values of a life, by number: those of the bench, each with a buffer of its own. */
function valuesOf(bytes: number): (number: number) => Uint8Array {
  const { pool } = makeDataset('sequential', 0, bytes);
  return (number) => at(pool, number % pool.length);
}

const writing = (bytes: number, run: LifeCall['run']): LifeCall => ({ bytes, writes: true, run });
const set = (key: string, value: Uint8Array): LifeCall =>
  writing(key.length + value.length, ({ session }) => session.set(key, value));
const get = (key: string, expected: Uint8Array): LifeCall => ({
  bytes: key.length + expected.length,
  writes: false,
  run: ({ session }) => session.get(key),
  check: (given) => given instanceof Uint8Array && sameBytes(given, expected),
});
const remove = (key: string): LifeCall => writing(key.length, ({ session }) => session.delete(key));
const removeRange = (gte: string, lt: string): LifeCall =>
  writing(gte.length + lt.length, ({ session }) => session.deleteRange?.(gte, lt));
const range = (gte: string, expected: readonly Pair[]): LifeCall => ({
  bytes: expected.reduce((bytes, [key, value]) => bytes + key.length + value.length, 0),
  writes: false,
  run: (store) => store.range(gte, expected.length),
  check: (given) => {
    const pairs = given as readonly Pair[];
    return pairs.length === expected.length && pairs.every((pair, i) => samePair(pair, at(expected, i)));
  },
});

function queue(): Course {
  const value = valuesOf(JOB_BYTES);
  const job = (number: number): Pair => [`jobs/${digits(number, 11)}`, value(number)];
  let first = 0;
  return {
    holds: () => Array.from({ length: JOBS }, (_, i) => job(first + i)),
    step: () => {
      const head = job(first);
      return [set(...job(JOBS + first++)), range('jobs/', [head]), remove(head[0])];
    },
  };
}

function rotate(): Course {
  const value = valuesOf(JOB_BYTES);
  const day = (number: number): string => `log/${digits(number, 8)}`;
  const entries = (number: number): Pair[] =>
    Array.from({ length: DAY }, (_, i) => [`${day(number)}/${digits(i, 2)}`, value(number * DAY + i)]);
  let today = DAYS;
  return {
    holds: () => Array.from({ length: DAYS }, (_, i) => entries(today - DAYS + i)).flat(),
    step: () => {
      const old = today - DAYS;
      return [...entries(today++).map((pair) => set(...pair)), removeRange(`${day(old)}/`, `${day(old + 1)}/`)];
    },
    scan: (held) => range('log/', held.slice(0, LOG_SCAN)),
  };
}

function counters(): Course {
  const counts = new Array<number>(COUNTERS).fill(0);
  const key = (counter: number): string => `counter/${counter}`;
  const bytesOf = (number: number): Uint8Array => {
    const value = new Uint8Array(8);
    new DataView(value.buffer).setFloat64(0, number);
    return value;
  };
  let steps = 0;
  return {
    holds: () => counts.map((number, counter) => [key(counter), bytesOf(number)]),
    step: () => {
      const counter = steps++ % COUNTERS;
      const before = at(counts, counter);
      counts[counter] = before + 1;
      return [get(key(counter), bytesOf(before)), set(key(counter), bytesOf(before + 1))];
    },
    scan: (held) => range('counter/', held),
  };
}

function overwrite(documents: number): Course {
  const value = valuesOf(DOCUMENT_BYTES);
  const key = (number: number): string => `documents/${digits(number, 8)}`;
  const versions = Uint32Array.from({ length: documents }, (_, number) => number);
  let saves = 0;
  return {
    holds: () => Array.from(versions, (version, number) => [key(number), value(version)]),
    step: () => {
      const number = (saves++ * STRIDE) % documents;
      versions[number] = documents + saves;
      return [set(key(number), value(documents + saves))];
    },
  };
}

function sessions(): Course {
  const value = valuesOf(JOB_BYTES);
  const key = (number: number): string => `notes/${digits(number % NOTES, 8)}`;
  let opened: number[] = [];
  const open: LifeCall = {
    bytes: 0,
    writes: false,
    run: async (store: LifeStore) => {
      const since = now();
      await store.open();
      opened.push(now() - since);
    },
  };
  const close: LifeCall = { bytes: 0, writes: false, run: (store) => store.close() };
  // The first note is there before the first session.
  let written = 1;
  return {
    holds: () =>
      Array.from({ length: Math.min(written, NOTES) }, (_, note): Pair => {
        const newest = note + NOTES * Math.floor((written - 1 - note) / NOTES);
        return [key(newest), value(newest)];
      }),
    step: () => {
      const last = written - 1;
      const writes = Array.from({ length: NOTES_A_SESSION }, () => {
        const number = written++;
        return set(key(number), value(number));
      });
      return [open, get(key(last), value(last)), ...writes, close];
    },
    openings: () => {
      const found = opened;
      opened = [];
      return found;
    },
  };
}

export const LIVES: readonly Life[] = [
  {
    name: 'queue',
    title: `a queue of ${JOBS} jobs: one more at the tail, the first one read and deleted`,
    steps: count(20_000, 1_000_000),
    valueBytes: JOB_BYTES,
    needs: ['set', 'delete', 'batch', 'range'],
    begin: queue,
  },
  {
    name: 'rotate',
    title: `a log of ${DAYS} days: ${DAY} entries a day, and the oldest day deleted`,
    phase: 'day',
    steps: count(400, 10_000),
    valueBytes: JOB_BYTES,
    needs: ['set', 'batch', 'range', 'deleteRange'],
    begin: rotate,
  },
  {
    name: 'counters',
    title: `${COUNTERS} counters, raised one after another: a get and a set`,
    phase: 'increment',
    steps: count(20_000, 400_000),
    valueBytes: 8,
    needs: ['set', 'get', 'mixed', 'batch', 'range'],
    begin: counters,
  },
  {
    name: 'overwrite-steady',
    title: `documents of ${DOCUMENT_BYTES} bytes, all saved again ${SAVES} times, ${SAVES_A_SECOND.full} a second at most`,
    steps: count(DOCUMENTS.quick * SAVES, DOCUMENTS.full * SAVES),
    valueBytes: DOCUMENT_BYTES,
    needs: ['set', 'get', 'mixed', 'batch'],
    pace: SAVES_A_SECOND,
    idles: true,
    begin: (mode) => overwrite(DOCUMENTS[mode]),
  },
  {
    name: 'sessions',
    title: `sessions: open, one get, ${NOTES_A_SESSION} sets, close`,
    phase: 'session',
    steps: count(40, 10_000),
    valueBytes: JOB_BYTES,
    needs: ['set', 'get', 'mixed', 'batch', 'open'],
    begin: sessions,
  },
];
