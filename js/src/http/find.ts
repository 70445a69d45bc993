/**
 * Documents of a collection by an index: `/find/<collection>`.
 *
 *   GET /find/<collection>  ?by=<index> &eq gt gte lt lte prefix (JSON keys) &reverse &limit &after (a JSON object of keys)
 *                           Accept: application/json: a page { documents: [{ value | cbor }], more }
 *                           Accept: application/x-ndjson: a stream of the same documents, one a line
 *
 * Without `by` the documents come by their keys. A page that has `more` is followed by the one whose `after` is its last document. The
 * document's key and its value in the index are enough.
 *
 * Invariant: the collection decides everything about documents and indexes; this only reads URLs and writes bodies. A page, and a
 * stream, has one read point.
 */

import type { Key } from '../types.ts';
import type { Exchange } from './exchange.ts';
import { jsonInQuery, keyFromJson } from './json-key.ts';
import type { Line } from './line-stream.ts';
import { listResponse } from './listing.ts';
import { valueToJson } from './media.ts';
import { decoded, type Query } from './query.ts';
import { malformed, Refusal } from './refusal.ts';
import type { HttpCollection } from './types.ts';

/** Makes the endpoint that finds documents of these collections. */
export function findIn(collections: ReadonlyMap<string, HttpCollection>) {
  return async <K, V>(exchange: Exchange<K, V>, segment: string | undefined): Promise<Response> => {
    const { query, wait, limits } = exchange;
    const found = segment === undefined ? undefined : collections.get(decoded(segment, true));
    if (found === undefined)
      throw new Refusal(404, 'There is no collection with this name here. See the option collections.');
    const by = query.text('by');
    const limit = query.number('limit', true);
    const where = {
      ...{ eq: query.key('eq'), ...query.range() },
      ...{ reverse: query.flag('reverse'), after: documentOf(query, limits.key), ...wait },
    };
    query.end();
    const find = found.find.bind(found) as (...of: unknown[]) => AsyncIterable<unknown>;
    async function* lines(most: number | undefined): AsyncGenerator<Line, void, undefined> {
      const options = { ...where, limit: most };
      const documents = by === undefined ? find(options) : find(by, options);
      for await (const document of documents) yield { text: JSON.stringify(await valueToJson(document)) };
    }
    return listResponse(exchange, 'documents', limit, lines, (last) => ({ member: `"more":${last !== undefined}` }));
  };
}

/** The part of a document that `after` gives: each member is a key as JSON. */
function documentOf(query: Query, keyBytesMax: number): Record<string, Key> | undefined {
  const text = query.text('after');
  if (text === undefined) return undefined;
  const document = jsonInQuery(text);
  if (typeof document !== 'object' || document === null || Array.isArray(document)) {
    throw malformed('after is an object, the part of a document that its key and its index need.');
  }
  const members = Object.entries(document).map(([name, json]) => [name, keyFromJson(json, keyBytesMax)] as const);
  return Object.fromEntries(members);
}
