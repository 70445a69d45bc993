/**
 * A check on the compactor's side: verifies the bytes it is sent and asks for the rest. It runs in a worker of its own, made
 * from the compactor's script, so that no flush waits behind it.
 *
 *     engine                          checker
 *     check {module, input} --------> steps the check
 *     <-- read {slot, offset, length}
 *     bytes {bytes} ----------------> (or unread {error})
 *     <-- progress {progress}
 *     <-- checked {report}            (or unchecked {error})
 *
 * Invariant: each worker runs one check. The engine ends the worker when the check ends.
 */

import { toWire, VarveError, type WireError } from '../errors.ts';
import { type CheckInput, runCheck } from '../tools/check.ts';
import type { CheckReport } from '../tools/types.ts';
import type { Progress } from '../types.ts';

/** Engine to checker. */
export type CheckerRequest =
  | { readonly type: 'check'; readonly module: WebAssembly.Module; readonly input: CheckInput }
  | { readonly type: 'bytes'; readonly bytes: Uint8Array }
  | { readonly type: 'unread'; readonly error: WireError };

/** Checker to engine. */
export type CheckerResponse =
  | { readonly type: 'read'; readonly slot: number; readonly offset: number; readonly length: number }
  | { readonly type: 'progress'; readonly progress: Progress }
  | { readonly type: 'checked'; readonly report: CheckReport }
  | { readonly type: 'unchecked'; readonly error: WireError };

/** Runs the check that it is sent. */
export class Checker {
  readonly #post: (message: CheckerResponse) => void;
  #waiting: { resolve: (bytes: Uint8Array) => void; reject: (error: VarveError) => void } | undefined;

  constructor(post: (message: CheckerResponse) => void) {
    this.#post = post;
  }

  /** Handles one message. */
  receive(message: CheckerRequest): void {
    if (message.type === 'check') void this.#run(message.module, message.input);
    else if (message.type === 'bytes') this.#waiting?.resolve(message.bytes);
    else this.#waiting?.reject(VarveError.fromWire(message.error));
  }

  async #run(module: WebAssembly.Module, input: CheckInput): Promise<void> {
    try {
      const read = (slot: number, offset: number, length: number) => this.#read(slot, offset, length);
      const onProgress = (progress: Progress) => this.#post({ type: 'progress', progress });
      this.#post({ type: 'checked', report: await runCheck(module, input, read, { onProgress }) });
    } catch (error) {
      this.#post({ type: 'unchecked', error: toWire(error) });
    }
  }

  #read(slot: number, offset: number, length: number): Promise<Uint8Array> {
    return new Promise((resolve, reject) => {
      this.#waiting = { resolve, reject };
      this.#post({ type: 'read', slot, offset, length });
    });
  }
}
