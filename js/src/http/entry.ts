/**
 * One entry: `/kv/<text>` for a string key, `/kv?key=<json>` for any key.
 *
 *   GET, HEAD  the value; ETag its sequence, Varve-Expires when it expires; If-Match, If-None-Match (304)
 *   PUT        ?expiresIn=<ms> | expiresAt=<date> &durability=<level>; If-Match, If-None-Match
 *   DELETE     ?existed=true &durability=<level>; If-Match, If-None-Match; without `existed`, the same response for an absent key
 *
 * Invariant: a write is applied only if its conditions are true when it is applied.
 *
 * The request's signal is not watched here: that would cost more than one entry does.
 */

import { hasCode, VarveError } from '../errors.ts';
import { inTurn } from '../transaction/turns.ts';
import type { Condition, Key, Receipt } from '../types.ts';
import { readBody } from './body.ts';
import { bodyResponse, VARY } from './compression.ts';
import { Conditions, tagOf } from './conditions.ts';
import { type Exchange, jsonResponse, logged, storeKey, varveKey } from './exchange.ts';
import { keyFromJson, keyToJson } from './json-key.ts';
import { mediaType, typeFor, valueOfBody, valueToBody } from './media.ts';
import { decoded } from './query.ts';
import { malformed, Refusal } from './refusal.ts';

/** Reads an entry. */
export async function getEntry<K, V>(exchange: Exchange<K, V>, segment: string | undefined): Promise<Response> {
  const { request, query, store, keys } = exchange;
  const key = storeKey(keyOf(exchange, segment), keys);
  query.end();
  const conditions = new Conditions(request.headers);
  const entry = await store.getEntry(key);
  const sequence = entry?.sequence ?? null;
  if (!conditions.matches(sequence)) throw conflict(key, sequence);
  // The other 404s, of paths, have no code.
  if (entry === undefined) throw new Refusal(404, 'There is no entry with this key.', 'VARVE_NOT_FOUND');
  const { type, isOther } = typeFor(entry.value, request.headers.get('accept'));
  const headers = new Headers({
    etag: tagOf(entry.sequence, isOther),
    'cache-control': 'private, no-cache',
    vary: VARY,
  });
  if (entry.expiresAt !== undefined) headers.set('varve-expires', entry.expiresAt.toISOString());
  const held = conditions.held(sequence, isOther);
  if (held !== undefined) {
    headers.set('etag', held);
    return new Response(null, { status: 304, headers });
  }
  const bytes = await valueToBody(entry.value, type);
  headers.set('content-type', type);
  headers.set('content-length', String(bytes.length));
  return bodyResponse(exchange, bytes, bytes.length, headers);
}

/** Writes an entry; 201 if there was certainly none before, else 200. */
export async function putEntry<K, V>(exchange: Exchange<K, V>, segment: string | undefined): Promise<Response> {
  const { request, query, store, keys, limits } = exchange;
  const key = storeKey(keyOf(exchange, segment), keys);
  const lifetime = { expiresIn: query.number('expiresIn', false), expiresAt: query.date('expiresAt') };
  const options = { ...lifetime, durability: query.durability() };
  query.end();
  const conditions = new Conditions(request.headers);
  const type = mediaType(request);
  const value = valueOfBody(type, await readBody(request, limits.bodyBytes)) as V;
  const receipt = await conditionally(exchange, key, conditions, (condition) =>
    store.set(key, value, { ...options, ...condition }),
  );
  return written(receipt, conditions.state === null ? 201 : 200);
}

/** Deletes an entry. */
export async function deleteEntry<K, V>(exchange: Exchange<K, V>, segment: string | undefined): Promise<Response> {
  const { request, query, store, keys } = exchange;
  const key = storeKey(keyOf(exchange, segment), keys);
  const options = { existed: query.flag('existed'), durability: query.durability() };
  query.end();
  const receipt = await conditionally(exchange, key, new Conditions(request.headers), (condition) =>
    store.delete(key, { ...options, ...condition }),
  );
  return jsonResponse(receipt);
}

/** Writes on conditions. If they name more than one state, it tries again when another write came in between. */
async function conditionally<K, V>(
  { store, keys }: Exchange<K, V>,
  key: K,
  conditions: Conditions,
  write: (condition: Condition | undefined) => Receipt | PromiseLike<Receipt>,
): Promise<Receipt> {
  const { state } = conditions;
  if (conditions.none || state !== undefined) {
    return logged(store, await write(state === undefined ? undefined : { ifSequence: state }));
  }
  let isLate = false;
  const attempt = async (): Promise<Receipt> => {
    isLate = false;
    const sequence = (await store.getEntry(key))?.sequence ?? null;
    if (!conditions.matches(sequence) || !conditions.differs(sequence)) throw conflict(key, sequence);
    isLate = true;
    return logged(store, await write({ ifSequence: sequence }));
  };
  const place = { owner: store, key: JSON.stringify(keyToJson(varveKey(key, keys))) };
  return inTurn(place, attempt, {
    is: (error) => isLate && hasCode(error, 'VARVE_CONFLICT'),
    last: () => new Refusal(503, 'Others wrote the entry again and again.', 'VARVE_RETRY'),
  });
}

function written(receipt: Receipt, status: number): Response {
  return jsonResponse(receipt, status, { etag: tagOf(receipt.sequence) });
}

/** The key that a URL names: the segment of its path as text, or the parameter `key` as JSON. */
function keyOf<K, V>({ query, limits }: Exchange<K, V>, segment: string | undefined): Key {
  const key = query.key('key');
  if ((key === undefined) === (segment === undefined)) {
    throw malformed('One key is named, as /kv/<text> or /kv?key=<json>.', 'VARVE_INVALID_KEY');
  }
  return key ?? keyFromJson(decoded(segment as string, true), limits.keyBytes);
}

function conflict(key: unknown, sequence: number | null): VarveError {
  const state = sequence === null ? 'is absent' : `has ETag ${tagOf(sequence)}`;
  const detail = `A condition of this request was false: the key ${state}. Nothing was written.`;
  return new VarveError('VARVE_CONFLICT', detail, { conflict: { key, sequence } });
}
