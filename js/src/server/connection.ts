/**
 * A client as its leader sees it: a destination for answers.
 *
 * Invariant: once the client is gone, nothing is sent to it, even if there is still an answer for it.
 */

import type { Response } from '../protocol/messages.ts';

/** Sends a message or a response frame to the client. */
export type Send = (message: Response | ArrayBuffer, transfer: Transferable[]) => void;

/** One client of a store. */
export class Connection {
  /** Its number; 0 for a client that never connects to a second leader. */
  readonly client: number;
  /** The version that it opened the store with. */
  readonly version: number | undefined;
  /** The controllers of the checks of this client, by the numbers that it gave them, and of a repair. */
  readonly stoppables = new Map<unknown, AbortController>();
  readonly #send: Send;
  #isGone = false;

  constructor(client: number, send: Send, version?: number) {
    this.client = client;
    this.version = version;
    this.#send = send;
  }

  get isGone(): boolean {
    return this.#isGone;
  }

  send(message: Response | ArrayBuffer, transfer: Transferable[] = []): void {
    if (!this.#isGone) this.#send(message, transfer);
  }

  /** The controller of a check or a repair, which may be stopped before it begins. */
  stoppable(number: unknown): AbortController {
    const controller = this.stoppables.get(number) ?? new AbortController();
    this.stoppables.set(number, controller);
    return controller;
  }

  /** The client is gone: nothing is sent to it from now on, and its checks and repair are aborted. */
  leave(): void {
    this.#isGone = true;
    for (const running of this.stoppables.values()) running.abort();
  }
}
