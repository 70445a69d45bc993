/**
 * A client as its leader sees it: where its answers go.
 *
 * Invariant: once it is gone nothing is sent to it, whoever still has an answer for it.
 */

import type { Response } from '../protocol/messages.ts';

/** Sends a message or a response frame to the client. */
export type Send = (message: Response | ArrayBuffer, transfer: Transferable[]) => void;

/** One client of a store. */
export class Connection {
  /** Its number, 0 for one that asks no second leader. */
  readonly client: number;
  /** Checks that run for it, by the numbers that it gave them, and a repair. */
  readonly stoppables = new Map<unknown, AbortController>();
  readonly #send: Send;
  #isGone = false;

  constructor(client: number, send: Send) {
    this.client = client;
    this.#send = send;
  }

  get isGone(): boolean {
    return this.#isGone;
  }

  send(message: Response | ArrayBuffer, transfer: Transferable[] = []): void {
    if (!this.#isGone) this.#send(message, transfer);
  }

  /** Nobody listens there any more. */
  leave(): void {
    this.#isGone = true;
    for (const running of this.stoppables.values()) running.abort();
  }
}
