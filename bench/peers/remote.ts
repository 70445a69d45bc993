/**
 * The store of a peer that lives in workers only, called from the page: one message for each call and one for its answer, as
 * an application would write it. (SQLite comes with such a worker, "Worker1" with its promiser, by its own words relatively
 * limited (sqlite.org/wasm/doc/trunk/api-worker1.md): it has no statements that stay prepared, and no transaction over calls,
 * so it would be slower.)
 *
 * Invariant: answers come in the order of the calls. A worker that fails rejects every call that waits, and all after it.
 * Values that travel together lie in one buffer, which is transferred: cloning hundreds of small arrays would cost more than
 * storing them.
 */

import type { AsyncSession, SessionOptions } from '../core/engine.ts';
import type { Key } from '../core/generator.ts';

/** Values one behind the other. A length below 0: no value, but what a PointCall has in its place. */
export interface PackedValues {
  readonly bytes: Uint8Array<ArrayBuffer>;
  readonly lengths: Int32Array;
}

/** A call of a session by the name of its method. */
export interface Request {
  readonly id: number;
  readonly method: string;
  readonly args: readonly unknown[];
}

export interface Reply {
  readonly id: number;
  readonly result?: unknown;
  readonly error?: string;
}

const NONE = -1;
const DELETE = -2;

/** Puts values into one buffer. */
export function pack(values: readonly (Uint8Array | undefined | null)[]): PackedValues {
  const lengths = Int32Array.from(values, (value) => value?.length ?? (value === null ? DELETE : NONE));
  const bytes = new Uint8Array(lengths.reduce((sum, length) => sum + Math.max(length, 0), 0));
  let at = 0;
  for (const value of values) {
    if (!value) continue;
    bytes.set(value, at);
    at += value.length;
  }
  return { bytes, lengths };
}

/** The values of a buffer, each a view of it; undefined where there is none, null where a delete was. */
export function unpack({ bytes, lengths }: PackedValues): (Uint8Array | undefined | null)[] {
  let at = 0;
  return Array.from(lengths, (length) => {
    if (length < 0) return length === DELETE ? null : undefined;
    const value = bytes.subarray(at, at + length);
    at += length;
    return value;
  });
}

/** The buffers that a message hands over. */
export function handedOver(parts: readonly unknown[]): Transferable[] {
  const packed = parts.filter(
    (part): part is PackedValues => typeof part === 'object' && part !== null && 'lengths' in part,
  );
  return packed.map(({ bytes }) => bytes.buffer);
}

type Call = (method: string, ...args: unknown[]) => Promise<unknown>;

/** Calls what listens in a worker. */
function callerOf(worker: Worker): Call {
  const waiting = new Map<number, { resolve(result: unknown): void; reject(error: Error): void }>();
  let [next, failed] = [0, undefined as Error | undefined];
  worker.onmessage = ({ data: { id, result, error } }: MessageEvent<Reply>) => {
    const caller = waiting.get(id);
    waiting.delete(id);
    if (error === undefined) caller?.resolve(result);
    else caller?.reject(new Error(error));
  };
  worker.onerror = ({ message }) => {
    failed = new Error(`The worker of the peer failed: ${message}`);
    for (const { reject } of waiting.values()) reject(failed);
    waiting.clear();
  };
  return (method, ...args) => {
    if (failed !== undefined) return Promise.reject(failed);
    const request: Request = { id: next++, method, args };
    return new Promise((resolve, reject) => {
      waiting.set(request.id, { resolve, reject });
      worker.postMessage(request, handedOver(args));
    });
  };
}

const valuesOf = async (packed: Promise<unknown>): Promise<(Uint8Array | undefined)[]> =>
  unpack((await packed) as PackedValues).map((value) => value ?? undefined);

/** Opens the store `name` of `peer` in a worker of its own. */
export async function openRemote(peer: string, name: string, options: SessionOptions): Promise<AsyncSession> {
  const worker = new Worker(new URL('./peer-worker.js', import.meta.url), { type: 'module', name });
  const call = callerOf(worker);
  try {
    await call('open', peer, name, options);
  } catch (error) {
    worker.terminate();
    throw error;
  }
  return {
    kind: 'async',
    set: (key, value) => call('set', key, value),
    get: (key) => call('get', key) as Promise<Uint8Array | undefined>,
    delete: (key) => call('delete', key),
    deleteRange: (from, to) => call('deleteRange', from, to),
    batch: ({ keys, values }) => call('batch', keys, pack(values)),
    transact: ({ keys, values }) => valuesOf(call('transact', keys, pack(values))),
    range: async (from, limit, sink) => {
      const [keys, packed] = (await call('range', from, limit)) as [Key[], PackedValues];
      for (const [i, value] of unpack(packed).entries()) sink.take(keys[i] as Key, value as Uint8Array);
    },
    wave: (calls) =>
      valuesOf(
        call(
          'wave',
          calls.map(({ key }) => key),
          pack(calls.map(({ value }) => value)),
        ),
      ),
    settle: (where, entries) => call('settle', where, entries) as Promise<boolean>,
    close: () => call('close').then(() => worker.terminate()),
  };
}
