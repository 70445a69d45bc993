/**
 * Batches: many operations in one request, `POST /batch ?atomic=true &durability=<level>`.
 *
 *   body      [{ "op": "set", "key", "value" | "bytes" | "cbor", "expiresIn"? | "expiresAt"?, "ifSequence"? },
 *              { "op": "delete", "key", "ifSequence"? }, { "op": "deleteRange", "range": { gt gte lt lte prefix } },
 *              { "op": "get", "key" }]
 *   response  { "results": [receipt | entry | null | { "error": problem }] }, in their order
 *   atomic    all or nothing, without get: one receipt, or one problem
 *
 * Without `atomic` the operations run in their order, each independently; they are sent to the engine together.
 *
 * Invariant: nothing runs before the whole body has been parsed and checked.
 */

import { checkItem, conditionOf } from '../codec/item.ts';
import type { Condition, Durability, Entry, Key, KeyRange, SetItemOptions } from '../types.ts';
import { readBody } from './body.ts';
import { bodyResponse } from './compression.ts';
import { type Exchange, jsonResponse, logged, storeKey, storeRange } from './exchange.ts';
import { DATE_FORM, dateOf, keyFromJson } from './json-key.ts';
import { JSON_TYPE, mediaType, parseJson, unsupported, valueFromJson, valueToJson } from './media.ts';
import { problemOf } from './problem.ts';
import { prefixOf } from './query.ts';
import { malformed, Refusal } from './refusal.ts';
import type { HttpStore } from './types.ts';

/**
 * Operations that run together if some of them read: few at first, then more. Between such groups the size of the results is checked. 64
 * values of 8 MiB would take gigabytes, and more than a string may have.
 */
const READS_MIN = 8;
const READS_MAX = 64;

interface SetOperation<K> {
  readonly op: 'set';
  readonly key: K;
  readonly value: unknown;
  readonly options: SetItemOptions | undefined;
}

interface DeleteOperation<K> {
  readonly op: 'delete';
  readonly key: K;
  readonly condition: Condition | undefined;
}

type Operation<K> =
  | SetOperation<K>
  | DeleteOperation<K>
  | { readonly op: 'deleteRange'; readonly range: KeyRange<K> }
  | { readonly op: 'get'; readonly key: K };

/** Runs a batch. */
export async function runBatch<K, V>(exchange: Exchange<K, V>): Promise<Response> {
  const { request, query, limits } = exchange;
  const isAtomic = query.flag('atomic') ?? false;
  const durability = query.durability();
  query.end();
  const type = mediaType(request);
  if (type !== JSON_TYPE) throw unsupported(type, [JSON_TYPE]);
  const items = parseJson(await readBody(request, limits.bodyBytes));
  if (!Array.isArray(items)) throw malformed('A batch is a JSON array of operations.');
  if (items.length > limits.operations) {
    const detail = `A batch takes at most ${limits.operations} operations here.`;
    throw new Refusal(413, detail, 'VARVE_INVALID_ARGUMENT');
  }
  const operations = items.map((item, i) => parseOperation(exchange, item, i));
  if (isAtomic) return runAtomic(exchange, operations, durability);
  const body = JSON.stringify({ results: await runEach(exchange, operations, durability) });
  const headers = { 'content-type': JSON_TYPE, 'cache-control': 'no-store', vary: 'Accept-Encoding' };
  return bodyResponse(exchange, body, body.length, new Headers(headers));
}

async function runAtomic<K, V>(
  { wait, store }: Exchange<K, V>,
  operations: readonly Operation<K>[],
  durability: Durability | undefined,
): Promise<Response> {
  const batch = store.batch();
  for (const operation of operations) {
    switch (operation.op) {
      case 'set':
        batch.set(operation.key, operation.value as V, operation.options);
        break;
      case 'delete':
        batch.delete(operation.key, operation.condition);
        break;
      case 'deleteRange':
        batch.deleteRange(operation.range);
        break;
      case 'get':
        throw malformed('An atomic batch takes writes only; read before it, and write with ifSequence.');
    }
  }
  return jsonResponse(logged(store, await batch.commit({ durability, ...wait })));
}

async function runEach<K, V>(
  exchange: Exchange<K, V>,
  operations: readonly Operation<K>[],
  durability: Durability | undefined,
): Promise<unknown[]> {
  const reads = operations.some(({ op }) => op === 'get');
  let step = reads ? READS_MIN : operations.length;
  const results: unknown[] = [];
  let bytes = 0;
  const measured = async (operation: Operation<K>): Promise<unknown> => {
    const result = await runOne(exchange.store, operation, durability).catch((error) => {
      exchange.failed(error);
      return { error: problemOf(error) };
    });
    if (operation.op === 'get') bytes += JSON.stringify(result).length;
    return result;
  };
  for (let at = 0; at < operations.length; at = results.length) {
    // Checked here and not passed to every operation, because each operation would add a listener to the signal.
    const { signal } = exchange.request;
    signal.throwIfAborted();
    if (bytes >= exchange.limits.answerBytes) {
      const detail = `Not run: the answers before it take more than ${exchange.limits.answerBytes} bytes.`;
      const error = problemOf(new Refusal(413, detail, 'VARVE_INVALID_ARGUMENT'));
      return [...results, ...operations.slice(at).map(() => ({ error }))];
    }
    results.push(...(await Promise.all(operations.slice(at, at + step).map(measured))));
    step = Math.min(2 * step, READS_MAX);
  }
  return results;
}

