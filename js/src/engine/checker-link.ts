/**
 * The engine worker's end of a check: starts the worker, serves its reads, ends it.
 *
 * Invariant: the worker is ended however the check ends, also when a signal ends it. A read is one synchronous call of at most
 * about 1 MiB. The engine worker does nothing else for a check.
 */

import type { CheckerRequest, CheckerResponse } from '../compactor/checker.ts';
import { toWire, VarveError } from '../errors.ts';
import { untilAborted } from '../runtime/until-aborted.ts';
import type { SpawnCompactor } from '../storage/compactor-port.ts';
import type { CheckInput } from '../tools/check.ts';
import type { CheckReport } from '../tools/types.ts';
import type { Progress } from '../types.ts';

/** Runs a check in a worker of its own. */
export function checkInWorker(
  spawn: SpawnCompactor,
  module: WebAssembly.Module,
  input: CheckInput,
  read: (slot: number, offset: number, length: number) => Uint8Array<ArrayBuffer>,
  options: { onProgress?: ((progress: Progress) => void) | undefined; signal?: AbortSignal | undefined },
): Promise<CheckReport> {
  const { onProgress, signal } = options;
  const worker = spawn();
  worker.ref?.();
  const post = (message: CheckerRequest, transfer: Transferable[]): void => worker.postMessage(message, transfer);
  const serve = (slot: number, offset: number, length: number): void => {
    try {
      const bytes = read(slot, offset, length);
      post({ type: 'bytes', bytes }, [bytes.buffer]);
    } catch (error) {
      post({ type: 'unread', error: toWire(error) }, []);
    }
  };
  const checked = new Promise<CheckReport>((resolve, reject) => {
    worker.addEventListener('message', ({ data }: MessageEvent<CheckerResponse>) => {
      if (data.type === 'read') serve(data.slot, data.offset, data.length);
      else if (data.type === 'progress') onProgress?.(data.progress);
      else if (data.type === 'checked') resolve(data.report);
      else reject(VarveError.fromWire(data.error));
    });
    worker.addEventListener('error', (event) => {
      event.preventDefault();
      reject(new VarveError('VARVE_UNAVAILABLE', `The worker of the check failed: ${event.message}`));
    });
    const images = input.images.flatMap(({ page, pieces }) => [
      page.buffer,
      ...pieces.map(({ image }) => image.buffer),
    ]);
    post({ type: 'check', module, input }, images);
    input.keys?.fill(0);
  });
  return untilAborted(checked, signal).finally(() => void worker.terminate());
}
