/**
 * Shared by tests of the engine in Node: the compiled wasm, seeded randomness, and a compactor "worker" on this thread.
 */

import type { Port } from '../../../js/src/client/client.ts';
import type { CheckerRequest, CheckerResponse } from '../../../js/src/compactor/checker.ts';
import { Compactor } from '../../../js/src/compactor/compactor.ts';
import type { CompactorRequest, CompactorResponse } from '../../../js/src/compactor/messages.ts';
import { opfsOutputs } from '../../../js/src/compactor/opfs-output.ts';
import { codeHere } from '../../../js/src/server/later-code.ts';
import { Member } from '../../../js/src/server/member.ts';
import type { OpenOutput } from '../../../js/src/storage/compactor-port.ts';

/** The engine as `npm run build` produces it. */
export const wasm = new URL('../../../js/pkg/varve_bg.wasm', import.meta.url);

/** The module that checks and repairs. */
export const tools = new URL('../../../build/varve-tools.wasm', import.meta.url);

/** Numbers below `below`, the same for the same seed (mulberry32). */
export function randomFrom(seed: number): (below: number) => number {
  let state = seed >>> 0;
  return (below) => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return Math.floor((((mixed ^ (mixed >>> 14)) >>> 0) / 0x1_0000_0000) * below);
  };
}

/** A compactor behind the interface of a worker: messages are cloned and arrive in later turns. */
export class LocalCompactor extends EventTarget {
  /** All messages that it was sent. */
  readonly received: (CompactorRequest | CheckerRequest)['type'][] = [];
  terminated = false;
  readonly #compactor = new Compactor(
    (message, transfer) => this.#deliver(message, transfer),
    (store) => this.#outputs(store),
  );

  postMessage(message: CompactorRequest | CheckerRequest, transfer: Transferable[] = []): void {
    const clone: CompactorRequest | CheckerRequest =
      message.type === 'start' || message.type === 'check'
        ? message
        : structuredClone(message, { transfer: transfer as ArrayBuffer[] });
    this.received.push(message.type);
    setImmediate(() => {
      if (!this.terminated) this.#compactor.receive(clone);
    });
  }

  /** The browser closes everything that an ended worker had open. */
  terminate(): void {
    this.terminated = true;
    this.#compactor.halt();
  }

  async #outputs(store: string): Promise<OpenOutput> {
    const open = await opfsOutputs(store);
    return async (slot) => {
      const output = await open(slot);
      if (this.terminated) output.close();
      return output;
    };
  }

  #deliver(message: CompactorResponse | CheckerResponse, transfer: Transferable[]): void {
    const clone = structuredClone(message, { transfer: transfer as ArrayBuffer[] });
    setImmediate(() => {
      if (!this.terminated) this.dispatchEvent(new MessageEvent('message', { data: clone }));
    });
  }
}

/** An engine worker on this thread: both directions clone, transfer and arrive in later turns. */
export function spawnServer(): Port {
  let isEnded = false;
  const port: Port = {
    onmessage: null,
    postMessage: (message, transfer) => {
      const data = structuredClone(message, { transfer: transfer as ArrayBuffer[] }) as ArrayBuffer;
      setImmediate(() => {
        if (!isEnded) member.receive({ data, ports: [] });
      });
    },
    terminate: () => {
      isEnded = true;
      member.end();
    },
  };
  const member = new Member(
    (message, transfer) => {
      const clone = structuredClone(message, { transfer: transfer as ArrayBuffer[] });
      setImmediate(() => {
        if (!isEnded) port.onmessage?.(new MessageEvent('message', { data: clone }));
      });
    },
    () => new LocalCompactor() as unknown as Worker,
    undefined,
    codeHere,
  );
  return port;
}
