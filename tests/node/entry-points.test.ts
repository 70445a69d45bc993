/** The entry points that open stores export the same values: one may have more, none may lack one. */

import { expect, test } from 'vitest';
import * as index from '../../js/src/index.ts';
import * as inline from '../../js/src/inline.ts';
import * as shards from '../../js/src/shards.ts';
import * as synchronous from '../../js/src/synchronous.ts';

test.each([
  ['varve', index],
  ['varve/inline', inline],
  ['varve/synchronous', synchronous],
])('%s opens, lists, deletes, checks and repairs stores, and has codecs and errors', (_, entry) => {
  expect(Object.keys(entry)).toEqual(
    expect.arrayContaining([
      ...['open', 'listStores', 'deleteStore', 'check', 'repair'],
      ...['bytes', 'json', 'structured', 'utf8', 'SlotError', 'VarveError'],
    ]),
  );
});

test.each([
  ['varve', index, ['SlotError', 'VarveError']],
  ['varve/inline', inline, ['SlotError', 'VarveError']],
  ['varve/synchronous', synchronous, ['SlotError', 'VarveError']],
  ['varve/shards', shards, ['VarveError']],
])('of the classes of %s only those of errors are values', (_, entry, errors) => {
  const names = Object.entries(entry).filter(([, value]) => String(value).startsWith('class'));
  expect(names.map(([name]) => name).sort()).toEqual(errors);
});

test('varve/inline has its own functions', () => {
  const own = [inline.open, inline.listStores, inline.deleteStore, inline.check, inline.repair];
  for (const shared of [index.open, index.listStores, index.deleteStore, index.check, index.repair])
    expect(own).not.toContain(shared);
});
