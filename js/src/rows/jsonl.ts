/**
 * An entry as one object of JSON, with the key and the value as `varve/http` has them. JSON lines are such objects, one a line:
 *
 *   {"key":["note",42],"value":{"title":"Silt"}}   {"key":"pixels","bytes":"AP8="}   {"key":7,"cbor":"wfs="}
 *
 * Invariant: nothing of keys and values is lost. The expiry of an entry is not in it.
 */

import { keyToJson } from '../http/json-key.ts';
import { valueToJson } from '../http/media.ts';
import type { Key } from '../types.ts';

/** The object of an entry. */
export async function entryToJson(key: Key, value: unknown): Promise<{ readonly [name: string]: unknown }> {
  return { key: keyToJson(key), ...(await valueToJson(value)) };
}
