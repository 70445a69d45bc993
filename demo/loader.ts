// Loads cities.tsv into the store: a stream of lines, a thousand rows to a batch.
// Invariant: how far the file was read is part of every batch, so that loading continues where it stopped, whatever
// stopped it; everything reported as stored has been acknowledged.

import { type City, parseCity } from './city.ts';
import type { Gazetteer } from './gazetteer.ts';

const BATCH_ROWS = 1000;

export interface LoadState {
  /** Rows in the store, those of earlier visits included. */
  readonly rows: number;
  readonly rowsPerSecond: number;
  /** Bytes of the file whose rows are in the store. */
  readonly bytes: number;
  /** Bytes of the whole file; 0 when the server does not report it. */
  readonly bytesTotal: number;
  readonly elapsedMs: number;
}

export interface LoadOptions {
  /** Rows to stop at. */
  readonly limit: number;
  /** Called after each batch, with the cities it stored. */
  readonly onBatch: (state: LoadState, cities: readonly City[]) => void;
  readonly signal: AbortSignal;
}

/** Loads the rows that are not loaded yet; resolves with the last state. */
export async function load(gazetteer: Gazetteer, url: string, options: LoadOptions): Promise<LoadState> {
  const { limit, onBatch, signal } = options;
  const start = performance.now();
  const rowsBefore = gazetteer.progress.rows;
  const { body, bytesTotal } = await request(url, signal);

  let state: LoadState = { rows: rowsBefore, rowsPerSecond: 0, bytes: 0, bytesTotal, elapsedMs: 0 };
  const store = async (cities: readonly City[], rows: number, bytes: number, isComplete: boolean): Promise<void> => {
    await gazetteer.load(cities, { rows, isComplete, atMs: Date.now() });
    const elapsedMs = performance.now() - start;
    const rowsPerSecond = ((rows - rowsBefore) / Math.max(1, elapsedMs)) * 1000;
    state = { rows, rowsPerSecond, bytes, bytesTotal, elapsedMs };
    onBatch(state, cities);
  };

  let rows = 0;
  let bytes = 0;
  let batch: City[] = [];
  let stored: Promise<void> = Promise.resolve();
  for await (const lines of linesOf(body)) {
    for (const line of lines) {
      if (rows === limit) break;
      rows += 1;
      bytes += line.bytes;
      if (rows > rowsBefore) batch.push(parseCity(line.text));
      if (batch.length < BATCH_ROWS) continue;
      // The next batch is parsed while this one is stored.
      await stored;
      signal.throwIfAborted();
      stored = store(batch, rows, bytes, false);
      stored.catch(() => undefined);
      batch = [];
    }
    if (rows === limit) break;
  }
  await stored;
  await store(batch, rows, bytes, rows < limit);
  return state;
}

async function request(url: string, signal: AbortSignal): Promise<{ body: ReadableStream; bytesTotal: number }> {
  const response = await fetch(url, { signal });
  if (!response.ok || response.body === null) {
    throw new Error(`The file of cities could not be fetched: the server answered ${response.status}.`);
  }
  const isPacked = response.headers.has('Content-Encoding');
  return { body: response.body, bytesTotal: isPacked ? 0 : Number(response.headers.get('Content-Length') ?? 0) };
}

interface Line {
  readonly text: string;
  /** Bytes it takes in the file, its end included. */
  readonly bytes: number;
}

/** The whole lines of a stream, as they arrive. */
async function* linesOf(body: ReadableStream<Uint8Array>): AsyncGenerator<Line[]> {
  const reader = body.getReader();
  const decoder = new TextDecoder();
  let rest = new Uint8Array(0);
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      const chunk = new Uint8Array(rest.length + value.length);
      chunk.set(rest);
      chunk.set(value, rest.length);
      const ends: number[] = [];
      for (let end = chunk.indexOf(10); end >= 0; end = chunk.indexOf(10, end + 1)) ends.push(end);
      const end = (ends.at(-1) ?? -1) + 1;
      // Decoded all at once: a call for each line would cost more than the rest of the work.
      const texts = decoder.decode(chunk.subarray(0, end)).split('\n');
      const lines = ends.map((at, i): Line => ({ text: texts[i] as string, bytes: at - (ends[i - 1] ?? -1) }));
      rest = chunk.slice(end);
      yield lines;
    }
  } finally {
    await reader.cancel();
  }
}
