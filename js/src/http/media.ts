/**
 * Values as bodies: the media type of a value, and the type that a client asks for.
 *
 *   application/json           values that JSON can express without change
 *   application/octet-stream   a Uint8Array, its bytes
 *   application/cbor           any value: the CBOR that Varve stores (codec/cbor-writer.ts), dates, maps, cycles and all
 *
 * If one body contains many values, they are { "value": json }, { "bytes": base64 } or { "cbor": base64 }.
 *
 * Invariant: a value is never changed to fit. A value that JSON cannot express is sent as CBOR, or refused with 406. JSON that a value
 * cannot express is refused with 400.
 */

import { BlobSink } from '../codec/blobs.ts';
import { CborReader } from '../codec/cbor-reader.ts';
import { CborWriter } from '../codec/cbor-writer.ts';
import { VarveError } from '../errors.ts';
import { fromBase64, toBase64 } from './base64.ts';
import { InexactJson, parseExactJson } from './exact-json.ts';
import { Refusal } from './refusal.ts';

export const JSON_TYPE = 'application/json';
export const BYTES_TYPE = 'application/octet-stream';
const CBOR_TYPE = 'application/cbor';
export const NDJSON_TYPE = 'application/x-ndjson';

/** The most levels of arrays and objects that are sent as JSON; deeper values are sent as CBOR. */
const DEPTH_MAX = 500;

/** A value inside a larger JSON body. */
type JsonValue = { readonly value: unknown } | { readonly bytes: string } | { readonly cbor: string };

/** A value as a part of a JSON body. */
export async function valueToJson(value: unknown): Promise<JsonValue> {
  if (value instanceof Uint8Array) return { bytes: toBase64(value) };
  return isJson(value) ? { value } : { cbor: toBase64(await cborOf(value)) };
}

/** The value of `{ value }`, `{ bytes }` or `{ cbor }`. Exactly one of them must be given. */
export function valueFromJson(item: Readonly<Record<string, unknown>>): unknown {
  const given = ['value', 'bytes', 'cbor'].filter((name) => Object.hasOwn(item, name));
  if (given.length !== 1) throw invalid('A value is given as one of value, bytes and cbor.');
  if (given[0] === 'value') return item['value'];
  const text = item[given[0] as string];
  const bytes = typeof text === 'string' ? fromBase64(text) : undefined;
  if (bytes === undefined) throw invalid(`${given[0]} is a string of base64.`);
  return given[0] === 'bytes' ? bytes : valueOfCbor(bytes);
}

/** The media type that the client prefers among those that a value can have, and whether it is not the best one for the value. */
export function typeFor(value: unknown, accept: string | null): { type: string; isOther: boolean } {
  const plain = value instanceof Uint8Array ? BYTES_TYPE : isJson(value) ? JSON_TYPE : undefined;
  const offered = plain === undefined ? [CBOR_TYPE] : [plain, CBOR_TYPE];
  const type = preferred(accept, offered);
  if (type === undefined) {
    const detail = `This value can be sent as ${offered.join(' or ')}; the Accept header allows neither.`;
    throw new Refusal(406, detail, 'VARVE_INVALID_ARGUMENT');
  }
  return { type, isOther: type !== offered[0] };
}

/** A value as a body in one of its media types. */
export async function valueToBody(value: unknown, type: string): Promise<Uint8Array> {
  if (type === CBOR_TYPE) return cborOf(value);
  return type === BYTES_TYPE ? (value as Uint8Array) : new TextEncoder().encode(JSON.stringify(value));
}

/** The value of a body. */
export function valueOfBody(type: string, bytes: Uint8Array): unknown {
  switch (type) {
    case JSON_TYPE:
      return parseJson(bytes);
    case BYTES_TYPE:
      return bytes;
    case CBOR_TYPE:
      return valueOfCbor(bytes);
    default:
      throw unsupported(type, [JSON_TYPE, BYTES_TYPE, CBOR_TYPE]);
  }
}

