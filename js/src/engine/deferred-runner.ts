/**
 * Runs the frames of a store's clients over a device whose writes are committed later.
 *
 * Frames run one after another, without waiting for commits between them. The response to a frame is sent when everything that the
 * frame may have seen is committed. When the storage refuses a commit for lack of room, the store goes back to the committed state
 * before anything else runs. Then the waiting frames are answered again: see `deferred-frame.ts`.
 *
 * Invariant: responses are sent in the order of their frames, and a response is sent only once. After a failure other than lack of room
 * nothing is sent, and the store ends.
 */

import { toWire, VarveError } from '../errors.ts';
import { answersOf, responseOf } from '../protocol/frame-bytes.ts';
import { commitFailure } from '../storage/commit-failure.ts';
import type { DeferredDevice } from '../storage/device.ts';
import { DeferredFrame } from './deferred-frame.ts';
import type { EngineHost } from './engine-host.ts';
import { type FrameOwner, type FrameRunner, respond, type SendResponse } from './frame-runner.ts';
import type { FrameHost } from './patience.ts';

/** A frame whose response waits for a commit. */
interface Waiting {
  readonly frame: DeferredFrame;
  readonly send: SendResponse;
}

/** Runs frames over a deferred device. */
export class DeferredRunner implements FrameRunner, FrameHost {
  #host: EngineHost;
  readonly #device: DeferredDevice;
  readonly #owner: FrameOwner;
  /** Frames whose responses could not be sent, because the commit was refused. */
  readonly #refused: Waiting[] = [];
  /** The reason of the refusal; set until the store has gone back. */
  #refusal: VarveError | undefined;
  /** The reason of the last refusal; stays set. */
  #lastRefusal: VarveError | undefined;
  #isAborted = false;

  constructor(host: EngineHost, device: DeferredDevice, owner: FrameOwner) {
    this.#host = host;
    this.#device = device;
    this.#owner = owner;
    this.#listen(host);
  }

  run(request: Uint8Array, send: SendResponse): Promise<void> {
    return this.#run({ frame: new DeferredFrame(request), send });
  }

  get isRefused(): boolean {
    return this.#refusal !== undefined || this.#refused.length > 0;
  }

  async answerRefused(): Promise<void> {
    for (;;) {
      if (this.#refusal !== undefined) await this.#goBack(this.#refusal);
      const waiting = this.#refused.shift();
      if (waiting === undefined) return;
      if (!this.#isAborted) await this.#run(waiting, this.#lastRefusal);
    }
  }

  async answered(): Promise<void> {
    do {
      await this.answerRefused();
      await this.#host.committed().catch(() => undefined);
    } while (this.isRefused);
  }

  abort(): void {
    this.#isAborted = true;
    this.#refused.length = 0;
  }

  // The frames call the following methods of the host.

  respond(request: Uint8Array): Uint8Array<ArrayBuffer> {
    const parts: Uint8Array<ArrayBuffer>[] = [];
    respond(this.#host.store, request, (part) => parts.push(part));
    const [whole] = parts;
    return parts.length === 1 && whole !== undefined ? whole : responseOf(parts.flatMap(answersOf));
  }

  async ready(): Promise<void> {
    const { upkeep } = this.#host;
    while (this.#device.isPressed) await this.#host.committed();
    await upkeep.ready();
  }

  isStalled(): boolean {
    return this.#host.upkeep.isStalled();
  }

  makeRoom(attempts: number, untilMs: number): Promise<boolean> {
    return this.#host.upkeep.makeRoom(attempts, untilMs);
  }

  /** Runs a frame, or answers a refused frame again. The response is sent when its commit is done; other frames may run meanwhile. */
  async #run(waiting: Waiting, refusal?: VarveError): Promise<void> {
    const { frame, send } = waiting;
    const host = this.#host;
    try {
      // A frame that is answered again writes little, and must not wait for a job that fails.
      if (refusal === undefined) await this.ready();
      const response = await (refusal === undefined
        ? frame.run(this, this.#device)
        : frame.runAgain(this, this.#device, refusal));
      const { isQuiet } = this.#device;
      host.committed().then(
        () => {
          send(response);
          // There is room again: do the maintenance that was delayed for lack of room.
          if (isQuiet && !this.#device.isQuiet) this.#owner.onRun();
        },
        (error: unknown) => {
          frame.answers = answersOf(response);
          this.#refuse(host, error, waiting);
        },
      );
    } catch (error) {
      this.#refuse(host, error, waiting);
      return;
    }
    if (refusal === undefined) this.#owner.onRun();
  }

  #listen(host: EngineHost): void {
    this.#device.onFailure = (error) => this.#refuse(host, error);
  }

  /** Writes that were not committed for lack of room are taken back, and their writers get the error. Any other failure ends the store. */
  #refuse(host: EngineHost, cause: unknown, waiting?: Waiting): void {
    const known = commitFailure(cause);
    const error = known instanceof VarveError ? known : VarveError.fromWire(toWire(known));
    if (error.code !== 'VARVE_STORAGE_FULL' || !host.canGoBack) {
      this.#owner.onFailure(error);
      return;
    }
    if (this.#isAborted) return;
    if (host === this.#host) this.#refusal ??= error;
    this.#lastRefusal = error;
    if (waiting !== undefined) this.#refused.push(waiting);
    this.#owner.onRefused();
  }

  async #goBack(refusal: VarveError): Promise<void> {
    try {
      const host = await this.#host.goBack(refusal);
      if (host.hasLost) for (const { frame } of this.#refused) frame.isLost = true;
      if (this.#isAborted) await host.close();
      else {
        this.#host = host;
        this.#listen(host);
        this.#owner.onReplaced(host);
      }
    } catch (error) {
      this.#owner.onFailure(commitFailure(error));
    }
    this.#refusal = undefined;
  }
}
