/**
 * The worker behind the floors `message`, `message-append` and `open-floor`: returns each buffer. If it has a file, it first appends
 * as many bytes of the buffer as the number at its start says. As `open-floor` it starts with the least that an opening needs.
 */

import { floorFile } from './opfs.ts';

export interface EchoStart {
  readonly file: string | undefined;
  readonly flush: boolean;
  /** Continue with the file as it is: compile the engine, read the first page of the file, write it back and flush it. */
  readonly opens: boolean;
}

const HEADER_BYTES = 4;
const PAGE_BYTES = 4096;
const scope = self as unknown as DedicatedWorkerGlobalScope;

async function start({ file, flush, opens }: EchoStart): Promise<(message: ArrayBuffer) => void> {
  if (file === undefined) return (message) => scope.postMessage(message, [message]);
  if (opens) await WebAssembly.compileStreaming(fetch(new URL('./varve/varve.wasm', import.meta.url)));
  const handle = await (await floorFile(file)).createSyncAccessHandle();
  let end = 0;
  if (!opens) handle.truncate(0);
  else {
    end = handle.getSize();
    const page = new Uint8Array(PAGE_BYTES);
    handle.read(page, { at: 0 });
    handle.write(page, { at: 0 });
    handle.flush();
  }
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
