/**
 * The store of a peer that only works in workers, called from the page: one message for each call and one for its response, as
 * an application would write it. (SQLite's own "Worker1" is "relatively limited" by its documentation
 * (sqlite.org/wasm/doc/trunk/api-worker1.md): it has no prepared statements and no transaction over calls, so it is slower.)
 *
 * Invariant: responses come in the order of the calls. A worker that fails rejects all waiting and later calls. Values that
 * travel together are in one buffer, which is transferred: cloning hundreds of small arrays would cost more than storing them.
 */

import type { AsyncSession, SessionOptions } from '../core/engine.ts';
import type { Key } from '../core/generator.ts';

/** Values one behind the other. A length below 0 stands for no value, or for a delete. */
export interface PackedValues {
  readonly bytes: Uint8Array<ArrayBuffer>;
  readonly lengths: Int32Array;
}

/** A call of a session by the name of its method. */
export type Request = readonly [method: string, ...args: unknown[]];
export type Reply = { readonly result: unknown } | { readonly error: string };

const NONE = -1;
const DELETE = -2;

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

/** Views of the buffer; undefined for no value, null for a delete. */
export function unpack({ bytes, lengths }: PackedValues): (Uint8Array | undefined | null)[] {
  let at = 0;
  return Array.from(lengths, (length) => {
    if (length < 0) return length === DELETE ? null : undefined;
    const value = bytes.subarray(at, at + length);
    at += length;
    return value;
  });
}

export function transferOf(parts: readonly unknown[]): Transferable[] {
  return parts.flatMap((part) =>
    part instanceof Object && 'lengths' in part ? (part as PackedValues).bytes.buffer : [],
  );
}

type Call = (method: string, ...args: unknown[]) => Promise<unknown>;

function callerOf(worker: Worker): Call {
  const waiting: { resolve(result: unknown): void; reject(error: Error): void }[] = [];
  let failed: Error | undefined;
  worker.onmessage = ({ data }: MessageEvent<Reply>) => {
    const caller = waiting.shift();
    if ('result' in data) caller?.resolve(data.result);
    else caller?.reject(new Error(data.error));
  };
  worker.onerror = ({ message }) => {
    failed = new Error(`The worker of the peer failed: ${message}`);
    for (const { reject } of waiting.splice(0)) reject(failed);
  };
  return (...request) =>
    new Promise((resolve, reject) => {
      if (failed !== undefined) return reject(failed);
      waiting.push({ resolve, reject });
      worker.postMessage(request satisfies Request, transferOf(request));
    });
}

const valuesOf = async (packed: Promise<unknown>): Promise<(Uint8Array | undefined)[]> =>
  unpack((await packed) as PackedValues).map((value) => value ?? undefined);

/** Opens the store `name` of `peer` in a worker of its own. */
export async function openRemote(peer: string, name: string, options: SessionOptions): Promise<AsyncSession> {
  const worker = new Worker(new URL('./peer-worker.js', import.meta.url), { type: 'module', name });
  const call = callerOf(worker);
  await call('open', peer, name, options).catch((error) => {
    worker.terminate();
    throw error;
  });
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
    wave: (calls) => {
      const keys = calls.map(({ key }) => key);
      return valuesOf(call('wave', keys, pack(calls.map(({ value }) => value))));
    },
    settle: (where, entries) => call('settle', where, entries) as Promise<boolean>,
    close: () => call('close').then(() => worker.terminate()),
  };
}
