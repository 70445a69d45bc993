/**
 * Ranges: `/range` and `/count`.
 *
 *   GET /range     ?gt gte lt lte prefix (JSON keys) &reverse &limit &values=false
 *                  Accept: application/json: a page { entries: [{ key, value | bytes | cbor }], next }
 *                  Accept: application/x-ndjson: a stream of the same entries, one a line
 *   DELETE /range  the bounds and durability; a request without bounds is refused
 *   GET /count     the bounds
 *
 * A page ends at its `limit`, or earlier if its entries take too many bytes. `next` is the URL of the following page, also sent
 * as a Link header, and null at the end. Each page has its own read point; a stream has one.
 *
 * Invariant: entries are read as the client takes them. Neither a stream nor a page keeps more in memory than its limits.
 */

import type { KeyRange } from '../types.ts';
import { bodyResponse, VARY } from './compression.ts';
import { type Exchange, jsonResponse, logged, storeRange, varveKey } from './exchange.ts';
import { keyToJson } from './json-key.ts';
import { lineStream } from './line-stream.ts';
import { JSON_TYPE, NDJSON_TYPE, preferred, valueToJson } from './media.ts';
import { Refusal } from './refusal.ts';

/** The parameters of a range request. */
interface RangeRequest {
  readonly range: KeyRange;
  readonly reverse: boolean;
  readonly values: boolean;
  readonly limit: number | undefined;
}

/** Reads a range. */
export async function getRange<K, V>(exchange: Exchange<K, V>): Promise<Response> {
  const { request, query } = exchange;
  const wanted: RangeRequest = {
    range: query.range(),
    reverse: query.flag('reverse') ?? false,
    values: query.flag('values') ?? true,
    limit: query.number('limit', true),
  };
  query.end();
  const type = preferred(request.headers.get('accept'), [JSON_TYPE, NDJSON_TYPE]);
  if (type === undefined) {
    throw new Refusal(406, `A range can be sent as ${JSON_TYPE} or ${NDJSON_TYPE}.`, 'VARVE_INVALID_ARGUMENT');
  }
  if (type === JSON_TYPE) return page(exchange, wanted);
  const { stream, firstBytes } = await lineStream(texts(exchange, wanted, wanted.limit));
  return bodyResponse(exchange, stream, firstBytes, headersOf(NDJSON_TYPE));
}

/** Deletes a range. */
export async function deleteRange<K, V>({ wait, query, store, keys }: Exchange<K, V>): Promise<Response> {
  const range = storeRange(query.range(), keys);
  const durability = query.durability();
  query.end();
  return jsonResponse(logged(store, await store.deleteRange(range, { durability, ...wait })));
}

/** Counts a range. */
export async function countRange<K, V>({ wait, query, store, keys }: Exchange<K, V>): Promise<Response> {
  const range = storeRange(query.range(), keys);
  query.end();
  return jsonResponse({ count: await store.count({ ...range, ...wait }) });
}

async function page<K, V>(exchange: Exchange<K, V>, wanted: RangeRequest): Promise<Response> {
  const { limits } = exchange;
  const limit = Math.min(wanted.limit ?? limits.results, limits.results);
  const entries: string[] = [];
  let bytes = 0;
  let last: unknown;
  let next: string | null = null;
  // One entry more than the page has, to find out whether there is a next page.
  for await (const { key, text } of texts(exchange, wanted, limit === 0 ? 0 : limit + 1)) {
    if (entries.length === limit || bytes >= limits.answer) {
      next = nextUrl(exchange.base, wanted, last);
      break;
    }
    entries.push(text);
    bytes += text.length;
    last = key;
  }
  const headers = headersOf(JSON_TYPE);
  if (next !== null) headers.set('link', `<${next}>; rel="next"`);
  const body = `{"entries":[${entries.join(',')}],"next":${JSON.stringify(next)}}`;
  return bodyResponse(exchange, body, body.length, headers);
}

const headersOf = (type: string): Headers =>
  new Headers({ 'content-type': type, 'cache-control': 'no-store', vary: VARY });

/** The entries of a range as JSON texts, each with its key as JSON. */
async function* texts<K, V>(
  { wait, store, keys }: Exchange<K, V>,
  { range, reverse, values }: RangeRequest,
  limit: number | undefined,
): AsyncGenerator<{ key: unknown; text: string }, void, undefined> {
  const options = { ...storeRange(range, keys), reverse, limit, ...wait };
  if (values) {
    for await (const [found, value] of store.entries(options)) {
      const key = keyToJson(varveKey(found, keys));
      yield { key, text: JSON.stringify({ key, ...(await valueToJson(value)) }) };
    }
    return;
  }
  for await (const found of store.keys(options)) {
    const key = keyToJson(varveKey(found, keys));
    yield { key, text: JSON.stringify({ key }) };
  }
}

/** The URL of the page that continues after a key. */
function nextUrl(base: string, { range, reverse, values, limit }: RangeRequest, last: unknown): string {
  const parameters: string[] = [];
  const add = (name: string, json: unknown): void => {
    parameters.push(`${name}=${encodeURIComponent(JSON.stringify(json))}`);
  };
  const bounds = { ...range, ...(reverse ? { lt: undefined, lte: undefined } : { gt: undefined, gte: undefined }) };
  for (const [name, key] of Object.entries(bounds)) if (key !== undefined) add(name, keyToJson(key));
  add(reverse ? 'lt' : 'gt', last);
  if (reverse) parameters.push('reverse=true');
  if (!values) parameters.push('values=false');
  if (limit !== undefined) parameters.push(`limit=${limit}`);
  return `${base}/range?${parameters.join('&')}`;
}
