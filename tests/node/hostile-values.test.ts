/**
 * Hostile keys and values through every way into a store. Each is refused, with its code and with nothing changed, or is read back as its
 * plain counterpart. After each of them a scan reads everything and `check()` finds no problem.
 */

import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { decodeKey } from '../../js/src/codec/key-reader.ts';
import { encodeKey } from '../../js/src/codec/keys.ts';
import { structured } from '../../js/src/codec/values.ts';
import { VarveError } from '../../js/src/errors.ts';
import type { Key } from '../../js/src/types.ts';
import { type Hostile, KEYS, VALUES } from './support/hostile.ts';
import {
  asynchronous,
  collected,
  contents,
  problems,
  type Subject,
  synchronous,
  type Way,
} from './support/hostile-subjects.ts';

/** The result or the error of a call. */
type Outcome = { readonly value: unknown } | { readonly error: unknown };

async function outcome(call: () => unknown): Promise<Outcome> {
  try {
    return { value: await call() };
  } catch (error) {
    return { error };
  }
}

function expectRefused(given: Outcome, code: string): void {
  expect(given).toHaveProperty('error');
  const { error } = given as { error: unknown };
  expect(error).toBeInstanceOf(VarveError);
  expect((error as VarveError).code).toBe(code);
}

const NEIGHBOURS: readonly (readonly [Key, unknown])[] = [
  ['a', 'the first'],
  ['kk', { of: ['the', 'middle'] }],
  [['k', 'z'], Uint8Array.of(1, 2, 3)],
  [[['z']], new Map([['the', 'last']])],
];

describe.each<[string, () => Promise<Subject>]>([
  ['the asynchronous store', asynchronous],
  ['the asynchronous store without a cache', () => asynchronous({ cache: false })],
  ['the synchronous store', synchronous],
  ['a collection', collected],
])('%s', (_, open) => {
  let subject: Subject;
  const each = async (run: (way: Way) => Promise<void>): Promise<void> => {
    const before = await contents(subject.db);
    for (const [name, way] of Object.entries(subject.ways)) {
      await run(way).catch((error) => {
        throw new Error(`By ${name}: ${error.message}`, { cause: error });
      });
    }
    expect(await contents(subject.db)).toStrictEqual(before);
  };

  beforeAll(async () => {
    subject = await open();
    for (const [key, value] of NEIGHBOURS) await subject.db.set(key, value);
    // From now on, the keys that a way into the store keeps for itself are there.
    for (const way of Object.values(subject.ways)) {
      await way.set('warm', 1);
      await way.delete(() => 'warm');
    }
  });

  afterAll(async () => {
    expect(await problems(subject.db)).toStrictEqual([]);
    await subject.db.close();
  });

  test.each(VALUES)('the value: $name', async ({ make, becomes }: Hostile) => {
    await each(async (way) => {
      const given = await outcome(() => way.set('k', make()));
      if (becomes === undefined) {
        expectRefused(given, 'VARVE_INVALID_VALUE');
        return;
      }
      expect(given).not.toHaveProperty('error');
      expect(await way.get(() => 'k')).toStrictEqual(becomes.plain);
      await way.delete(() => 'k');
    });
  });

  test.each(KEYS)('the key: $name', async ({ make, becomes }: Hostile) => {
    const key = make as () => Key;
    await each(async (way) => {
      const given = await outcome(() => way.set(key(), 'v'));
      if (subject.isOfDocuments) await expectTakenAsValue(way, given);
      else if (becomes === undefined) expectRefused(given, 'VARVE_INVALID_KEY');
      else expect(given).not.toHaveProperty('error');
      if (becomes === undefined) {
        expectRefused(await outcome(() => way.get(key)), 'VARVE_INVALID_KEY');
        expectRefused(await outcome(() => way.delete(key)), 'VARVE_INVALID_KEY');
        return;
      }
      const plain = becomes.plain as Key;
      // A key that only just fits is too long for an index.
      if (subject.isOfDocuments && 'error' in (await outcome(() => way.set(plain, 'v')))) return;
      expect(await way.get(() => plain)).toBe('v');
      expect(await way.get(key)).toBe('v');
      await way.delete(key);
      expect(await subject.db.has(plain)).toBe(false);
    });
  });
});

/** In a document a key is a value. It is refused as one of the two, or it is the key that was passed. */
async function expectTakenAsValue(way: Way, given: Outcome): Promise<void> {
  if ('error' in given) {
    const { error } = given;
    expect(error).toBeInstanceOf(VarveError);
    expect(['VARVE_INVALID_KEY', 'VARVE_INVALID_VALUE']).toContain((error as VarveError).code);
    return;
  }
  const key = given.value as Key;
  expect(await way.get(() => key)).toBe('v');
  await way.delete(() => key);
  expect(await way.get(() => key)).toBeUndefined();
}

describe('the codecs alone', () => {
  test.each(VALUES)('the value: $name', async ({ make, becomes }) => {
    const given = await outcome(() => structured.decode(structured.encode(make())));
    if (becomes === undefined) expectRefused(given, 'VARVE_INVALID_VALUE');
    else expect(given).toStrictEqual({ value: becomes.plain });
  });

  test.each(KEYS)('the key: $name', async ({ make, becomes }) => {
    const given = await outcome(() => decodeKey(encodeKey(make() as Key)));
    if (becomes === undefined) expectRefused(given, 'VARVE_INVALID_KEY');
    else expect(given).toStrictEqual({ value: becomes.plain });
  });
});
