// Reads a file of rows in a separate worker.
// Invariant: the worker is ended after its answer, or when reading is cancelled.

import type { ReadAnswer, ReadRequest } from './import-worker.ts';
import type { Rows } from './rows.ts';

/** The rows of a file. Rejects with a sentence where there are none, and when the signal aborts. */
export function readFile(name: string, content: Blob, signal: AbortSignal): Promise<Rows> {
  const worker = new Worker('./import-worker.js', { type: 'module', name: 'import' });
  const answer = new Promise<Rows>((resolve, reject) => {
    signal.addEventListener('abort', () => reject(signal.reason), { once: true });
    worker.onerror = () => reject(new Error('The file could not be read: the worker that reads it failed.'));
    worker.onmessage = ({ data }: MessageEvent<ReadAnswer>) => {
      if ('rows' in data) resolve(data.rows);
      else reject(new Error(data.error));
    };
    worker.postMessage({ name, content } satisfies ReadRequest);
  });
  return answer.finally(() => worker.terminate());
}
