/**
 * The worker behind a peer that the page calls (remote.ts): holds one store and makes the calls that it is sent.
 *
 * Invariant: the next call is begun when the one before is answered, so that calls take effect in the order of their
 * messages, whether the store answers at once or later.
 */

import type { Place, PointCall, SessionOptions } from '../core/engine.ts';
import type { Key } from '../core/generator.ts';
import { handedOver, type PackedValues, pack, type Reply, type Request, unpack } from './remote.ts';
import { openSqliteWasm } from './sqlite-wasm.ts';
import type { SqliteWasmSession } from './sqlite-wasm-session.ts';
import { openWaSqlite, type ServedSession } from './wa-sqlite.ts';

type Served = SqliteWasmSession | ServedSession;

const PEERS: Readonly<Record<string, (name: string, options: SessionOptions) => Promise<Served>>> = {
  'sqlite-wasm': openSqliteWasm,
  'wa-sqlite': openWaSqlite,
};

const entriesOf = (keys: Key[], packed: PackedValues): { keys: Key[]; values: Uint8Array[] } => ({
  keys,
  values: unpack(packed) as Uint8Array[],
});

/** The calls of an opened store, by the names of its methods. */
const callsOf = (store: Served) => ({
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

type Calls = Readonly<Record<string, (...args: never[]) => unknown>>;

/** At first a store can only be opened. */
let calls: Calls = {
  open: async (peer: string, name: string, options: SessionOptions) => {
    const opener = PEERS[peer];
    if (opener === undefined) throw new Error(`There is no peer "${peer}" in the worker of the peers.`);
    calls = callsOf(await opener(name, options));
  },
};
let last: Promise<void> = Promise.resolve();

async function answer({ id, method, args }: Request): Promise<Reply> {
  try {
    const call = calls[method];
    if (call === undefined) throw new Error(`The store has no ${method}, or is not open yet.`);
    return { id, result: await call(...(args as never[])) };
  } catch (error) {
    return { id, error: error instanceof Error ? error.message : String(error) };
  }
}

self.onmessage = ({ data }: MessageEvent<Request>) => {
  last = last.then(async () => {
    const reply = await answer(data);
    const { result } = reply;
    postMessage(reply, { transfer: handedOver(Array.isArray(result) ? result : [result]) });
  });
};
