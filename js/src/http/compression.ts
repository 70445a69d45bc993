/**
 * Large responses, compressed with gzip for clients that accept it (RFC 9110, section 12.5.3).
 *
 * Invariant: a response is compressed as the client takes it, so a slow client makes nothing pile up. The plain and the compressed
 * form of an entry have different ETags, `"17"` and `"17-gzip"`. Conditions take both for the same entry (conditions.ts).
 */

import { isWorkerd } from '../runtime/turn.ts';
import { gzipTagOf } from './conditions.ts';
import type { Exchange } from './exchange.ts';
import { BYTES_TYPE, mediaRange } from './media.ts';

/** The value of `Vary` for what has several types, and is compressed for some clients. */
export const VARY = 'Accept, Accept-Encoding';

/**
 * A response with this body, compressed if it is long and the client accepts that. `bytes` is the length of the body; of a stream
 * it is the length of its first chunk. Bytes of the user are never compressed: many are images or archives, which only cost time.
 */
export function bodyResponse<K, V>(
  { request, limits }: Exchange<K, V>,
  body: string | Uint8Array | ReadableStream<Uint8Array>,
  bytes: number,
  headers: Headers,
): Response {
  const plain = new Response(body as BodyInit, { headers });
  if (bytes < limits.gzipBytes || headers.get('content-type') === BYTES_TYPE) return plain;
  if (plain.body === null || !(isWorkerd || 'CompressionStream' in globalThis)) return plain;
  if (!acceptsGzip(request.headers.get('accept-encoding'))) return plain;
  headers.set('content-encoding', 'gzip');
  headers.delete('content-length');
  const tag = headers.get('etag');
  if (tag !== null) headers.set('etag', gzipTagOf(tag));
  // A response to HEAD has the same headers, but its body is cancelled (handler.ts). Workers compress a response on its way out.
  const isLeft = request.method === 'HEAD' || isWorkerd;
  return new Response(isLeft ? plain.body : gzipped(plain.body), { headers });
}

/** Whether an Accept-Encoding header allows gzip, and does not prefer the plain form. */
function acceptsGzip(accept: string | null): boolean {
  if (accept === null) return false;
  const codings = accept.split(',').map(mediaRange);
  const qualityOf = (name: string): number | undefined => codings.find(({ range }) => range === name)?.quality;
  const gzip = qualityOf('gzip') ?? qualityOf('*') ?? 0;
  return gzip > 0 && gzip >= (qualityOf('identity') ?? 0);
}

/**
 * The stream, compressed. It is not `pipeThrough`: on Node that takes the whole stream at once, however slow its reader is, and does
 * not cancel it when its reader leaves. Here a chunk goes in only while the reader waits for one to come out.
 */
function gzipped(plain: ReadableStream<Uint8Array>): ReadableStream<Uint8Array> {
  const { readable, writable } = new CompressionStream('gzip') as ReadableWritablePair<Uint8Array, Uint8Array>;
  const [source, input, output] = [plain.getReader(), writable.getWriter(), readable.getReader()];
  let isWhole = false;
  /** Passes one chunk on. Two calls can overlap: the reader may get a chunk before the first call ends. */
  const feed = async (): Promise<void> => {
    const { done, value } = await source.read();
    if (!done) return input.write(value);
    if (isWhole) return;
    isWhole = true;
    await input.close();
  };
  const stop = (reason: unknown): void => {
    for (const stopped of [input.abort(reason), output.cancel(reason)]) stopped.catch(() => undefined);
  };
  const gzip: UnderlyingDefaultSource<Uint8Array> = {
    async pull(controller) {
      try {
        let isOut = false;
        const out = output.read().then((result) => {
          isOut = true;
          return result;
        });
        // A chunk that was there already is noticed before the first turn of the loop.
        await Promise.resolve();
        while (!isOut && !isWhole) await Promise.race([feed(), out]);
        const { done, value } = await out;
        if (done) controller.close();
        else controller.enqueue(value);
      } catch (error) {
        stop(error);
        throw error;
      }
    },
    async cancel(reason) {
      stop(reason);
      await source.cancel(reason);
    },
  };
  return new ReadableStream(gzip, { highWaterMark: 0 });
}
