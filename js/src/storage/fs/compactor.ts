/**
 * The compactor of stores in files: a worker thread, and its access to lent slots.
 *
 * Invariant: files are not exclusive, unlike handles of OPFS. So a worker is ended in two steps. First it gets the message to halt,
 * closes its files and reports that. Only then does it count as ended, so that its slots can be taken back or the store released.
 */

import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { Worker } from 'node:worker_threads';
import type { CompactorPort, OpenOutput } from '../compactor-port.ts';
import { SlotError, withSlotErrors } from '../device.ts';
import { type FileCalls, NODE_CALLS } from './calls.ts';
import { slotError } from './errno.ts';
import { openSlot, type Place } from './place.ts';
import { pulseOf } from './pulse.ts';
import { writeAll } from './slot-file.ts';

/** The messages to and from a worker when it is ended. */
export const HALT = { type: 'halt' } as const;
export const HALTED = { type: 'halted' } as const;

/** The place of the slots of a store, as a text for the worker. */
export function toText(place: Place): string {
  return JSON.stringify(place);
}

/** The slots of a store, by the text of its place. */
export async function fileOutputs(text: string, calls: FileCalls = NODE_CALLS): Promise<OpenOutput> {
  const place = JSON.parse(text) as Place;
  const pulse = pulseOf(place);
  return async (slot) => {
    let file: number | undefined = withSlotErrors(() => openSlot(calls, place, slot), slotError);
    const use = <T>(call: (file: number) => T): T => {
      if (file === undefined) throw new SlotError('closed', `Slot ${slot} is closed again.`);
      const open = file;
      return withSlotErrors(() => {
        pulse();
        return call(open);
      }, slotError);
    };
    return {
      write: (bytes, at) => use((open) => writeAll(calls, open, bytes, at)),
      flush: () => use((open) => calls.fdatasyncSync(open)),
      close: () => {
        const open = file;
        // A close that fails has closed it all the same: a second one would close a file that got the same number meanwhile.
        file = undefined;
        if (open !== undefined) withSlotErrors(() => calls.closeSync(open), slotError);
      },
    };
  };
}

/**
 * Whether there can be a compactor: its script is where the package has it (a bundler may not have copied it), and this is not Deno.
 * Deno 2.9 takes 0.6 s to transfer a MiB to a thread of `node:worker_threads`.
 */
export function hasFileCompactor(): boolean {
  if ('Deno' in globalThis) return false;
  try {
    return script().protocol === 'file:' && existsSync(fileURLToPath(script()));
  } catch {
    return false;
  }
}

/** Starts a worker. It keeps the process alive only while it has a job. */
export function spawnFileCompactor(): CompactorPort {
  const worker = new Worker(script(), { name: 'varve-compactor' });
  worker.unref();
  let ending: Promise<void> | undefined;
  // Before its first message it has asked for no slot, so it has no file open: closing the store need not wait until it has started.
  let mayWrite = false;
  worker.on('message', () => {
    mayWrite = true;
  });
  worker.on('exit', () => {
    mayWrite = false;
  });
  return {
    postMessage: (message, transfer) => worker.postMessage(message, transfer as ArrayBuffer[]),
    addEventListener: (type: string, listener: (event: never) => void) => {
      const call = listener as (event: object) => void;
      if (type === 'message') {
        worker.on('message', (data: { type?: unknown }) => data.type !== HALTED.type && call({ data }));
      } else {
        const fail = (message: string, error?: Error): void =>
          call({ message, error, preventDefault: () => undefined });
        worker.on('error', (error) => fail(error.message, error));
        worker.on('exit', (code) => ending === undefined && fail(`it ended with code ${code}`));
      }
    },
    terminate: () => {
      if (!mayWrite) void worker.terminate();
      ending ??= mayWrite ? end(worker) : Promise.resolve();
      return ending;
    },
    ref: () => worker.ref(),
    unref: () => worker.unref(),
  };
}

/** Ends a worker once it has closed its files. */
async function end(worker: Worker): Promise<void> {
  worker.ref();
  await new Promise<void>((resolve) => {
    worker.on('message', (message: { type?: unknown }) => message.type === HALTED.type && resolve());
    worker.on('error', () => resolve());
    worker.on('exit', () => resolve());
    worker.postMessage(HALT);
  });
  await worker.terminate();
}

function script(): URL {
  return new URL('./file-compactor-worker.js', import.meta.url);
}
