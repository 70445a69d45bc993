/** Documents of a collection over HTTP, found by an index. */

import { afterEach, beforeEach, expect, test } from 'vitest';
import { type Collection, collection } from '../../js/src/collections.ts';
import { createHandler } from '../../js/src/http.ts';
import { problem, query, type Served, serve, served } from './support/http.ts';

interface Note {
  id: number;
  folder: string;
  edited: Date;
  tags: string[];
}

let http: Served;
let notes: Collection<Note, number, { edited: Date; tags: string; place: readonly [string, Date]; shelf: string }>;

/** Of each day of January, in two folders. */
const noteOf = (id: number): Note => ({
  id,
  folder: id % 2 === 0 ? 'work' : 'home',
  edited: new Date(Date.UTC(2026, 0, 1 + (id >> 1))),
  tags: id % 3 === 0 ? ['lake', 'mud'] : ['sea'],
});
const day = (of: number): string => query({ date: new Date(Date.UTC(2026, 0, of)).toISOString() });

beforeEach(async () => {
  const { db } = await serve();
  notes = collection<Note>()(db, 'notes', {
    key: 'id',
    indexes: {
      edited: 'edited',
      tags: { of: 'tags', multi: true },
      place: ['folder', 'edited'],
      shelf: (note) => note.folder.toUpperCase(),
    },
  });
  await notes.insertMany(Array.from({ length: 40 }, (_, id) => noteOf(id)));
  http = served(db, createHandler(db, { base: '/api', collections: [notes], limits: { results: 10 } }));
});
afterEach(() => http.db.close());

interface Page {
  readonly documents: readonly { readonly cbor?: string; readonly value?: { readonly id: number } }[];
  readonly more: boolean;
}

/** The keys of a page; the documents have dates, so they come as CBOR. */
async function page(path: string): Promise<[ids: number[], more: boolean]> {
  const response = await http.send('GET', `/api/find/notes${path}`);
  expect(response.status).toBe(200);
  const { documents, more } = (await response.json()) as Page;
  return [documents.map((document) => idOf(document)), more];
}

/** The property `id` in the CBOR of a note: an integer below 24, or one of a byte. */
function idOf({ cbor = '' }: { readonly cbor?: string }): number {
  const bytes = Buffer.from(cbor, 'base64');
  const at = bytes.indexOf('id') + 2;
  return bytes[at] === 0x18 ? bytes.readUInt8(at + 1) : bytes.readUInt8(at);
}

test('documents come by an index, within bounds, from either end', async () => {
  expect(await page(`?by=edited&gte=${day(3)}&lt=${day(5)}`)).toEqual([[4, 5, 6, 7], false]);
  expect(await page(`?by=edited&eq=${day(3)}&reverse=true`)).toEqual([[5, 4], false]);
  expect(
    await page(`?by=place&prefix=${query(['work'])}&gt=${query(['work', { date: '2026-01-18T00:00:00.000Z' }])}`),
  ).toEqual([[36, 38], false]);
  expect(await page('?by=tags&eq="lake"&limit=3')).toEqual([[0, 3, 6], true]);
  expect(await page('?gte=38')).toEqual([[38, 39], false]);
});

test('pages follow one another, also among equal values, and end', async () => {
  const seen: number[] = [];
  for (let more = true, after = ''; more; ) {
    const [ids, isMore] = await page(`?by=edited&limit=7${after}`);
    seen.push(...ids);
    const { id, edited } = noteOf(ids.at(-1) as number);
    after = `&after=${query({ id, edited: { date: edited.toISOString() } })}`;
    more = isMore;
  }
  expect(seen).toEqual(Array.from({ length: 40 }, (_, id) => id));
});

// Story: the value of an index was a text of 5000 bytes. The page behind a document with it got 413.
test('pages follow one another behind a value that is longer than a key of a request', async () => {
  const shelves = [...'AB'].map((letter) => letter.repeat(5000));
  await notes.clear();
  await notes.insertMany(shelves.map((folder, id) => ({ ...noteOf(id), folder })));
  const after = query({ id: 0, folder: shelves[0] });
  expect(await page(`?by=shelf&after=${after}`)).toEqual([[1], false]);
  const counts = await http.send('GET', `/api/count-by/notes?by=shelf&gt=${query(shelves[0])}`);
  expect(await counts.json()).toEqual({ counts: [{ value: shelves[1], count: 1 }], more: false });
});

test('a page has at most as many documents as the limit of the handler', async () => {
  expect(await page('')).toEqual([[0, 1, 2, 3, 4, 5, 6, 7, 8, 9], true]);
});

test('values are counted, within bounds, page by page', async () => {
  const counts = async (path: string) => (await http.send('GET', `/api/count-by/notes${path}`)).json();
  const [lake, mud, sea] = [14, 14, 26].map((count, i) => ({ value: ['lake', 'mud', 'sea'][i], count }));
  expect(await counts('?by=tags')).toEqual({ counts: [lake, mud, sea], more: false });
  expect(await counts('?by=tags&limit=2')).toEqual({ counts: [lake, mud], more: true });
  expect(await counts('?by=tags&limit=2&gt="mud"')).toEqual({ counts: [sea], more: false });
  const last = { value: { date: '2026-01-20T00:00:00.000Z' }, count: 2 };
  expect(await counts('?by=edited&reverse=true&limit=1')).toEqual({ counts: [last], more: true });
  expect((await counts('?by=edited')).counts).toHaveLength(10);
});

test('a stream has every document, one a line', async () => {
  const headers = { accept: 'application/x-ndjson' };
  const response = await http.send('GET', '/api/find/notes?by=edited&reverse=true', { headers });
  expect(response.headers.get('content-type')).toBe('application/x-ndjson');
  const lines = (await response.text()).trimEnd().split('\n');
  expect(lines.map((line) => idOf(JSON.parse(line)))).toEqual(
    Array.from({ length: 20 }, (_, i) => [39 - 2 * i, 38 - 2 * i]).flat(),
  );
});

test.each([
  ['/api/find/other', 404],
  ['/api/find', 404],
  ['/api/find/notes/1', 404],
  ['/api/find/notes?by=absent', 400],
  ['/api/find/notes?by=edited&equal=1', 400],
  ['/api/find/notes?eq=1&gt=2', 400],
  ['/api/find/notes?after=1', 400],
  ['/api/find/notes?after={', 400],
  ['/api/find/notes?by=edited&after={"id":1}', 400],
  ['/api/find/notes?by=shelf&after={"id":1}', 400],
  ['/api/count-by/other?by=tags', 404],
  ['/api/count-by/notes', 400],
  ['/api/count-by/notes?by=absent', 400],
  ['/api/count-by/notes?by=tags&after={"id":1}', 400],
])('GET %s is %i', async (path, status) => {
  expect(await problem(await http.send('GET', path))).toMatchObject({ status });
});

test('there is no path for collections that the handler was not given', async () => {
  const { send, put } = served(http.db, createHandler(http.db));
  expect((await send('GET', '/find/notes')).status).toBe(404);
  expect((await put('/find/notes', 1)).status).toBe(404);
  expect((await http.put('/api/find/notes', 1)).status).toBe(405);
});
