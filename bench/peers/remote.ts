/**
 * The store of a peer that lives in workers only, called from the page: a thin remote procedure call, one message for each
 * call and one for its answer, as an application would write it. (SQLite comes with such a worker, "Worker1" with its
 * promiser, by its own words relatively limited (sqlite.org/wasm/doc/trunk/api-worker1.md): it has no statements that stay
 * prepared, and no transaction over calls, so it would be slower.)
 *
 * Invariant: answers come in the order of the calls. A worker that fails rejects every call that waits, and all after it.
 */

import type { AsyncSession, BatchEntries, Place, PointCall, SessionOptions, Sink } from '../core/engine.ts';
import type { Key } from '../core/generator.ts';
import { type Answer, type Call, pack, type Reply, type Request, unpack } from './remote-protocol.ts';

/** Whether this thread is a worker, which can open the store itself. */
export function inWorker(): boolean {
  return typeof document === 'undefined';
}

interface Waiting {
  resolve(answer: Answer): void;
  reject(error: Error): void;
}

class RemoteSession implements AsyncSession {
  readonly kind = 'async';
  readonly #worker: Worker;
  readonly #waiting = new Map<number, Waiting>();
  #next = 0;
  #failed: Error | undefined;

  constructor(worker: Worker) {
    this.#worker = worker;
    worker.onmessage = ({ data }: MessageEvent<Reply>) => this.#settleCall(data);
    worker.onerror = (event) => this.#fail(new Error(`The worker of the peer failed: ${event.message}`));
  }

  call(call: Call, transfer: Transferable[] = []): Promise<Answer> {
    if (this.#failed !== undefined) return Promise.reject(this.#failed);
    const id = this.#next++;
    return new Promise((resolve, reject) => {
      this.#waiting.set(id, { resolve, reject });
      const request: Request = { ...call, id };
      this.#worker.postMessage(request, transfer);
    });
  }

  async set(key: Key, value: Uint8Array): Promise<void> {
    await this.call({ type: 'set', key, value });
  }

  async get(key: Key): Promise<Uint8Array | undefined> {
    return (await this.call({ type: 'get', key })).value;
  }

  async delete(key: Key): Promise<void> {
    await this.call({ type: 'delete', key });
  }

  async deleteRange(from: Key, to: Key): Promise<void> {
    await this.call({ type: 'deleteRange', from, to });
  }

  async batch({ keys, values }: BatchEntries): Promise<void> {
    const packed = pack(values);
    await this.call({ type: 'batch', keys, values: packed }, [packed.bytes.buffer]);
  }

  async transact({ keys, values }: BatchEntries): Promise<readonly (Uint8Array | undefined)[]> {
    const packed = pack(values);
    const answer = await this.call({ type: 'transact', keys, values: packed }, [packed.bytes.buffer]);
    return answer.values === undefined ? [] : unpack(answer.values).map((value) => value ?? undefined);
  }

  async range(from: Key | undefined, limit: number, sink: Sink): Promise<void> {
    const { keys = [], values } = await this.call({ type: 'range', from, limit });
    if (values === undefined) return;
    unpack(values).forEach((value, i) => {
      if (value) sink.take(keys[i] as Key, value);
    });
  }

  async wave(calls: readonly PointCall[]): Promise<readonly (Uint8Array | undefined)[]> {
    const packed = pack(calls.map(({ value }) => value));
    const keys = calls.map(({ key }) => key);
    const { values } = await this.call({ type: 'wave', keys, values: packed }, [packed.bytes.buffer]);
    return values === undefined ? [] : unpack(values).map((value) => value ?? undefined);
  }

  async settle(where: Place, entries: number): Promise<boolean> {
    return (await this.call({ type: 'settle', where, entries })).settled === true;
  }

  async close(): Promise<void> {
    try {
      await this.call({ type: 'close' });
    } finally {
      this.#worker.terminate();
    }
  }

  #settleCall(reply: Reply): void {
    const waiting = this.#waiting.get(reply.id);
    this.#waiting.delete(reply.id);
    if ('error' in reply) waiting?.reject(new Error(reply.error));
    else waiting?.resolve(reply);
  }

  #fail(error: Error): void {
    this.#failed = error;
    for (const { reject } of this.#waiting.values()) reject(error);
    this.#waiting.clear();
  }
}

/** Opens the store `name` of `peer` in a worker of its own. */
export async function openRemote(peer: string, name: string, options: SessionOptions): Promise<AsyncSession> {
  const worker = new Worker(new URL('./peer-worker.js', import.meta.url), { type: 'module', name });
  const session = new RemoteSession(worker);
  try {
    await session.call({ type: 'open', peer, name, options });
  } catch (error) {
    worker.terminate();
    throw error;
  }
  return session;
}
