/**
 * The worker behind the floors `message` and `message-append`: returns each buffer. If it has a file, it first appends as many
 * bytes of the buffer as the number at its start says.
 */

import { floorFile } from './opfs.ts';

/** The first message to the worker. */
export interface EchoStart {
  readonly file: string | undefined;
  readonly flush: boolean;
}

const HEADER_BYTES = 4;
const scope = self as unknown as DedicatedWorkerGlobalScope;

async function start({ file, flush }: EchoStart): Promise<(message: ArrayBuffer) => void> {
  if (file === undefined) return (message) => scope.postMessage(message, [message]);
  const handle = await (await floorFile(file)).createSyncAccessHandle();
  handle.truncate(0);
  let end = 0;
  return (message) => {
    if (message.byteLength === 0) {
      handle.close();
      scope.postMessage(message, [message]);
      return;
    }
    const bytes = new DataView(message).getUint32(0, true);
    if (bytes > 0) {
      const count = handle.write(new Uint8Array(message, HEADER_BYTES, bytes), { at: end });
      if (count !== bytes) throw new Error('A write of the floor fell short.');
      end += count;
      if (flush) handle.flush();
    }
    scope.postMessage(message, [message]);
  };
}

scope.addEventListener(
  'message',
  async ({ data }: MessageEvent<EchoStart>) => {
    const answer = await start(data);
    scope.addEventListener('message', (event: MessageEvent<ArrayBuffer>) => answer(event.data));
    scope.postMessage('ready');
  },
  { once: true },
);
