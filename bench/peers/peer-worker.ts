/**
 * The worker behind a peer that the page calls (remote.ts): has one store open and makes the calls that it receives.
 *
 * Invariant: a call begins after the response to the call before, so calls take effect in the order of their messages.
 */

import type { Place, PointCall, SessionOptions } from '../core/engine.ts';
import type { Key } from '../core/generator.ts';
import { type PackedValues, pack, type Reply, type Request, transferOf, unpack } from './remote.ts';
import type { SqlSession } from './sql-session.ts';
import { openSqliteWasm } from './sqlite-wasm.ts';
import { openWaSqlite, type ServedSession } from './wa-sqlite.ts';

const entriesOf = (keys: Key[], packed: PackedValues): { keys: Key[]; values: Uint8Array[] } => ({
  keys,
  values: unpack(packed) as Uint8Array[],
});

/** The calls of an open store, by the names of its methods. */
const callsOf = (store: SqlSession | ServedSession) => ({
  set: (key: Key, value: Uint8Array) => store.set(key, value),
  get: (key: Key) => store.get(key),
  delete: (key: Key) => store.delete(key),
  deleteRange: (from: Key, to: Key) => store.deleteRange(from, to),
  batch: (keys: Key[], packed: PackedValues) => store.batch(entriesOf(keys, packed)),
  transact: async (keys: Key[], packed: PackedValues) => pack(await store.transact(entriesOf(keys, packed))),
  range: async (from: Key | undefined, limit: number) => {
    const [keys, values]: [Key[], Uint8Array[]] = [[], []];
    await store.range(from, limit, { take: (key, value) => void (keys.push(key) + values.push(value)) });
    return [keys, pack(values)];
  },
  wave: async (keys: Key[], packed: PackedValues) =>
    pack(await store.wave(unpack(packed).map((value, i): PointCall => ({ key: keys[i] as Key, value })))),
  settle: (where: Place, entries: number) => store.settle(where, entries),
  close: () => store.close(),
});

/** At first a store can only be opened. */
let calls: Readonly<Record<string, (...args: never[]) => unknown>> = {
  open: async (peer: string, name: string, options: SessionOptions) => {
    calls = callsOf(await (peer === 'wa-sqlite' ? openWaSqlite : openSqliteWasm)(name, options));
  },
};
let last: Promise<void> = Promise.resolve();

async function replyTo([method, ...args]: Request): Promise<Reply> {
  try {
    const call = calls[method];
    if (call === undefined) throw new Error(`The store has no ${method}, or is not open yet.`);
    return { result: await call(...(args as never[])) };
  } catch (error) {
    return { error: error instanceof Error ? error.message : String(error) };
  }
}

self.onmessage = ({ data }: MessageEvent<Request>) => {
  last = last.then(async () => {
    const reply = await replyTo(data);
    postMessage(reply, { transfer: transferOf('result' in reply ? [reply.result].flat() : []) });
  });
};
