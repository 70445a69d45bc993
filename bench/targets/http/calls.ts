/**
 * The requests of the suites, each with its right answer and its writes.
 *
 * Invariant: a request writes keys of its own connection only, and a range judges only those, so the right answer is known to
 * the byte when the request is sent.
 */

import { documentOf, TEAMS } from './documents.ts';
import { keyOf, numberOf, type Share, valueText, type Write } from './ledger.ts';
import { BARE } from './programs/site.ts';

export interface Call {
  readonly method: 'GET' | 'PUT' | 'POST' | 'DELETE';
  readonly path: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string;
  /** Operations of the store that it asks for. */
  readonly operations: number;
  readonly status: number;
  readonly writes: readonly Write[];
  /** Whether the body is right. Default: any is. */
  readonly check?: (body: string) => boolean;
}

export type Kind = (share: Share) => Call;

/** All entries of the ledger; documents have other keys. */
export const ALL = '/range?prefix=%22k%22';
const JSON_TYPE = { 'content-type': 'application/json' };
const STREAM = { accept: 'application/x-ndjson' };
const pathOf = (number: number): string => `/kv/${keyOf(number)}`;
const read = { method: 'GET', operations: 1, status: 200, writes: [] } as const;

/** `GET /health`: the engine answers and its log can be flushed. */
export const health: Kind = () => ({ ...read, path: '/health', check: (body) => body === '{"status":"ok"}' });

export const get: Kind = (share) => getOf(share, share.any());
/** The same of few keys, which a cache of reads has. */
export const hotGet: Kind = (share) => getOf(share, share.hot());

function getOf(share: Share, number: number): Call {
  const version = share.ledger.version(number);
  if (version === 0) return { ...read, path: pathOf(number), status: 404 };
  return { ...read, path: pathOf(number), check: (body) => body === valueText({ number, version }) };
}

/** `GET /kv/KEY` by a client that has the value and sends its ETag: 304 where the sequence is known, else as `get`. */
export const revalidate: Kind = (share) => {
  const number = share.any();
  const { ledger } = share;
  const version = ledger.version(number);
  const sequence = ledger.sequence(number);
  if (version === 0 || sequence === 0) return get(share);
  return { ...read, path: pathOf(number), headers: { 'if-none-match': `"${sequence}"` }, status: 304 };
};

function putOf(write: Write, condition: Readonly<Record<string, string>> = {}, status = 200): Call {
  const headers = { ...JSON_TYPE, ...condition };
  const body = valueText(write);
  return { method: 'PUT', path: pathOf(write.number), headers, body, operations: 1, status, writes: [write] };
}

export const put: Kind = (share) => putOf(share.ledger.next(share.any()));
export const hotPut: Kind = (share) => putOf(share.ledger.next(share.hot()));

/** `PUT /kv/KEY` with `If-None-Match: *` of a key that is absent: 201. */
export const insert: Kind = (share) => putOf(share.ledger.next(share.fresh()), { 'if-none-match': '*' }, 201);

/** `PUT /kv/KEY` with `If-Match`: over the sequence that its client knows, else over anything that is there. */
export const update: Kind = (share) => {
  const number = share.present();
  if (number === undefined) return insert(share);
  const sequence = share.ledger.sequence(number);
  return putOf(share.ledger.next(number), { 'if-match': sequence === 0 ? '*' : `"${sequence}"` });
};

/** `DELETE /kv/KEY`, whether it is there or not. */
export const remove: Kind = (share) => {
  const number = share.any();
  const writes = [{ number, version: 0 }];
  return { method: 'DELETE', path: pathOf(number), operations: 1, status: 200, writes };
};

interface Page {
  readonly entries: readonly { readonly key: string; readonly value: unknown }[];
}

/** `GET /range` of `limit` entries from a key of its own on. One operation: it is one select. */
export function range(limit: number): Kind {
  return (share) => {
    const from = share.any();
    const path = `/range?gte=%22${keyOf(from)}%22&limit=${limit}`;
    return { ...read, path, check: (body) => isRightPage(JSON.parse(body) as Page, share, from, limit) };
  };
}

/** `GET /find` of the first documents of a team, by the index; as a scan the client picks them from a stream of all documents. */
export function find(limit: number, how: 'index' | 'scan'): Kind {
  return ({ random }) => {
    const team = random.below(TEAMS);
    const values = Array.from({ length: limit }, (_, i) => ({ value: documentOf(team + i * TEAMS) }));
    const right = values.map((value) => JSON.stringify(value)).join();
    const picked = (body: string): string[] => body.split('\n').filter((line) => line.includes(`"team":${team},`));
    if (how === 'scan')
      return {
        ...read,
        path: '/find/documents',
        headers: STREAM,
        check: (body) => picked(body).slice(0, limit).join() === right,
      };
    const path = `/find/documents?by=team&eq=${team}&limit=${limit}`;
    return { ...read, path, check: (body) => body.includes(`[${right}]`) };
  };
}

