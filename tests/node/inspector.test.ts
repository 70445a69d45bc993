// How the inspector reads files: rows with their places, keys that read back unchanged, and the work of an engine between two looks.

import { expect, test } from 'vitest';
import { rowsOf } from '../../js/src/cli/rows.ts';
import { collection } from '../../js/src/collections.ts';
import { open } from '../../js/src/inline.ts';
import { checkEntries, entriesOf, writeEntries } from '../../js/src/inspector/import/entries.ts';
import { readRows } from '../../js/src/inspector/import/rows.ts';
import { textOf } from '../../js/src/inspector/keys/exporter.ts';
import { keyText, parseKey } from '../../js/src/inspector/keys/key-text.ts';
import { valueText } from '../../js/src/inspector/keys/value-text.ts';
import { eventsBetween } from '../../js/src/inspector/live/engine-events.ts';
import type { Key, StoreStats } from '../../js/src/types.ts';
import { wasm } from './support/engine.ts';

test('rows of CSV have their lines, also behind a field of two lines', () => {
  const { rows, bad, columns } = readRows('a.csv', 'id,name\r\n1,"two\r\nlines"\r\n\r\n2,Rhine\r\n3\r\n4,"open');
  expect(columns).toEqual(['id', 'name']);
  expect(rows).toEqual([
    { place: 'line 2', value: { id: 1, name: 'two\r\nlines' } },
    { place: 'line 5', value: { id: 2, name: 'Rhine' } },
  ]);
  expect(bad.map(({ place }) => place)).toEqual(['line 6', 'line 7']);
  expect(bad[0]?.why).toContain('1 field, and the first line has 2');
});

test('only what reads back as it is written becomes a number or a boolean', () => {
  const { rows } = readRows('a.csv', 'a,b,c,d,e\n007,1.50,2.5,true,\n');
  expect(rows[0]?.value).toEqual({ a: '007', b: '1.50', c: 2.5, d: true, e: '' });
});

test('two columns of one name are refused', () => {
  expect(() => readRows('a.csv', 'id,id\n1,2\n')).toThrow('two columns "id"');
});

test('JSON that is malformed is refused with its line', () => {
  expect(() => readRows('a.json', '[\n  {"id": 1},\n  {"id" 2}\n]')).toThrow(/not JSON, so nothing was read.*line 3/s);
  expect(() => readRows('a.json', '42')).toThrow('neither a list nor an object');
  expect(() => readRows('a.json', ' ')).toThrow('It is empty');
});

test('a line that is no JSON is left out, and reported with its place', () => {
  const { format, rows, bad } = readRows('pasted', '{"id":1}\n{"id":\n\n{"id":3}\n');
  expect(format).toBe('JSON lines');
  expect(rows.map(({ value }) => value)).toEqual([{ id: 1 }, { id: 3 }]);
  expect(bad.map(({ place }) => place)).toEqual(['line 2']);
});

test('rows without a key of their own, and with the key of another, are bad', () => {
  const rows = readRows('a.json', '[{"id":"a"},{"name":"b"},{"id":"a"},{"id":{}},{"id":7}]');
  const { entries, bad } = entriesOf(rows, { column: 'id', prefix: 'things' });
  expect(entries).toEqual([
    [['things', 'a'], { id: 'a' }],
    [['things', 7], { id: 7 }],
  ]);
  expect(bad.map(({ place }) => place)).toEqual(['item 2', 'item 3', 'item 4']);
});

// The import kept 9007199254740992 for 9007199254740993, unless it was the key.
test('a row with a number that JSON would round is left out, and the others are read', () => {
  const items = [
    '{"id":9007199254740993}',
    '{"id":"9007199254740993"}',
    '{"id":1e3,"n":[",]}\\"",{"a":1e400}]}',
    '[]',
    '2.50',
  ];
  const read = (name: string, text: string) => {
    const { rows, bad } = readRows(name, text);
    return { values: rows.map(({ value }) => value), places: bad.map(({ place }) => place), why: bad[0]?.why };
  };
  const why = 'The number 9007199254740993 is none that a double has. Write it as a text, in quotes.';
  const values = [{ id: '9007199254740993' }, [], 2.5];
  expect(read('a.json', `[${items.join(' , ')}]`)).toEqual({ values, places: ['item 1', 'item 3'], why });
  expect(read('a.jsonl', items.join('\n'))).toEqual({ values, places: ['line 1', 'line 3'], why });
  const members = items.map((item, i) => `"k${i}, {" : ${item}`).join();
  expect(read('a.json', `\n{${members}}`)).toEqual({ values, places: ['item 1', 'item 3'], why });
  expect(() => parseKey('9007199254740993')).toThrow(why);
  expect(read('a.json', '[ ]')).toEqual({ values: [], places: [], why: undefined });
});

