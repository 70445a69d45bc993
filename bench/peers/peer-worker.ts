/** The worker behind a peer that the page calls (remote.ts): has one store open and makes the calls that it receives, in their order. */

import { createBirpc } from 'birpc';
import type { PointCall } from '../core/engine.ts';
import type { Key } from '../core/generator.ts';
import { overPort, type PeerCalls, pack, unpack } from './remote.ts';
import { openSqliteWasm } from './sqlite-wasm.ts';
import { openWaSqlite } from './wa-sqlite.ts';

let opened: Awaited<ReturnType<typeof openSqliteWasm | typeof openWaSqlite>> | undefined;

function store(): NonNullable<typeof opened> {
  if (opened === undefined) throw new Error('The store is not open yet.');
  return opened;
}

const calls: PeerCalls = {
  open: async (peer, name, options) => {
    opened = await (peer === 'wa-sqlite' ? openWaSqlite : openSqliteWasm)(name, options);
  },
  set: (key, value) => store().set(key, value),
  get: (key) => store().get(key),
  delete: (key) => store().delete(key),
  deleteRange: (from, to) => store().deleteRange(from, to),
  range: async (from, limit) => {
    const [keys, values]: [Key[], Uint8Array[]] = [[], []];
    await store().range(from, limit, { take: (key, value) => void (keys.push(key) + values.push(value)) });
    return [keys, pack(values)];
  },
  wave: async (keys, packed) =>
    pack(await store().wave(unpack(packed).map((value, i): PointCall => ({ key: keys[i] as Key, value })))),
  settle: (where, entries) => store().settle(where, entries),
  close: () => store().close(),
};

createBirpc<object, PeerCalls>(calls, overPort(self as unknown as DedicatedWorkerGlobalScope));