/** The JSON in a body. */
export function parseJson(bytes: Uint8Array): unknown {
  try {
    return parseExactJson(new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes));
  } catch (cause) {
    const detail = cause instanceof InexactJson ? cause.message : 'The body is not JSON in UTF-8.';
    throw new VarveError('VARVE_INVALID_VALUE', detail, { cause });
  }
}

/** The media type of a request's body, without its parameters. */
export function mediaType(request: Request): string {
  return (request.headers.get('content-type') ?? '').split(';', 1)[0]!.trim().toLowerCase();
}

/** Refuses a body of the wrong type. */
export function unsupported(type: string, allowed: readonly string[]): Refusal {
  const given = type === '' ? 'has no Content-Type' : `is ${type.slice(0, 80)}`;
  return new Refusal(415, `The body ${given}; it must be ${allowed.join(', ')}.`, 'VARVE_INVALID_ARGUMENT', {
    accept: allowed.join(', '),
  });
}

/** The type of `offered` (best first) that an Accept header prefers; undefined if it allows none. */
export function preferred(accept: string | null, offered: readonly string[]): string | undefined {
  if (accept === null || accept.trim() === '') return offered[0];
  const ranges = accept.split(',').map(mediaRange);
  let best: string | undefined;
  let bestQuality = 0;
  for (const type of offered) {
    const quality = qualityOf(type, ranges);
    if (quality > bestQuality) [best, bestQuality] = [type, quality];
  }
  return best;
}

interface MediaRange {
  readonly range: string;
  readonly quality: number;
}

/** One part of an Accept header, or of Accept-Encoding, with its quality. */
export function mediaRange(text: string): MediaRange {
  const [range = '', ...parameters] = text.split(';').map((part) => part.trim().toLowerCase());
  const weight = parameters.find((parameter) => parameter.startsWith('q='));
  const quality = weight === undefined ? 1 : Number(weight.slice(2));
  return { range, quality: quality >= 0 && quality <= 1 ? quality : 0 };
}

/** The quality of the most specific range that matches. */
function qualityOf(type: string, ranges: readonly MediaRange[]): number {
  const family = `${type.slice(0, type.indexOf('/'))}/*`;
  for (const name of [type, family, '*/*']) {
    const match = ranges.find(({ range }) => range === name);
    if (match !== undefined) return match.quality;
  }
  return 0;
}

/**
 * Whether `JSON.stringify` returns JSON that is read as the same value. A value that contains one object twice does not count as
 * JSON. A small value can contain one object in many places, and its JSON would be many times as long.
 */
export function isJson(value: unknown, met: Set<object> = new Set(), depth = 0): boolean {
  switch (typeof value) {
    case 'string':
    case 'boolean':
      return true;
    case 'number':
      return Number.isFinite(value) && !Object.is(value, -0);
    case 'object':
      break;
    default:
      return false;
  }
  if (value === null) return true;
  if (depth === DEPTH_MAX || met.has(value)) return false;
  met.add(value);
  if (Array.isArray(value)) {
    for (let i = 0; i < value.length; i++) if (!isJson(value[i], met, depth + 1)) return false;
    return true;
  }
  const prototype: unknown = Object.getPrototypeOf(value);
  if (prototype !== Object.prototype && prototype !== null) return false;
  for (const name of Object.keys(value)) {
    if (!isJson((value as Record<string, unknown>)[name], met, depth + 1)) return false;
  }
  return true;
}

async function cborOf(value: unknown): Promise<Uint8Array> {
  const sink = new BlobSink(256);
  try {
    new CborWriter(sink).write(value, sink);
  } catch (cause) {
    if (cause instanceof VarveError) throw cause;
    throw new VarveError('VARVE_INVALID_VALUE', 'The stored value has no form that can be sent.', { cause });
  }
  await sink.read();
  return sink.copy();
}

function valueOfCbor(bytes: Uint8Array): unknown {
  try {
    return new CborReader().read(bytes, 0, bytes.length);
  } catch (cause) {
    const detail = 'The CBOR is malformed, or uses what Varve does not: short floats, indefinite lengths, other tags.';
    throw new VarveError('VARVE_INVALID_VALUE', detail, { cause });
  }
}

function invalid(message: string): VarveError {
  return new VarveError('VARVE_INVALID_VALUE', message);
}