test('an object has its names as keys; a list of keys and values has those', () => {
  const choice = { column: '', prefix: '' };
  expect(entriesOf(readRows('a.json', '{"a":1,"b":[2]}'), choice).entries).toEqual([
    ['a', 1],
    ['b', [2]],
  ]);
  const exported = '[{"key":["n",{"bigint":"12"}],"value":1},{"key":{"bytes":"AP8="},"value":2}]';
  expect(entriesOf(readRows('a.json', exported), choice).entries).toEqual([
    [['n', 12n], 1],
    [Uint8Array.of(0, 255), 2],
  ]);
});

// The inspector took the column `(key)` of its own CSV for a field of the value, and `varve export`'s bytes for a value of another kind.
test('what the inspector and the command have exported is read with its keys', () => {
  const choice = { column: '', prefix: '' };
  const read = (name: string, text: string) => {
    const rows = readRows(name, text);
    return { isKeyed: rows.isKeyed, ...entriesOf(rows, choice) };
  };
  const csv = '(key),title,n\r\n"[""note"",42]",Silt,1\r\n"""a""",x,\r\nword,y,2\r\n"[1",z,3\r\n';
  expect(read('x.csv', csv)).toEqual({
    isKeyed: true,
    entries: [
      [['note', 42], { title: 'Silt', n: 1 }],
      ['a', { title: 'x', n: '' }],
      ['word', { title: 'y', n: 2 }],
    ],
    bad: [{ place: 'line 5', why: expect.stringContaining('This is not JSON.') }],
  });
  expect(read('x.csv', '(key),(value)\r\n1,5\r\n2,six\r\n').entries).toEqual([
    [1, 5],
    [2, 'six'],
  ]);
  expect(read('x.csv', '(key),value\r\n1,5\r\n').entries).toEqual([[1, { value: 5 }]]);
  const lines = [
    '{"key":"a","value":1}',
    '{"key":["b"],"bytes":"AP8="}',
    '{"key":"c","cbor":"wfs="}',
    '{"key":"d","cbor":"AQ=="}',
  ];
  const { isKeyed, entries, bad } = read('x.jsonl', lines.join('\n'));
  expect(isKeyed).toBe(true);
  expect(entries).toEqual([
    ['a', 1],
    [['b'], Uint8Array.of(0, 255)],
    ['d', 1],
  ]);
  expect(bad).toEqual([{ place: 'line 3', why: expect.stringContaining('The CBOR is malformed') }]);
});

// The inspector's JSON lines had the words "2 bytes" in place of bytes, and texts in place of dates.
test('JSON and JSON lines that the inspector saves keep all, and the inspector and the command read them', async () => {
  const saved: [Key, unknown][] = [
    ['bytes', Uint8Array.of(0, 255)],
    ['date', { at: new Date(1_700_000_000_000) }],
    ['map', new Map<unknown, unknown>([[1, new Set(['a'])]])],
    ['nested', [-0, [3n, new Date(1)]]],
    [['note', 42n], { title: 'Silt', tags: [] }],
  ];
  for (const format of ['json', 'jsonl'] as const) {
    const rows = readRows(`a.${format}`, await textOf(saved, format));
    expect(entriesOf(rows, { column: '', prefix: '' })).toStrictEqual({ entries: saved, bad: [] });
  }
  const lines = await textOf(saved, 'jsonl');
  const read: unknown[] = [];
  const bytes = (async function* () {
    yield new TextEncoder().encode(lines);
  })();
  for await (const row of rowsOf('jsonl', bytes, { column: undefined, prefix: undefined })) {
    read.push('why' in row ? row : [row.key, row.value]);
  }
  expect(read).toStrictEqual(saved);
  expect(lines.split('\n')[4]).toBe('{"key":["note",{"bigint":"42"}],"value":{"title":"Silt","tags":[]}}');
});

// Story: JSON lines with the documents and index entries of a collection were imported over it. The old index entries stayed beside the
// new ones, so a unique index had two documents for one value.
test('entries that belong to a collection are not imported', async () => {
  await using db = await open<Key, unknown>('rows', { wasm, storage: 'memory' });
  const other = [['notes', 'other'], 1] as const;
  const document = [['notes', 'doc', 2], { id: 2, slug: 'silt' }] as const;
  await checkEntries(db, [document]);
  const indexes = { slug: { of: 'slug', unique: true } } as const;
  const notes = collection<{ id: number; slug: string }>()(db, 'notes', { key: 'id', indexes });
  await notes.insert({ id: 1, slug: 'silt' });
  for (const entry of [document, [['notes', 'by', 'slug', 'mud'], 1] as const]) {
    for (const refused of [checkEntries(db, [other, entry]), writeEntries(db, [other, entry])]) {
      await expect(refused).rejects.toThrow(`${keyText(entry[0])} cannot be imported: It belongs to a collection`);
    }
  }
  expect(await db.count()).toBe(2);
  await writeEntries(db, [other]);
  expect(await db.get(['notes', 'other'])).toBe(1);
});

