/**
 * Results as a page or as a stream, whichever the client prefers (Accept).
 *
 * Invariant: results are read as the client takes them. Neither a stream nor a page keeps more in memory than its limits. A page
 * ends at its `limit`, or earlier if its results take too many bytes.
 */

import { bodyResponse, VARY } from './compression.ts';
import type { Exchange } from './exchange.ts';
import { type Line, lineStream } from './line-stream.ts';
import { JSON_TYPE, NDJSON_TYPE, preferred } from './media.ts';
import { Refusal } from './refusal.ts';

/** The fields of a page besides its results. */
interface PageEnd {
  /** A member of the page, as JSON without braces. */
  readonly member: string;
  /** The URL of the following page, if the page has one. */
  readonly next?: string | null;
}

/**
 * Responds with the lines that `read` gives up to a limit. `name` is the member of a page that has them. `end` gets the last line of a
 * page that is not the last one, otherwise undefined.
 */
export async function listResponse<K, V, L extends Line>(
  exchange: Exchange<K, V>,
  name: string,
  wanted: number | undefined,
  read: (limit: number | undefined) => AsyncGenerator<L, void, undefined>,
  end: (last: L | undefined) => PageEnd,
): Promise<Response> {
  const { request, limits } = exchange;
  const type = preferred(request.headers.get('accept'), [JSON_TYPE, NDJSON_TYPE]);
  if (type === undefined) {
    throw new Refusal(406, `A range can be sent as ${JSON_TYPE} or ${NDJSON_TYPE}.`, 'VARVE_INVALID_ARGUMENT');
  }
  const headers = new Headers({ 'content-type': type, 'cache-control': 'no-store', vary: VARY });
  if (type === NDJSON_TYPE) {
    const { stream, firstBytes } = await lineStream(read(wanted), exchange.failed);
    return bodyResponse(exchange, stream, firstBytes, headers);
  }
  const limit = Math.min(wanted ?? limits.results, limits.results);
  const texts: string[] = [];
  let bytes = 0;
  let last: L | undefined;
  let isMore = false;
  // One result more than the page has, to find out whether there is a next page.
  for await (const line of read(limit === 0 ? 0 : limit + 1)) {
    isMore = texts.length === limit || bytes >= limits.answerBytes;
    if (isMore) break;
    texts.push(line.text);
    bytes += line.text.length;
    last = line;
  }
  const { member, next = null } = end(isMore ? last : undefined);
  if (next !== null) headers.set('link', `<${next}>; rel="next"`);
  const body = `{"${name}":[${texts.join(',')}],${member}}`;
  return bodyResponse(exchange, body, body.length, headers);
}
