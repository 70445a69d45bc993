/**
 * The suites over HTTP: their requests, connections and lengths.
 *
 * Invariant: a suite is data. Counts of the quick mode are the full ones scaled down; nothing else differs.
 */

import * as calls from './calls.ts';

export const SUITES = ['http-single', 'http-batch', 'http-load', 'durability'] as const;
export type SuiteName = (typeof SUITES)[number];

export interface Work {
  readonly title: string;
  readonly kind: calls.Kind;
  readonly published?: string;
}

const HOT_90_10: calls.Kind = calls.mix([
  [90, calls.hotGet],
  [10, calls.hotPut],
]);

/** `http-single`: one operation, or one small transaction, a request. */
export const SINGLE: readonly Work[] = [
  { title: 'health', kind: calls.health, published: '200/s' },
  { title: 'insert (PUT, If-None-Match: *)', kind: calls.insert, published: '190/s, 5 ms' },
  { title: 'select (GET)', kind: calls.get },
  { title: 'select again (GET, 304 if unchanged)', kind: calls.revalidate },
  { title: 'indexed select (range of 20)', kind: calls.range(20), published: '128/s, 7 ms' },
  { title: 'range of 100', kind: calls.range(100) },
  { title: 'range of 1,000', kind: calls.range(1000) },
  { title: 'range of 1,000, gzip', kind: calls.gzipped(calls.range(1000)) },
  { title: 'select of ten keys', kind: calls.hotGet, published: '7 ms without a cache, 5 with' },
  { title: 'the same, a tenth of them puts', kind: HOT_90_10 },
  { title: 'put (PUT)', kind: calls.put },
  { title: 'update (PUT, If-Match)', kind: calls.update, published: '187/s' },
  { title: 'delete (DELETE)', kind: calls.remove, published: '184/s' },
  { title: 'transaction (3 sets and a delete)', kind: calls.transaction, published: '60/s, 16 ms' },
];

/** The same of servers with a collection: an object has none, as its store is synchronous. */
export const FIND: readonly Work[] = [
  { title: 'find 20 documents by an index', kind: calls.find(20, 'index'), published: '128/s, 7 ms' },
  { title: 'the same 20 by a scan of all', kind: calls.find(20, 'scan'), published: 'index 45x a scan' },
];

export const BATCH: readonly Work[] = [
  { title: 'gets, one a request', kind: calls.get },
  { title: 'sets, one a request', kind: calls.put },
  ...[10, 100].flatMap((size) => [
    { title: `${size} gets`, kind: calls.batchGet(size), ...(size === 10 ? { published: '140/s, 7 ms' } : {}) },
    { title: `${size} sets`, kind: calls.batchSet(size) },
    { title: `${size} sets, atomic`, kind: calls.batchSet(size, true) },
  ]),
];

const MIX_80_20: calls.Kind = calls.mix([
  [80, calls.get],
  [20, calls.put],
]);

/** The mix of a document store's load test: insert, batch insert, get by id, update, find, delete. */
export const CRUD: calls.Kind = calls.mix([
  [15, calls.insert],
  [5, calls.batchSet(10)],
  [40, calls.get],
  [20, calls.update],
  [15, calls.range(20)],
  [5, calls.remove],
]);

export interface Phase extends Work {
  readonly connections: number;
  /** Seconds, or requests where the phase is so many of them; in the full mode. */
  readonly seconds?: number;
  readonly requests?: number;
  /** At a fixed rate: this share of what the phase before reached in its closed loop. */
  readonly openShare?: number;
  /** Of servers of several levels: without a floor. */
  readonly isOfLevel?: true;
}

const RAMP: readonly number[] = [10, 25, 50, 100];

/** `http-load`: the published load tests, S1 and then S4. */
export const LOAD: readonly Phase[] = [
  { title: '10,000 health', kind: calls.health, connections: 50, requests: 10_000 },
  { title: '5,000 queries (range of 20)', kind: calls.range(20), connections: 25, requests: 5000 },
  { title: '80/20 mix', kind: MIX_80_20, connections: 50, seconds: 30 },
  ...RAMP.map((connections) => ({ title: 'ramp, 80/20 mix', kind: MIX_80_20, connections, seconds: 5 })),
  { title: '100 clients, CRUD mix', kind: CRUD, connections: 100, seconds: 30 },
  { title: '100 clients, CRUD mix', kind: CRUD, connections: 100, seconds: 30, openShare: 0.5 },
];

/**
 * `durability`: the mix at each level, on a server of its own, beside the published load test by level: 100 clients, 1 min 45 s.
 */
export const LEVEL: Phase = {
  ...{ title: 'CRUD mix over HTTP', kind: CRUD, connections: 100, seconds: 105, isOfLevel: true },
  published: 'memory 1,585/s, p95 1.82 s, no errors; OS cache and full fsync 795/s, p95 1.35 s, 1.1% errors',
};