// Story: an object had a field `(key)`. Its CSV had that column twice, and no import took the file.
test('CSV is not saved with two columns that an import cannot tell apart', async () => {
  await expect(textOf([['a', { '(key)': 1 }]], 'csv')).rejects.toThrow('CSV would have two columns "(key)"');
});

// Story: one object had a field `constructor`. The rows without it had `function Object() { [native code] }` in that column.
test('a row without a field has an empty cell, also where all objects inherit that name', async () => {
  const rows: [Key, unknown][] = [
    ['race', { constructor: 'Lotus', toString: 1 }],
    ['walk', { name: 'silt' }],
  ];
  const csv = await textOf(rows, 'csv');
  expect(csv.split('\r\n')).toEqual(['(key),constructor,toString,name', '"""race""",Lotus,1,', '"""walk""",,,silt']);
});

test('every key reads back as it is shown', () => {
  const keys: Key[] = [
    'zurich',
    'a, "b",1',
    '42',
    '',
    -1.5,
    Number.NEGATIVE_INFINITY,
    -(2n ** 70n),
    true,
    new Date(1_700_000_000_000),
    Uint8Array.of(0, 171),
    ['name', 'a,1', [-2, ['x']], 3n],
    [],
  ];
  for (const key of keys) expect(parseKey(keyText(key))).toEqual(key);
  expect(parseKey('zurich')).toBe('zurich');
  expect(parseKey('2026-01-31')).toBe('2026-01-31');
  expect(() => parseKey('["name",')).toThrow('not JSON');
  expect(() => parseKey('{"map":"1"}')).toThrow('A key cannot be {"map"');
});

test('a value is edited only where JSON can express all of it', () => {
  for (const value of [null, 'a', 1.5, [true, { a: [] }]]) expect(valueText(value).isExact).toBe(true);
  const cycle: { self?: unknown } = {};
  for (const value of [1n, new Date(0), new Map(), new Uint8Array(1), { a: undefined }, -0, Number.NaN]) {
    expect(valueText(value).isExact).toBe(false);
  }
  cycle.self = cycle;
  expect(valueText(cycle)).toEqual({ text: '{\n  "self": "(itself)"\n}', isExact: false });
  expect(valueText(undefined)).toEqual({ text: 'null', isExact: false });
  expect(valueText(new Map([[1n, new Date(0)]])).text).toContain('1970-01-01');
});

// Story: a value had a graph of objects. The list of keys wrote every way through it, and the page stood still.
test('a value with one object in many places is shown in a short time', () => {
  let graph: unknown[] = ['silt'];
  for (let level = 0; level < 18; level++) graph = [graph, graph];
  expect(valueText(graph).text.length).toBeLessThan(1_000_000);
  const shared = { a: 1 };
  expect(valueText([shared, shared])).toEqual({ text: JSON.stringify([shared, shared], null, 2), isExact: false });
});

test('the work of an engine follows from two looks at it', () => {
  const level = (tables: number, bytes: number) => ({ tables, bytes, entries: 0, targetBytes: 0, score: 0 });
  const flushed = (count: number, writtenBytes: number) => ({ count, writtenBytes, lastAt: undefined });
  const look = (changed: Partial<StoreStats>): StoreStats =>
    ({
      ...{ flush: flushed(3, 300), log: { segments: 2 }, stalled: false },
      compaction: { count: 1, readBytes: 10, writtenBytes: 10, droppedEntries: 0, movedTables: 0, droppedTables: 0 },
      levels: [level(7, 700), level(0, 0), level(2, 900)],
      ...changed,
    }) as StoreStats;
  const before = look({});
  expect(eventsBetween(before, look({}))).toEqual([]);
  const after = look({
    flush: flushed(4, 420),
    log: { segments: 1 } as StoreStats['log'],
    compaction: { ...before.compaction, count: 2, readBytes: 1730, writtenBytes: 1610, droppedEntries: 12 },
    levels: [level(0, 0), level(0, 0), level(3, 1600)],
  });
  const compaction = { kind: 'compaction', jobs: 1, from: [0], into: 2, tables: 8, dropped: 12 };
  expect(eventsBetween(before, after)).toEqual([
    { kind: 'flush', tables: 1, bytes: 120 },
    { kind: 'cut', segments: 1 },
    { ...compaction, bytesRead: 1720, bytesWritten: 1600 },
  ]);
  // Another tab took over the store: its counts begin at 0, and the demo reports nothing that did not happen.
  const other = look({ flush: flushed(0, 0), compaction: { ...before.compaction, count: 0 } });
  expect(eventsBetween(after, other).map(({ kind }) => kind)).toEqual([]);
});
