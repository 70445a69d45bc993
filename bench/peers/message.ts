/**
 * The floor from the page: the bytes of a call posted to a worker and as many posted back, and nothing else.
 *
 * This is no store. The worker (echo-worker.ts) answers a get with the bytes it was sent, so only counts and lengths are
 * checked. 100 calls in flight are one message each way. With `message-append` the worker appends written bytes to an OPFS
 * file before it answers: the least that a relaxed write needs. `open-floor` does when it opens what no store can do without: a
 * worker, the engine compiled, one file handle, one page read, written and flushed.
 *
 * A message is an ArrayBuffer, transferred both ways: u32 bytes to append, then per call the key and, if it is not a
 * delete, room for the value. An empty one ends the session.
 */

import { type AsyncSession, cannot, type Engine, type PointCall, type SessionOptions } from '../core/engine.ts';
import { KEY_CHARS } from '../core/generator.ts';
import type { EchoStart } from './echo-worker.ts';
import { engineOf } from './library.ts';
import { removeFloorFile } from './opfs.ts';
import { settled } from './runs.ts';

const HEADER_BYTES = 4;

function messageSession(worker: Worker, { valueBytes }: SessionOptions): AsyncSession {
  const waiting: ((reply: ArrayBuffer) => void)[] = [];
  worker.onmessage = ({ data }: MessageEvent<ArrayBuffer>) => waiting.shift()?.(data);
  const send = (bytes: ArrayBuffer): Promise<ArrayBuffer> =>
    new Promise((resolve) => {
      waiting.push(resolve);
      worker.postMessage(bytes, [bytes]);
    });
  const post = (calls: readonly PointCall[]): Promise<ArrayBuffer> => send(packed(calls, valueBytes));
  return {
    kind: 'async',
    set: (key, value) => post([{ key, value }]),
    delete: (key) => post([{ key, value: null }]),
    get: async (key) => new Uint8Array(await post([{ key, value: undefined }]), HEADER_BYTES + KEY_CHARS, valueBytes),
    batch: ({ keys, values }) => post(keys.map((key, i) => ({ key, value: values[i] as Uint8Array }))),
    range: async () => cannot('message', 'range'),
    wave: async (calls) => {
      const reply = await post(calls);
      let at = HEADER_BYTES;
      return calls.map(({ value }) => {
        at += KEY_CHARS;
        const delivered = value === undefined ? new Uint8Array(reply, at, valueBytes) : undefined;
        at += value === null ? 0 : valueBytes;
        return delivered;
      });
    },
    settle: settled,
    close: async () => {
      // The worker closes its file before it replies to an empty message.
      await send(new ArrayBuffer(0));
      worker.terminate();
    },
  };
}

function packed(calls: readonly PointCall[], valueBytes: number): ArrayBuffer {
  let bytes = HEADER_BYTES;
  for (const { value } of calls) bytes += KEY_CHARS + (value === null ? 0 : valueBytes);
  const message = new ArrayBuffer(bytes);
  const view = new Uint8Array(message);
  let at = HEADER_BYTES;
  let written = 0;
  for (const { key, value } of calls) {
    if (typeof key !== 'string') cannot('message', 'tuple');
    for (let i = 0; i < KEY_CHARS; i++) view[at + i] = key.charCodeAt(i);
    at += KEY_CHARS;
    if (value !== undefined) written += KEY_CHARS + (value?.length ?? 0);
    if (value) view.set(value, at);
    if (value !== null) at += valueBytes;
  }
  new DataView(message).setUint32(0, written, true);
  return message;
}

type Does = 'nothing' | 'appends' | 'opens';

function messageEngine(name: string, does: Does, about: string): Engine {
  const append = does !== 'nothing';
  const opens = does === 'opens';
  return engineOf({
    name,
    about,
    role: 'floor',
    accesses: opens ? ['page'] : ['page', 'inflight'],
    abilities: opens ? ['set', 'get', 'batch', 'open'] : ['set', 'get', 'mixed', 'delete', 'batch'],
    durabilities: append ? ['relaxed', 'strict'] : ['memory'],
    ...(does === 'appends' && { only: 'writes' as const }),
    ...(opens && { only: 'opens' as const }),
    echo: true,
    open(store, options) {
      const worker = new Worker(new URL('./echo-worker.js', import.meta.url), { type: 'module', name });
      return new Promise((resolve, reject) => {
        worker.onerror = (event) => reject(new Error(`The echo worker failed: ${event.message}`));
        worker.onmessage = () => resolve(messageSession(worker, options));
        const flush = options.durability === 'strict';
        worker.postMessage({ file: append ? store : undefined, flush, opens } satisfies EchoStart);
      });
    },
    remove: async (store) => (append ? removeFloorFile(store) : undefined),
  });
}

export const message = messageEngine(
  'message',
  'nothing',
  'A bare message round trip: the bytes of the call to a worker and back (lengths checked, nothing stored).',
);

export const messageAppend = messageEngine(
  'message-append',
  'appends',
  'The same round trip with one bare OPFS append in the worker for each message that writes.',
);

export const openFloor = messageEngine(
  'open-floor',
  'opens',
  'The least that an opening needs: a worker, the engine compiled, one file handle, a page read, written and flushed.',
);
