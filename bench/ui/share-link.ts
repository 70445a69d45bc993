/**
 * A small result in the fragment of an address, which no server sees: rows as lists, deflated, base64url.
 *
 * Invariant: what is read back shows the same tables: figures keep four digits. Histograms, timelines, storage reports and
 * several tabs stay behind: those are for files. An address longer than LINK_MAX is not made.
 */

import { paramsOf, planFrom } from '../core/options.ts';
import type { Result } from '../core/report.ts';
import type { Row } from '../core/rows.ts';
import { resultOf } from './result-file.ts';

/** Characters of a fragment that every program which handles addresses takes. */
export const LINK_MAX = 8000;
/** A deflated text may hold no more than this when it is opened: an address comes from anyone. */
const OPENED_MAX = 4 * 2 ** 20;
const NAME = 'run=';
const VERSION = 2;

/** The fields of a row in the order of its list. */
const FIELDS = [
  'suite',
  'engine',
  'role',
  'access',
  'durability',
  'unit',
  'ops',
  'seconds',
  'opsPerSecond',
  'megabytesPerSecond',
  'p50',
  'p95',
  'p99',
  'max',
  'hitRate',
  'verified',
  'groupSize',
  'rounds',
  'phase',
  'engineVersion',
  'note',
] as const satisfies readonly (keyof Row)[];

/** The fragment of a result, without `#`; undefined when it is too long for an address. */
export async function fragmentOf(result: Result): Promise<string | undefined> {
  const { environment, plan, rows, problems } = result;
  const lists = rows.filter(({ tabs }) => tabs === undefined).map((row) => FIELDS.map((field) => short(row[field])));
  // Without what is absent at the end of each.
  for (const list of lists) while (list.at(-1) === undefined) list.pop();
  const text = JSON.stringify({ version: VERSION, environment, plan: String(paramsOf(plan)), rows: lists, problems });
  const packed = await through(new TextEncoder().encode(text), new CompressionStream('deflate-raw'));
  const fragment = NAME + toBase64Url(packed);
  return fragment.length > LINK_MAX ? undefined : fragment;
}

/** The result in a fragment; undefined when there is none. Throws an Error that says what is wrong with one that is there. */
export async function resultInFragment(fragment: string): Promise<Result | undefined> {
  const text = fragment.replace(/^#/, '');
  if (!text.startsWith(NAME)) return undefined;
  try {
    const packed = fromBase64Url(text.slice(NAME.length));
    const json = new TextDecoder().decode(await through(packed, new DecompressionStream('deflate-raw')));
    const { version, environment, plan, rows, problems } = JSON.parse(json) as Record<string, unknown>;
    if (version !== VERSION || !Array.isArray(rows)) throw new Error('made by another version of this page');
    const named = rows.map((list: unknown[]) =>
      Object.fromEntries(FIELDS.map((field, i) => [field, list[i] ?? undefined])),
    );
    return resultOf({ environment, plan: planFrom(new URLSearchParams(String(plan))).plan, rows: named, problems });
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    throw new Error(`The result in this address cannot be read (${why}): ask for the file instead.`);
  }
}

function short(value: Row[keyof Row]): unknown {
  if (Array.isArray(value)) return value.map(short);
  return typeof value === 'number' && !Number.isInteger(value) ? Number(value.toPrecision(4)) : value;
}

async function through(bytes: Uint8Array, stream: CompressionStream | DecompressionStream): Promise<Uint8Array> {
  const writer = stream.writable.getWriter();
  // What fails here fails the reading below, too.
  writer
    .write(bytes as Uint8Array<ArrayBuffer>)
    .then(
      () => writer.close(),
      () => undefined,
    )
    .catch(() => undefined);
  const parts: Uint8Array[] = [];
  let length = 0;
  const reader = stream.readable.getReader() as ReadableStreamDefaultReader<Uint8Array>;
  for (let next = await reader.read(); !next.done; next = await reader.read()) {
    length += next.value.length;
    if (length > OPENED_MAX) throw new Error('too long');
    parts.push(next.value);
  }
  const whole = new Uint8Array(length);
  let at = 0;
  for (const part of parts) {
    whole.set(part, at);
    at += part.length;
  }
  return whole;
}

function toBase64Url(bytes: Uint8Array): string {
  const text = Array.from(bytes, (byte) => String.fromCharCode(byte)).join('');
  return btoa(text).replaceAll('+', '-').replaceAll('/', '_').replaceAll('=', '');
}

function fromBase64Url(text: string): Uint8Array {
  return Uint8Array.from(atob(text.replaceAll('-', '+').replaceAll('_', '/')), (char) => char.charCodeAt(0));
}
