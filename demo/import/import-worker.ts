// Reads a file of rows beside the page, so that a long one holds up nothing and can be given up.
// Invariant: one file, one answer.

import { type Rows, readRows } from './rows.ts';

/** What the worker is asked. */
export interface ReadRequest {
  readonly name: string;
  readonly content: Blob;
}

/** What it answers: the rows, or a sentence that says why there are none. */
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
