/**
 * The store of a peer that only works in workers, called from the page: one message for each call and one for its response, as
 * an application would write it. (SQLite's own "Worker1" is "relatively limited" by its documentation
 * (sqlite.org/wasm/doc/trunk/api-worker1.md): it has no prepared statements and no transaction over calls, so it is slower.)
 *
 * Invariant: values that travel together are in one buffer, which is transferred: cloning hundreds of small arrays would cost
 * more than storing them. A worker that fails rejects all waiting and later calls.
 */

import { createBirpc } from 'birpc';
import type { AsyncSession, Place, PointCall, SessionOptions } from '../core/engine.ts';
import type { Key } from '../core/generator.ts';
import { getsThenSets, setsOf } from './runs.ts';

/** Values one behind the other. A length below 0 stands for no value, or for a delete. */
export interface PackedValues {
  readonly bytes: Uint8Array<ArrayBuffer>;
  readonly lengths: Int32Array;
}

export interface PeerCalls {
  open(peer: string, name: string, options: SessionOptions): unknown;
  set(key: Key, value: Uint8Array): unknown;
  get(key: Key): Uint8Array | undefined | Promise<Uint8Array | undefined>;
  delete(key: Key): unknown;
  deleteRange(from: Key, to: Key): unknown;
  range(from: Key | undefined, limit: number): Promise<[keys: Key[], values: PackedValues]>;
  wave(keys: Key[], values: PackedValues): Promise<PackedValues>;
  settle(where: Place, entries: number): Promise<boolean>;
  close(): Promise<void>;
}

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

type Message = { readonly a?: readonly unknown[]; readonly r?: unknown };

export const overPort = (port: Worker | DedicatedWorkerGlobalScope) => ({
  timeout: -1,
  post: (message: Message) => {
    const parts = [message.a, message.r].flat() as (Partial<PackedValues> | undefined)[];
    const transfer = parts.flatMap((part) => (part?.lengths && part.bytes ? part.bytes.buffer : []));
    port.postMessage(message, { transfer });
  },
  on: (take: (message: Message) => void) => {
    port.onmessage = ({ data }: MessageEvent<Message>) => take(data);
  },
});

export async function openRemote(peer: string, name: string, options: SessionOptions): Promise<AsyncSession> {
  const worker = new Worker(new URL('./peer-worker.js', import.meta.url), { type: 'module', name });
  const calls = createBirpc<PeerCalls>({}, overPort(worker));
  worker.onerror = ({ message }) => calls.$close(new Error(`The worker of the peer failed: ${message}`));
  await calls.open(peer, name, options).catch((error) => {
    worker.terminate();
    throw error;
  });
  const wave = async (points: readonly PointCall[]): Promise<(Uint8Array | undefined)[]> => {
    const keys = points.map(({ key }) => key);
    const values = await calls.wave(keys, pack(points.map(({ value }) => value)));
    return unpack(values).map((value) => value ?? undefined);
  };
  return {
    kind: 'async',
    set: (key, value) => calls.set(key, value),
    get: (key) => calls.get(key),
    delete: (key) => calls.delete(key),
    deleteRange: (from, to) => calls.deleteRange(from, to),
    batch: (entries) => wave(setsOf(entries)),
    transact: async (entries) => (await wave(getsThenSets(entries))).slice(0, entries.keys.length),
    range: async (from, limit, sink) => {
      const [keys, packed] = await calls.range(from, limit);
      for (const [i, value] of unpack(packed).entries()) sink.take(keys[i] as Key, value as Uint8Array);
    },
    wave,
    settle: (where, entries) => calls.settle(where, entries),
    close: () => calls.close().then(() => worker.terminate()),
  };
}
