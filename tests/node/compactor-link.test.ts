/** The engine's end of the compactor, on a server, where a worker that is ended may go on writing for a short time. */

import { expect, test } from 'vitest';
import { checkInWorker } from '../../js/src/engine/checker-link.ts';
import { CompactorLink, type JobServices } from '../../js/src/engine/compactor-link.ts';
import type { CompactorPort } from '../../js/src/storage/compactor-port.ts';
import type { JobTicket } from '../../js/src/wasm/job-ticket.ts';

const services = {} as JobServices;
const ticket = { id: 1, kind: 'flush', spec: new Uint8Array(1), bytesHint: 1 } as unknown as JobTicket;
const module = {} as WebAssembly.Module;

/** A worker that does nothing, and ends when the test asks for it. */
class IdleWorker implements CompactorPort {
  readonly calls: string[] = [];
  readonly #listeners = new Map<string, (event: never) => void>();
  end: () => void = () => undefined;

  postMessage(message: object): void {
    this.calls.push((message as { type: string }).type);
  }

  addEventListener(type: string, listener: (event: never) => void): void {
    this.#listeners.set(type, listener);
  }

  terminate(): Promise<void> {
    this.calls.push('terminate');
    return new Promise((resolve) => {
      this.end = resolve;
    });
  }

  ref(): void {
    this.calls.push('ref');
  }

  unref(): void {
    this.calls.push('unref');
  }

  say(data: object): void {
    this.#listeners.get('message')?.({ data } as never);
  }

  fail(): void {
    this.#listeners.get('error')?.({ message: 'it broke', preventDefault: () => undefined } as never);
  }
}

async function hasSettled(promise: Promise<unknown>): Promise<boolean> {
  for (let i = 0; i < 10; i++) await Promise.resolve();
  const pending = Symbol();
  return (await Promise.race([promise.catch(() => undefined), Promise.resolve(pending)])) !== pending;
}

test('a job ends, and a close is done, when the worker writes no more', async () => {
  const worker = new IdleWorker();
  const link = new CompactorLink(() => worker, module, 'store');
  const job = link.run({ ...ticket }, services);
  const stopped = link.shutDown();
  expect([await hasSettled(job), await hasSettled(stopped)]).toEqual([false, false]);
  worker.end();
  await expect(job).rejects.toMatchObject({ code: 'VARVE_UNAVAILABLE' });
  await stopped;
});

test('jobs of a worker that broke fail when it has ended; the next job has a new worker', async () => {
  const workers = [new IdleWorker(), new IdleWorker()];
  let started = 0;
  const link = new CompactorLink(() => workers[started++] as IdleWorker, module, 'store');
  const job = link.run({ ...ticket }, services);
  workers[0]?.fail();
  expect(await hasSettled(job)).toBe(false);
  workers[0]?.end();
  await expect(job).rejects.toMatchObject({ message: expect.stringContaining('it broke') });
  const next = link.run({ ...ticket, spec: new Uint8Array(1) }, services);
  workers[1]?.say({ type: 'done', job: 1, result: new Uint8Array(3) });
  expect(await next).toEqual(new Uint8Array(3));
  expect(started).toBe(2);
});

test('the process waits for the worker while it has a job, and no longer', async () => {
  const worker = new IdleWorker();
  const link = new CompactorLink(() => worker, module, 'store');
  const jobs = [1, 2].map((id) => link.run({ ...ticket, id, spec: new Uint8Array(1) }, services));
  worker.say({ type: 'done', job: 1, result: new Uint8Array(1) });
  expect(worker.calls).not.toContain('unref');
  worker.say({ type: 'done', job: 2, result: new Uint8Array(1) });
  await Promise.all(jobs);
  expect(worker.calls.filter((call) => /ref/.test(call))).toEqual(['ref', 'ref', 'unref']);
});

// The story: a check that waited for a change of keys was aborted. Nobody looked at its signal again: it began, and went on to its end.
test('a check that was aborted before its worker is started ends at once, and so does the worker', async () => {
  const worker = new IdleWorker();
  const input = { images: [], logEnd: 0 };
  const checking = checkInWorker(
    () => worker,
    module,
    input,
    () => new Uint8Array(0),
    { signal: AbortSignal.abort() },
  );
  await expect(checking).rejects.toMatchObject({ name: 'AbortError' });
  expect(worker.calls.at(-1)).toBe('terminate');
});
