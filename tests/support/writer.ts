// Shared by the page and the worker of the crash tests. The global `writer` writes a history into stores and reads them back. It reports
// to the test what was acknowledged.

import type { Found, Plan } from './history.ts';

/** How a store is opened. */
export interface WriterOptions {
  /** Without a log. */
  readonly durability?: 'memory' | undefined;
  /** In a page only: the storage, if not the one that `open` chooses. */
  readonly storage?: 'indexeddb' | undefined;
  /** In a page only: the worker script of the engine, if not that of the package. `terminate` does not reach it. */
  readonly worker?: string | undefined;
}

/** Writes histories. In a page it uses `varve`, in a worker `varve/synchronous`. */
export interface Writer {
  /** Opens a store and reads all of it, forwards, backwards and by key. */
  open(name: string, options?: WriterOptions): Promise<Found>;
  /** Reads all of a store that is open. */
  read(name: string): Promise<Found>;
  /** Starts to write and continues until it is stopped from outside. */
  start(name: string, plan: Plan): void;
  /** Writes until so many sets are done, and stops; resolves with how many groups are acknowledged as relaxed or strict. */
  write(name: string, plan: Plan, sets: number): Promise<number>;
  close(name: string): Promise<void>;
  /** Ends the worker that runs the store's engine, if that is another worker. */
  terminate(name: string): void;
}

declare global {
  var writer: Writer;
}

/** Words that begin a message to the test. */
export const ACKNOWLEDGED = 'acknowledged';
export const FAILED = 'writing failed';

/**
 * Reports to the test that all groups before `groups` are acknowledged as relaxed or strict. It uses the console: a line that
 * has left this process reaches the test even if the process is killed right after.
 */
export function report(name: string, groups: number, sets: number): void {
  console.debug(`${ACKNOWLEDGED} ${name} ${groups} ${sets}`);
}

/** Runs a writer without waiting for it. */
export function detach(name: string, writing: Promise<unknown>): void {
  writing.catch((error) => console.debug(`${FAILED} ${name} ${error}`));
}
