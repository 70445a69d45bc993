/**
 * Runs the frames of a store's clients: here in the turn in which they come, because their writes are committed at once.
 * `deferred-runner.ts` runs them over a device that commits later.
 *
 * Invariant: responses are sent in the order of their frames. While the engine is stalled, a frame waits until a job has made room.
 * If no job can make room (a full disk), the frame runs and its writes get the error.
 */

import { VarveError } from '../errors.ts';
import { refusalsOf } from '../protocol/frame-bytes.ts';
import type { EngineStore } from '../wasm/store.ts';
import type { EngineHost } from './engine-host.ts';

/** Sends a part of the response to a frame. */
export type SendResponse = (response: Uint8Array<ArrayBuffer>) => void;

/** The server whose frames run. */
export interface FrameOwner {
  /** A frame ran: the store may need maintenance. */
  onRun(): void;
  /** Frames must be answered again before anything else is done: `answerRefused` is to be called. */
  onRefused(): void;
  /** Another host has taken the place of the host. */
  onReplaced(host: EngineHost): void;
  /** The store cannot go on. */
  onFailure(error: unknown): void;
}

/** Runs the frames of one store. */
export interface FrameRunner {
  /** Runs a frame. When the promise resolves, the next may run; without a promise, at once. */
  run(request: Uint8Array, send: SendResponse): Promise<void> | undefined;
  /** Whether frames must be answered again. */
  readonly isRefused: boolean;
  /** Answers the frames again whose commits were refused. */
  answerRefused(): Promise<void>;
  /** Resolves when every frame that ran has its response. */
  answered(): Promise<void>;
  /** Runs and sends nothing more. */
  abort(): void;
}

/** Runs frames over a device whose writes are committed at once. */
export class ImmediateRunner implements FrameRunner {
  readonly isRefused = false;
  readonly #host: EngineHost;
  readonly #owner: FrameOwner;
  #isAborted = false;

  constructor(host: EngineHost, owner: FrameOwner) {
    this.#host = host;
    this.#owner = owner;
  }

  run(request: Uint8Array, send: SendResponse): Promise<void> | undefined {
    if (this.#host.upkeep.isStalled()) return this.#runLater(request, send);
    this.#run(request, send);
    return undefined;
  }

  async answerRefused(): Promise<void> {}

  async answered(): Promise<void> {}

  abort(): void {
    this.#isAborted = true;
  }

  async #runLater(request: Uint8Array, send: SendResponse): Promise<void> {
    const { upkeep } = this.#host;
    while (!this.#isAborted && upkeep.isStalled()) await upkeep.progress();
    // While it waited, its clients may have gone and the store may be closing.
    if (!this.#isAborted) this.#run(request, send);
  }

  #run(request: Uint8Array, send: SendResponse): void {
    try {
      respond(this.#host.store, request, send);
    } catch (error) {
      // If a frame cannot be answered at all, the engine or the client is broken: all requests fail.
      this.#owner.onFailure(error);
      return;
    }
    this.#owner.onRun();
  }
}

/** Answers a request frame with response frames: with one frame unless the answers are long. */
export function respond(store: EngineStore, request: Uint8Array, send: SendResponse): void {
  const { exports, memory, fault, h } = store;
  store.tick();
  try {
    memory.put(request);
  } catch (error) {
    if (fault.found !== undefined || !(error instanceof VarveError)) throw error;
    send(refusalsOf(request, error));
    return;
  }
  try {
    let from = 0;
    do {
      const at = from;
      from = store.check(fault.guarded(() => exports.varve_frame(h, request.length, at)));
      send(memory.takeOut());
    } while (from > 0);
  } finally {
    if (fault.found === undefined) memory.trim();
  }
}
