// The life test and its page share these globals: `visit` and `push`.

import type { Census, VisitWrite } from '../../support/visits.ts';

/** One session of a store. */
export interface VisitPlan {
  readonly storage: 'opfs' | 'indexeddb';
  readonly write: VisitWrite;
  /** Keys to read before the write. */
  readonly asked: readonly string[];
  readonly readsAll: boolean;
  /** Whether the page waits until the write is acknowledged. */
  readonly waits: boolean;
  readonly closes: boolean;
  /** How long it waits for the visit before to release the store, in milliseconds; undefined: as long as `open` does by default. */
  readonly wait: number | undefined;
  /** How long the page stays once it has written, in milliseconds. */
  readonly dwell: number;
}

/** The entries that the session found before it wrote. */
export interface Visited {
  readonly census: Census;
  readonly values: readonly (string | undefined)[];
  readonly entries: readonly (readonly [string, string])[];
}

declare global {
  /** A session of the page. */
  var visit: (plan: VisitPlan) => Promise<Visited>;
  /** A session of the service worker, while the page has the store open or not. Answers with the code of the error if it was refused. */
  var push: (plan: VisitPlan, isOpenInPage: boolean) => Promise<Visited | string>;
}
