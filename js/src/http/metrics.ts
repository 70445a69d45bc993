/**
 * Counts requests, and writes these counts and the store's own numbers in the text format of Prometheus (version 0.0.4).
 *
 * Invariant: labels come from short fixed lists, whatever clients send.
 */

import type { StoreStats } from '../types.ts';

/** Seconds. */
const BUCKETS = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5] as const;
const METHODS = ['GET', 'HEAD', 'PUT', 'POST', 'DELETE', 'OPTIONS'];

/** The content type of a page of metrics. */
export const METRICS_TYPE = 'text/plain; version=0.0.4; charset=utf-8';

type Kind = 'gauge' | 'counter';
type NumberOf = (stats: StoreStats) => number;

/** The store's numbers that are shown: value, name, kind and help of each. Counts start at 0 when the store is opened. */
const STORE_METRICS: readonly (readonly [NumberOf, string, Kind, string])[] = [
  [({ sequence }) => sequence, 'sequence', 'gauge', 'Sequence of the last write.'],
  [({ memtable }) => memtable.entries, 'memtable_entries', 'gauge', 'Entries in the active memtable.'],
  [({ memtable }) => memtable.bytes, 'memtable_bytes', 'gauge', 'Bytes of the active memtable.'],
  [({ memtable }) => memtable.frozen, 'frozen_memtables', 'gauge', 'Memtables waiting for their flush.'],
  [({ log }) => log.segments, 'log_segments', 'gauge', 'Segments of the log.'],
  [({ log }) => log.writtenBytes, 'log_bytes_total', 'counter', 'Bytes logged.'],
  [({ log }) => log.syncs, 'log_syncs_total', 'counter', 'Flushes of the log to the disk.'],
  [({ writes }) => writes, 'writes_total', 'counter', 'Writes.'],
  [({ cache }) => cache.bytes, 'cache_bytes', 'gauge', 'Blocks of tables kept in memory.'],
  [({ cache }) => cache.hits, 'cache_hits_total', 'counter', 'Blocks found in memory.'],
  [({ cache }) => cache.misses, 'cache_misses_total', 'counter', 'Blocks read.'],
  [({ cache }) => cache.filterChecks, 'filter_checks_total', 'counter', 'Filters of tables that gets asked.'],
  [
    ({ cache }) => cache.filterNegatives,
    'filter_negatives_total',
    'counter',
    'Filters that saved a look into their table.',
  ],
  [({ cache }) => cache.indexBytes, 'index_bytes', 'gauge', 'Indexes and filters of open tables.'],
  [
    ({ memoryBytes }) => memoryBytes,
    'memory_bytes_max',
    'gauge',
    'Bound of memtables, cache and open tables together.',
  ],
  [({ flush }) => flush.count, 'flushes_total', 'counter', 'Memtables flushed to tables.'],
  [({ flush }) => flush.writtenBytes, 'flush_bytes_total', 'counter', 'Bytes flushed to tables.'],
  [({ compaction }) => compaction.count, 'compactions_total', 'counter', 'Compactions.'],
  [({ compaction }) => compaction.readBytes, 'compaction_read_bytes_total', 'counter', 'Bytes that compactions read.'],
  [
    ({ compaction }) => compaction.writtenBytes,
    'compaction_written_bytes_total',
    'counter',
    'Bytes that compactions wrote.',
  ],
  [
    ({ compaction }) => compaction.writeAmplification,
    'write_amplification',
    'gauge',
    'Bytes written to tables for each byte flushed to one.',
  ],
  [({ stalled }) => Number(stalled), 'stalled', 'gauge', '1 while writers wait.'],
  [({ disk }) => disk.bytes, 'disk_bytes', 'gauge', 'Bytes of the store on disk.'],
  [({ scans }) => scans, 'scans', 'gauge', 'Scans that are open.'],
  [({ snapshots }) => snapshots, 'snapshots', 'gauge', 'Snapshots that are open.'],
  [({ snapshotAge = 0 }) => snapshotAge / 1000, 'snapshot_age_seconds', 'gauge', 'Age of the oldest snapshot.'],
];

