/**
 * The floor from the page: the bytes of a call posted to a worker and as many posted back, and nothing else.
 *
 * Invariant: this is no store. The worker (../echo-worker.ts) answers a get with the bytes it was sent, so only counts
 * and lengths are checked. 100 calls in flight travel joined, in one message each way. `message-append` has the worker
 * append what is written to an OPFS file before it answers: what a relaxed write cannot do without.
 *
 * A message is an ArrayBuffer, transferred both ways: u32 bytes to append, then per call the key and, if it is not a
 * delete, room for the value. An empty one ends the session.
 */

import {
  type AsyncSession,
  type BatchEntries,
  cannot,
  type Engine,
  type PointCall,
  type SessionOptions,
} from '../core/engine.ts';
import { KEY_CHARS, type Key } from '../core/generator.ts';
import type { EchoStart } from './echo-worker.ts';
import { removeFloorFile } from './floor-file.ts';

const HEADER_BYTES = 4;

class MessageSession implements AsyncSession {
  readonly kind = 'async';
  readonly #worker: Worker;
  readonly #valueBytes: number;
  /** Resolvers of what is under way: the worker answers in order. */
  readonly #waiting: ((reply: ArrayBuffer) => void)[] = [];

  constructor(worker: Worker, options: SessionOptions) {
    this.#worker = worker;
    this.#valueBytes = options.valueBytes;
    worker.onmessage = ({ data }: MessageEvent<ArrayBuffer>) => this.#waiting.shift()?.(data);
  }

  async set(key: Key, value: Uint8Array): Promise<void> {
    await this.#post([{ key, value }]);
  }

  async delete(key: Key): Promise<void> {
    await this.#post([{ key, value: null }]);
  }

  async get(key: Key): Promise<Uint8Array> {
    const reply = await this.#post([{ key, value: undefined }]);
    return new Uint8Array(reply, HEADER_BYTES + KEY_CHARS, this.#valueBytes);
  }

  async batch({ keys, values }: BatchEntries): Promise<void> {
    await this.#post(keys.map((key, i) => ({ key, value: values[i] as Uint8Array })));
  }

  async range(): Promise<void> {
    cannot('message', 'range');
  }

  async wave(calls: readonly PointCall[]): Promise<readonly (Uint8Array | undefined)[]> {
    const reply = await this.#post(calls);
    let at = HEADER_BYTES;
    return calls.map(({ value }) => {
      at += KEY_CHARS;
      const delivered = value === undefined ? new Uint8Array(reply, at, this.#valueBytes) : undefined;
      at += value === null ? 0 : this.#valueBytes;
      return delivered;
    });
  }

  async settle(): Promise<boolean> {
    // Nothing is kept.
    return true;
  }

  async close(): Promise<void> {
    // An empty message has the worker close its file; its reply comes when that is done.
    const message = new ArrayBuffer(0);
    await new Promise((resolve) => {
      this.#waiting.push(resolve);
      this.#worker.postMessage(message, [message]);
    });
    this.#worker.terminate();
  }

  #post(calls: readonly PointCall[]): Promise<ArrayBuffer> {
    const message = this.#pack(calls);
    return new Promise((resolve) => {
      this.#waiting.push(resolve);
      this.#worker.postMessage(message, [message]);
    });
  }

  #pack(calls: readonly PointCall[]): ArrayBuffer {
    let bytes = HEADER_BYTES;
    for (const { value } of calls) bytes += KEY_CHARS + (value === null ? 0 : this.#valueBytes);
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
      if (value !== null) at += this.#valueBytes;
    }
    new DataView(message).setUint32(0, written, true);
    return message;
  }
}

function messageEngine(name: string, about: string, append: boolean): Engine {
  return {
    name,
    about,
    role: 'floor',
    accesses: ['page', 'inflight'],
    abilities: ['set', 'get', 'mixed', 'delete', 'batch'],
    durabilities: append ? ['relaxed', 'strict'] : ['memory'],
    ...(append && { only: 'writes' as const }),
    echo: true,
    open(store, options) {
      const worker = new Worker(new URL('./echo-worker.js', import.meta.url), { type: 'module', name });
      return new Promise((resolve, reject) => {
        worker.onerror = (event) => reject(new Error(`The echo worker failed: ${event.message}`));
        worker.onmessage = () => resolve(new MessageSession(worker, options));
        const start: EchoStart = { file: append ? store : undefined, flush: options.durability === 'strict' };
        worker.postMessage(start);
      });
    },
    async remove(store) {
      if (append) await removeFloorFile(store);
    },
  };
}

export const message = messageEngine(
  'message',
  'A bare message round trip: the bytes of the call to a worker and back (lengths checked, nothing stored).',
  false,
);

export const messageAppend = messageEngine(
  'message-append',
  'The same round trip with one bare OPFS append in the worker for each message that writes.',
  true,
);
