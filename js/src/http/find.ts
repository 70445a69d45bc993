/**
 * Documents of a collection by an index, and their counts: `/find/<collection>` and `/count-by/<collection>`.
 *
 *   GET /find/<collection>  ?by=<index> &eq gt gte lt lte prefix (JSON keys) &reverse &limit &after (a JSON object of keys)
 *                           Accept: application/json: a page { documents: [{ value | cbor }], more }
 *                           Accept: application/x-ndjson: a stream of the same documents, one a line
 *   GET /count-by/<collection>  the same parameters but `after`; with `by`. A page { counts: [{ value, count }], more }, or a stream
 *
 * Without `by` the documents come by their keys. A page that has `more` is followed by the one whose `after` is its last document. The
 * document's key and its value in the index are enough.
 *
 * Invariant: the collection decides everything about documents and indexes; this only reads URLs and writes bodies. A page, and a
 * stream, has one read point.
 */

import { KEY_BYTES_MAX } from '../codec/plain-key.ts';
import type { Key } from '../types.ts';
import type { Exchange } from './exchange.ts';
import { jsonInQuery, keyFromJson, keyToJson } from './json-key.ts';
import type { Line } from './line-stream.ts';
import { listResponse } from './listing.ts';
import { valueToJson } from './media.ts';
import { problemOf } from './problem.ts';
import { decoded, type Query } from './query.ts';
import { malformed, Refusal } from './refusal.ts';
import type { HttpCollection } from './types.ts';

type Collections = ReadonlyMap<string, HttpCollection>;

/** Makes the endpoint that finds documents of these collections. */
export function findIn(collections: Collections) {
  return async <K, V>(exchange: Exchange<K, V>, segment: string | undefined): Promise<Response> => {
    const { query } = exchange;
    const { find, by, where, limit } = questionOf(collections, exchange, segment);
    const after = documentOf(query);
    query.end();
    async function* lines(most: number | undefined): AsyncGenerator<Line, void, undefined> {
      const options = { ...where, after, limit: most };
      const documents = found(find, by, options);
      for await (const document of documents) yield { text: JSON.stringify(await valueToJson(document)) };
    }
    return listResponse(exchange, 'documents', limit, lines, moreOf);
  };
}

/** Begins to find. Functions of the collection read only `after` then: what they throw is a fault of the request. */
function found(find: Read, by: string | undefined, options: object): AsyncIterable<unknown> {
  try {
    return by === undefined ? find(options) : find(by, options);
  } catch (error) {
    if (problemOf(error).status < 500) throw error;
    throw malformed('after lacks something that the key of a document or its value in the index is made of.');
  }
}

/** Makes the endpoint that counts documents of these collections by the values of an index. */
export function countIn(collections: Collections) {
  return async <K, V>(exchange: Exchange<K, V>, segment: string | undefined): Promise<Response> => {
    const { countBy, by, where, limit } = questionOf(collections, exchange, segment);
    exchange.query.end();
    if (by === undefined) throw malformed('by is the name of an index.');
    async function* lines(most: number | undefined): AsyncGenerator<Line, void, undefined> {
      const counts = countBy(by, { ...where, limit: most }) as AsyncIterable<[Key, number]>;
      for await (const [value, count] of counts) yield { text: JSON.stringify({ value: keyToJson(value), count }) };
    }
    return listResponse(exchange, 'counts', limit, lines, moreOf);
  };
}

/** The end of a page, behind its results. */
const moreOf = (last: Line | undefined) => ({ member: `"more":${last !== undefined}` });

/** The parameters that both endpoints take, and the reads of the collection. */
function questionOf<K, V>(
  collections: Collections,
  { query, wait }: Exchange<K, V>,
  segment: string | undefined,
): { find: Read; countBy: Read; by: string | undefined; where: object; limit: number | undefined } {
  const found = segment === undefined ? undefined : collections.get(decoded(segment, true));
  if (found === undefined)
    throw new Refusal(404, 'There is no collection with this name here. See the option collections.');
  const by = query.text('by');
  const limit = query.number('limit', true);
  const where = { eq: query.key('eq'), ...query.range(), reverse: query.flag('reverse'), ...wait };
  return { find: found.find.bind(found) as Read, countBy: found.countBy.bind(found) as Read, by, where, limit };
}

/** A read of a collection, without its types. */
type Read = (...of: unknown[]) => AsyncIterable<unknown>;

/** The part of a document that `after` gives: each member is a key as JSON, as long as it is in the store. */
function documentOf(query: Query): Record<string, Key> | undefined {
  const text = query.text('after');
  if (text === undefined) return undefined;
  const document = jsonInQuery(text);
  if (typeof document !== 'object' || document === null || Array.isArray(document)) {
    throw malformed('after is an object, the part of a document that its key and its index need.');
  }
  const members = Object.entries(document).map(([name, json]) => [name, keyFromJson(json, KEY_BYTES_MAX)] as const);
  return Object.fromEntries(members);
}
