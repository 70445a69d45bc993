// Reads a file of rows in a worker, so that a long file does not block the page and can be cancelled.
// Invariant: one file, one answer.

import { type Rows, readRows } from './rows.ts';

/** The request to the worker. */
export interface ReadRequest {
  readonly name: string;
  readonly content: Blob;
}

/** Its response: the rows, or a sentence with the reason why there are none. */
export type ReadAnswer = { readonly rows: Rows } | { readonly error: string };

const scope = globalThis as unknown as DedicatedWorkerGlobalScope;

scope.addEventListener('message', async ({ data }: MessageEvent<ReadRequest>) => {
  let answer: ReadAnswer;
  try {
    answer = { rows: readRows(data.name, await data.content.text()) };
  } catch (error) {
    answer = { error: error instanceof Error ? error.message : String(error) };
  }
  scope.postMessage(answer);
});