async function runOne<K, V>(
  store: HttpStore<K, V>,
  operation: Operation<K>,
  durability: Durability | undefined,
): Promise<unknown> {
  switch (operation.op) {
    case 'set':
      return logged(store, await store.set(operation.key, operation.value as V, { ...operation.options, durability }));
    case 'delete':
      return logged(store, await store.delete(operation.key, { ...operation.condition, durability }));
    case 'deleteRange':
      return logged(store, await store.deleteRange(operation.range, { durability }));
    case 'get':
      return entryToJson(await store.getEntry(operation.key));
  }
}

async function entryToJson(entry: Entry<unknown> | undefined): Promise<unknown> {
  if (entry === undefined) return null;
  const { value, sequence, expiresAt } = entry;
  return { ...(await valueToJson(value)), sequence, expiresAt: expiresAt?.toISOString() };
}

const VALUES = ['value', 'bytes', 'cbor'];
/** The members that an operation may have besides `op`. */
const MEMBERS: Readonly<Record<Operation<unknown>['op'], readonly string[]>> = {
  set: ['key', ...VALUES, 'expiresIn', 'expiresAt', 'ifSequence'],
  delete: ['key', 'ifSequence'],
  deleteRange: ['range'],
  get: ['key'],
};
const BOUNDS = ['gt', 'gte', 'lt', 'lte'] as const;

function parseOperation<K, V>(exchange: Exchange<K, V>, item: unknown, i: number): Operation<K> {
  try {
    return operationOf(exchange, item);
  } catch (error) {
    const { status, detail, code } = problemOf(error);
    throw new Refusal(status, `Operation ${i}: ${detail}`, code);
  }
}

function operationOf<K, V>({ keys, limits }: Exchange<K, V>, item: unknown): Operation<K> {
  const fields = fieldsOf(item, 'An operation');
  const op = fields['op'];
  if (op !== 'set' && op !== 'delete' && op !== 'deleteRange' && op !== 'get') {
    throw malformed('op is set, delete, deleteRange or get.');
  }
  refuseOthers(fields, ['op', ...MEMBERS[op]], op);
  if (op === 'deleteRange') {
    const range = rangeOf(fieldsOf(fields['range'], 'A range'), limits.keyBytes);
    return { op, range: storeRange(range, keys) };
  }
  if (!Object.hasOwn(fields, 'key')) throw malformed(`${op} needs a key.`, 'VARVE_INVALID_KEY');
  const key = storeKey(keyFromJson(fields['key'], limits.keyBytes), keys);
  if (op === 'get') return { op, key };
  const condition = conditionOf(fields);
  const { expiresIn } = fields as SetItemOptions;
  const options = checkItem({ expiresIn, expiresAt: dateFromJson(fields, 'expiresAt'), ...condition });
  return op === 'delete' ? { op, key, condition } : { op, key, value: valueFromJson(fields), options };
}

function dateFromJson(fields: Readonly<Record<string, unknown>>, name: string): Date | undefined {
  const json = fields[name];
  if (json === undefined) return undefined;
  const date = typeof json === 'string' ? dateOf(json) : undefined;
  if (date === undefined) throw malformed(`${name} is a date as ${DATE_FORM}.`);
  return date;
}

function rangeOf(fields: Readonly<Record<string, unknown>>, bytesMax: number): KeyRange {
  refuseOthers(fields, [...BOUNDS, 'prefix'], 'range');
  const range: KeyRange = {};
  const bound = (name: string): Key | undefined =>
    Object.hasOwn(fields, name) ? keyFromJson(fields[name], bytesMax) : undefined;
  for (const name of BOUNDS) range[name] = bound(name);
  range.prefix = prefixOf(bound('prefix'));
  if (Object.keys(fields).length === 0) throw malformed('deleteRange takes a bound or a prefix.');
  return range;
}

function fieldsOf(item: unknown, what: string): Readonly<Record<string, unknown>> {
  if (typeof item === 'object' && item !== null && !Array.isArray(item)) return item as Record<string, unknown>;
  throw malformed(`${what} is an object.`);
}

function refuseOthers(fields: Readonly<Record<string, unknown>>, known: readonly string[], what: string): void {
  for (const name of Object.keys(fields)) {
    if (!known.includes(name)) throw malformed(`${what} has no ${JSON.stringify(name.slice(0, 40))}.`);
  }
}