/** The same requests by a client that accepts gzip. */
export const gzipped =
  (kind: Kind): Kind =>
  (share) => {
    const call = kind(share);
    return { ...call, headers: { ...call.headers, 'accept-encoding': 'gzip' } };
  };

/** In order, not too long, not too short, and of its own keys exactly those that are there, with their values. */
function isRightPage({ entries }: Page, share: Share, from: number, limit: number): boolean {
  const numbers = entries.map(({ key }) => numberOf(key));
  if (numbers.some((number, i) => number < from || (i > 0 && number <= (numbers[i - 1] ?? 0)))) return false;
  const isLast = entries.length < limit;
  const last = isLast ? share.ledger.end - 1 : (numbers.at(-1) ?? from);
  if (entries.length > limit || (isLast && from < share.ledger.base - limit * 10)) return false;
  const found = new Set(numbers);
  for (let number = from; number <= last; number++) {
    if (share.owns(number) && found.has(number) !== (share.ledger.version(number) !== 0)) return false;
  }
  return entries.every(({ key, value }) => !share.owns(numberOf(key)) || share.ledger.matches(key, value));
}

export const setOf = (write: Write): string =>
  `{"op":"set","key":"${keyOf(write.number)}","value":${valueText(write)}}`;
const getOperation = (number: number): string => `{"op":"get","key":"${keyOf(number)}"}`;
const deleteOf = (number: number): string => `{"op":"delete","key":"${keyOf(number)}"}`;

function batchOf(operations: readonly string[], isAtomic: boolean, writes: readonly Write[]): Call {
  const path = isAtomic ? '/batch?atomic=true' : '/batch';
  const body = `[${operations.join(',')}]`;
  return { method: 'POST', path, headers: JSON_TYPE, body, operations: operations.length, status: 200, writes };
}

interface Results {
  readonly results: readonly { readonly value?: unknown; readonly sequence?: number }[];
}

/** `POST /batch` of `size` gets; every value is compared. */
export function batchGet(size: number): Kind {
  return (share) => {
    const numbers = share.several(size);
    const check = (body: string): boolean => {
      const { results } = JSON.parse(body) as Results;
      const isRight = (number: number, i: number): boolean => {
        if (share.ledger.version(number) === 0) return results[i]?.value === undefined;
        return share.ledger.matches(keyOf(number), results[i]?.value);
      };
      return results.length === numbers.length && numbers.every(isRight);
    };
    return { ...batchOf(numbers.map(getOperation), false, []), check };
  };
}

const writesOf = (share: Share, size: number): Write[] =>
  share.several(size).map((number) => share.ledger.next(number));

/** `POST /batch` of `size` sets, each with its own result, or all or none. */
export function batchSet(size: number, isAtomic = false): Kind {
  return (share) => {
    const writes = writesOf(share, size);
    const check = (body: string): boolean => {
      const { results } = JSON.parse(body) as Results;
      return results.length === writes.length && results.every(({ sequence = 0 }) => sequence > 0);
    };
    const call = batchOf(writes.map(setOf), isAtomic, writes);
    return isAtomic ? call : { ...call, check };
  };
}

/** A transaction of four: three sets and a delete, all or none. */
export const transaction: Kind = (share) => {
  const [first = 0, ...others] = share.several(4);
  const writes = others.map((number) => share.ledger.next(number));
  return batchOf([...writes.map(setOf), deleteOf(first)], true, [...writes, { number: first, version: 0 }]);
};

/** One of several kinds, each as often as its weight says. */
export function mix(parts: readonly (readonly [weight: number, kind: Kind])[]): Kind {
  const total = parts.reduce((sum, [weight]) => sum + weight, 0);
  return (share) => {
    let drawn = share.random.below(total);
    for (const [weight, kind] of parts) {
      drawn -= weight;
      if (drawn < 0) return kind(share);
    }
    throw new RangeError('The weights of a mix are integers above 0.');
  };
}

/** The floor of a kind: the same bytes to the server alone, which answers as many as the kind was answered on average. */
export function bare(kind: Kind, answerBytes: number): Kind {
  return (share) => {
    const { method, headers = {}, body, operations } = kind(share);
    const sent = body === undefined ? { headers } : { headers, body };
    const isRead = method === 'GET' || method === 'DELETE';
    const check = (text: string): boolean => text.length === answerBytes;
    return { ...read, method: isRead ? 'GET' : 'POST', path: BARE + answerBytes, ...sent, operations, check };
  };
}
