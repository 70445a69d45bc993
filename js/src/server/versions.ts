/**
 * Which clients run older code than the data of the store: they may read it, and write no more.
 *
 *     client -> leader   join, with the version of its `open`
 *     leader -> client   versionchange, to all clients: the newest version if theirs is lower, else 0
 *
 * The leader handles the messages and frames of all clients in one line. So a client whose version is higher upgrades the store behind
 * the last write of older code, and older code writes nothing behind the upgrade, however late its frames arrive.
 *
 * Invariant: the newest version is at least that of the stored data, and it does not fall before that has been read again.
 */

import { CHANGES } from '../engine/patience.ts';
import { VarveError } from '../errors.ts';
import { frameOf, operationsOf, refusalOf, requestOf, responseOf } from '../protocol/frame-bytes.ts';
import { readVersion } from '../protocol/version.ts';
import type { Connection } from './connection.ts';

/** The versions of one store and of its clients. A client without a version is not stopped. */
export class Versions {
  readonly #clients: ReadonlySet<Connection>;
  readonly #read: () => Promise<Uint8Array | undefined>;
  readonly #isDone: (client: number, request: number) => boolean;
  #newest = 0;
  /** The updates of `#newest` run one after another. */
  #updated: Promise<void> = Promise.resolve();

  /** `read` reads the version in the store. `isDone` is whether an earlier leader did the request of a client. */
  constructor(
    clients: ReadonlySet<Connection>,
    read: () => Promise<Uint8Array | undefined>,
    isDone: (client: number, request: number) => boolean,
  ) {
    this.#clients = clients;
    this.#read = read;
    this.#isDone = isDone;
  }

  /** A client has joined, or has left: it may have upgraded the store, or have failed to. */
  async changed({ version }: Connection): Promise<void> {
    if (version === undefined) return;
    this.#updated = this.#updated.then(() => this.#update());
    await this.#updated;
  }

  /**
   * Refuses the writes of a frame if its client runs older code; returns the frame without them, or undefined if nothing is left. Writes
   * that an earlier leader did stay in it: the engine answers them, and does not do them again.
   */
  admit(frame: Uint8Array<ArrayBuffer>, from: Connection): Uint8Array<ArrayBuffer> | undefined {
    if (!this.#isOld(from)) return frame;
    const operations = operationsOf(frame);
    const writes = operations.filter(
      (operation) => CHANGES.includes(operation.code) && !this.#isDone(from.client, requestOf(operation)),
    );
    if (writes.length === 0) return frame;
    const error = new VarveError(
      'VARVE_VERSION',
      `Another tab has version ${this.#newest} of this code, which upgrades the store. This tab has version ${from.version}. Reload it.`,
    );
    from.send(responseOf(writes.map((write) => refusalOf(write, error))).buffer);
    if (writes.length === operations.length) return undefined;
    return frameOf(
      frame,
      operations.filter((operation) => !writes.includes(operation)),
    );
  }

  async #update(): Promise<void> {
    // A client that leaves during the read may have upgraded the store behind it. The next update sees that.
    const before = this.#highest();
    // A version that cannot be read does not end the store. The opening that checks it reports the error.
    const stored = await this.#read().then(readVersion, () => this.#newest);
    this.#newest = Math.max(stored, before, this.#highest());
    for (const client of this.#clients) {
      if (client.version === undefined) continue;
      // Also that there is none any more: then a second attempt to upgrade is news.
      client.send({ type: 'versionchange', version: this.#isOld(client) ? this.#newest : 0 });
    }
  }

  /** The highest version of a client. */
  #highest(): number {
    return Math.max(0, ...[...this.#clients].map(({ version = 0 }) => version));
  }

  #isOld({ version }: Connection): boolean {
    return version !== undefined && version < this.#newest;
  }
}
