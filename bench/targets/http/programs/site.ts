/**
 * The paths of every server of the benchmark: those of the handler, and a bare one beside them.
 *
 * Invariant: `/bare` goes through the same server, and reads and sends as many bytes as the request that it is the floor of,
 * without handler, store or JSON.
 */

import type { Handler } from 'varve/http';

/** The bare path; the number of bytes to answer follows it. */
export const BARE = '/bare?answer=';
/** Of an object: the rows that its statements wrote since it was constructed, as the platform bills them. */
export const ROWS = '/rows-written';

const HEADERS = { 'content-type': 'application/json', 'cache-control': 'no-store' };

export function site(handler: Handler): Handler {
  const answers = new Map<number, string>();
  return async (request) => {
    const at = request.url.indexOf(BARE);
    if (at < 0) return handler(request);
    if (request.body !== null) await request.text();
    const bytes = Number(request.url.slice(at + BARE.length));
    const answer = answers.get(bytes) ?? 'x'.repeat(bytes);
    answers.set(bytes, answer);
    return new Response(answer, { headers: HEADERS });
  };
}
