/**
 * The body of a request, read up to a limit.
 *
 * Invariant: memory never contains more than the limit and one chunk. A body that is announced as longer is not read at all.
 */

import { joined } from '../codec/joined.ts';
import { malformed, Refusal } from './refusal.ts';

/** The bytes of a body. Refuses a body longer than `bytesMax` with 413, and a compressed one with 415. */
export async function readBody(request: Request, bytesMax: number): Promise<Uint8Array> {
  const encoding = request.headers.get('content-encoding');
  if (encoding !== null && encoding.trim().toLowerCase() !== 'identity') {
    const detail = 'The body is compressed; send it uncompressed.';
    throw new Refusal(415, detail, 'VARVE_INVALID_ARGUMENT', { 'accept-encoding': 'identity' });
  }
  // RFC 9110, section 14.5. `curl -C 50 -T file` sends the rest of a file so.
  if (request.headers.has('content-range')) throw malformed('The body is a part (Content-Range); send all of it.');
  const announced = Number(request.headers.get('content-length') ?? 0);
  if (announced > bytesMax) throw tooLong(bytesMax);
  if (request.body === null) return new Uint8Array(0);
  const chunks: Uint8Array[] = [];
  let length = 0;
  const reader = request.body.getReader();
  for (;;) {
    const { done, value } = await reader.read().catch(() => {
      throw unread(request);
    });
    if (done) break;
    length += value.length;
    if (length > bytesMax) {
      // Not awaited: a client that continues to send must not delay the response.
      reader.cancel().catch(() => undefined);
      throw tooLong(bytesMax);
    }
    chunks.push(value);
  }
  // Over HTTP/2, Deno ends a body without an error when its connection breaks.
  if (length < announced) throw unread(request);
  return chunks.length === 1 ? chunks[0]! : joined(chunks);
}

/** The error of a body that could not be read: the client disconnected, or sent invalid HTTP. */
function unread({ signal }: Request): Error {
  return signal.aborted ? signal.reason : malformed('The body ended before it was complete.');
}

function tooLong(bytesMax: number): Refusal {
  return new Refusal(413, `A body takes at most ${bytesMax} bytes here; this one is longer.`, 'VARVE_INVALID_ARGUMENT');
}