interface Timing {
  readonly buckets: number[];
  seconds: number;
  count: number;
}

/** The counts of one handler. */
export class Metrics {
  readonly #requests = new Map<string, number>();
  readonly #failures = new Map<string, number>();
  readonly #timings = new Map<string, Timing>();
  /** Requests in progress. */
  inFlight = 0;

  /** Counts one response. `route` is from a fixed list; `seconds` is the time until the head of the response was ready. */
  note(route: string, method: string, status: number, seconds: number): void {
    countOne(
      this.#requests,
      `route="${route}",method="${METHODS.includes(method) ? method : 'other'}",status="${status}"`,
    );
    let timing = this.#timings.get(route);
    if (timing === undefined) {
      timing = { buckets: BUCKETS.map(() => 0), seconds: 0, count: 0 };
      this.#timings.set(route, timing);
    }
    timing.seconds += seconds;
    timing.count++;
    for (const [i, bound] of BUCKETS.entries()) if (seconds <= bound) timing.buckets[i]!++;
  }

  /** Counts an error inside of a response: of an operation of a batch, or of a stream. */
  noteFailure(route: string, status: number): void {
    countOne(this.#failures, `route="${route}",status="${status}"`);
  }

  /** Everything as text. */
  text(store = '', stats?: StoreStats): string {
    return [...this.#ownLines(), ...(stats === undefined ? [] : storeLines(store, stats)), ''].join('\n');
  }

  #ownLines(): string[] {
    const requests = 'varve_http_requests_total';
    const failures = 'varve_http_failures_total';
    const duration = 'varve_http_request_duration_seconds';
    const inFlight = 'varve_http_requests_in_flight';
    const lines = head(requests, 'counter', 'Requests answered.');
    for (const [labels, count] of this.#requests) lines.push(`${requests}{${labels}} ${count}`);
    lines.push(...head(failures, 'counter', 'Operations of batches, and streams, that failed.'));
    for (const [labels, count] of this.#failures) lines.push(`${failures}{${labels}} ${count}`);
    lines.push(...head(inFlight, 'gauge', 'Requests being answered.'), `${inFlight} ${this.inFlight}`);
    lines.push(...head(duration, 'histogram', 'Time until the head of the answer.'));
    for (const [route, { buckets, seconds, count }] of this.#timings) {
      const label = `route="${route}"`;
      for (const [i, bound] of BUCKETS.entries()) {
        lines.push(`${duration}_bucket{${label},le="${bound}"} ${buckets[i]}`);
      }
      lines.push(`${duration}_bucket{${label},le="+Inf"} ${count}`);
      lines.push(`${duration}_sum{${label}} ${seconds}`, `${duration}_count{${label}} ${count}`);
    }
    return lines;
  }
}

function countOne(counts: Map<string, number>, labels: string): void {
  counts.set(labels, (counts.get(labels) ?? 0) + 1);
}

function storeLines(store: string, stats: StoreStats): string[] {
  const label = `store="${store.replaceAll(/["\\]/g, '\\$&').replaceAll('\n', '\\n')}"`;
  const lines: string[] = [];
  for (const [numberOf, name, kind, help] of STORE_METRICS) {
    lines.push(...head(`varve_${name}`, kind, help), `varve_${name}{${label}} ${numberOf(stats)}`);
  }
  const levels: readonly ['tables' | 'bytes', string][] = [
    ['tables', 'Tables of a level.'],
    ['bytes', 'Bytes of the tables of a level.'],
  ];
  for (const [stat, help] of levels) {
    const name = `varve_level_${stat}`;
    lines.push(...head(name, 'gauge', help));
    for (const [level, numbers] of stats.levels.entries()) {
      lines.push(`${name}{${label},level="${level}"} ${numbers[stat]}`);
    }
  }
  return lines;
}

function head(name: string, kind: Kind | 'histogram', help: string): string[] {
  return [`# HELP ${name} ${help}`, `# TYPE ${name} ${kind}`];
}
