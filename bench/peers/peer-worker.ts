/**
 * The worker behind a peer that the page calls (engines/remote.ts): holds one store and makes the calls that it is sent,
 * one after the other.
 *
 * Invariant: the next call is begun when the one before is answered, so that calls take effect in the order of their
 * messages, whether the store answers at once or later.
 */

import type { BatchEntries, PointCall, Session, SessionOptions } from '../core/engine.ts';
import type { Key } from '../core/generator.ts';
import { type Answer, callsOf, pack, type Reply, type Request, unpack } from './remote-protocol.ts';
import { openSqliteWasm } from './sqlite-wasm.ts';
import { openWaSqlite } from './wa-sqlite.ts';

type Values = readonly (Uint8Array | undefined)[];

/** A session that takes many calls as one, as each of these does. */
type Served = Session & {
  wave(calls: readonly PointCall[]): Values | Promise<Values>;
  transact(entries: BatchEntries): Values | Promise<Values>;
  deleteRange(from: Key, to: Key): unknown;
};

const PEERS: Readonly<Record<string, (name: string, options: SessionOptions) => Promise<Served>>> = {
  'sqlite-wasm': openSqliteWasm,
  'wa-sqlite': openWaSqlite,
};

const scope = self as unknown as DedicatedWorkerGlobalScope;
let session: Served | undefined;

function opened(): Served {
  if (session === undefined) throw new Error('The store was called before it was opened.');
  return session;
}

async function open({ peer, name, options }: Request & { type: 'open' }): Promise<Answer> {
  const opener = PEERS[peer];
  if (opener === undefined) throw new Error(`There is no peer "${peer}" in the worker of the peers.`);
  session = await opener(name, options);
  return {};
}

async function range({ from, limit }: Request & { type: 'range' }): Promise<Answer> {
  const keys: Key[] = [];
  const values: Uint8Array[] = [];
  const sink = {
    take(key: Key, value: Uint8Array): void {
      keys.push(key);
      values.push(value);
    },
  };
  await opened().range(from, limit, sink);
  return { keys, values: pack(values) };
}

async function make(request: Request): Promise<Answer> {
  switch (request.type) {
    case 'open':
      return open(request);
    case 'set':
      await opened().set(request.key, request.value);
      return {};
    case 'get':
      return { value: await opened().get(request.key) };
    case 'delete':
      await opened().delete(request.key);
      return {};
    case 'deleteRange':
      await opened().deleteRange(request.from, request.to);
      return {};
    case 'batch':
      await opened().batch({ keys: request.keys, values: unpack(request.values) as Uint8Array[] });
      return {};
    case 'transact': {
      const values = unpack(request.values) as Uint8Array[];
      return { values: pack(await opened().transact({ keys: request.keys, values })) };
    }
    case 'range':
      return range(request);
    case 'wave':
      return { values: pack(await opened().wave(callsOf(request.keys, request.values))) };
    case 'settle':
      return { settled: await opened().settle(request.where, request.entries) };
    case 'close':
      await opened().close();
      return {};
  }
}

function post(reply: Reply): void {
  const transfer = 'values' in reply && reply.values !== undefined ? [reply.values.bytes.buffer] : [];
  scope.postMessage(reply, transfer);
}

let last: Promise<void> = Promise.resolve();

scope.onmessage = ({ data }: MessageEvent<Request>) => {
  last = last.then(async () => {
    try {
      post({ id: data.id, ...(await make(data)) });
    } catch (error) {
      post({ id: data.id, error: error instanceof Error ? error.message : String(error) });
    }
  });
};
