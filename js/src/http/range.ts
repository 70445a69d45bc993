/**
 * Ranges: `/range` and `/count`.
 *
 *   GET /range     ?gt gte lt lte prefix (JSON keys) &reverse &limit &keysOnly=true
 *                  Accept: application/json: a page { entries: [{ key, value | bytes | cbor }], next }
 *                  Accept: application/x-ndjson: a stream of the same entries, one a line
 *   DELETE /range  the bounds and durability; a request without bounds is refused
 *   GET /count     the bounds
 *
 * `next` is the URL of the following page, also sent as a Link header, and null at the end.
 *
 * Invariant: each page has its own read point; a stream has one.
 */

import type { KeyRange } from '../types.ts';
import { type Exchange, jsonResponse, logged, storeRange, varveKey } from './exchange.ts';
import { keyToJson } from './json-key.ts';
import { listResponse } from './listing.ts';
import { valueToJson } from './media.ts';

/** The parameters of a range request. */
interface RangeRequest {
  readonly range: KeyRange;
  readonly reverse: boolean;
  readonly keysOnly: boolean;
  readonly limit: number | undefined;
}

/** Reads a range. */
export async function getRange<K, V>(exchange: Exchange<K, V>): Promise<Response> {
  const { query } = exchange;
  const wanted: RangeRequest = {
    range: query.range(),
    reverse: query.flag('reverse') ?? false,
    keysOnly: query.flag('keysOnly') ?? false,
    limit: query.number('limit', true),
  };
  query.end();
  const read = (limit: number | undefined): ReturnType<typeof texts> => texts(exchange, wanted, limit);
  return listResponse(exchange, 'entries', wanted.limit, read, (last) => {
    const next = last === undefined ? null : nextUrl(exchange.base, wanted, last.key);
    return { member: `"next":${JSON.stringify(next)}`, next };
  });
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

/** The entries of a range as JSON texts, each with its key as JSON. */
async function* texts<K, V>(
  { wait, store, keys }: Exchange<K, V>,
  { range, reverse, keysOnly }: RangeRequest,
  limit: number | undefined,
): AsyncGenerator<{ key: unknown; text: string }, void, undefined> {
  const options = { ...storeRange(range, keys), reverse, limit, ...wait };
  if (!keysOnly) {
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
function nextUrl(base: string, { range, reverse, keysOnly, limit }: RangeRequest, last: unknown): string {
  const parameters: string[] = [];
  const add = (name: string, json: unknown): void => {
    parameters.push(`${name}=${encodeURIComponent(JSON.stringify(json))}`);
  };
  const bounds = { ...range, ...(reverse ? { lt: undefined, lte: undefined } : { gt: undefined, gte: undefined }) };
  for (const [name, key] of Object.entries(bounds)) if (key !== undefined) add(name, keyToJson(key));
  add(reverse ? 'lt' : 'gt', last);
  if (reverse) parameters.push('reverse=true');
  if (keysOnly) parameters.push('keysOnly=true');
  if (limit !== undefined) parameters.push(`limit=${limit}`);
  return `${base}/range?${parameters.join('&')}`;
}
