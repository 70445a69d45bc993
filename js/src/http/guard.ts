/**
 * Decides which requests are allowed, by host, site and token.
 *
 * A browser sends requests for any page to any address that it can reach, including localhost and private networks. So
 * requests from other sites are refused, reads too. They are recognized by the headers of browsers: `Sec-Fetch-Site`, or
 * `Origin` if a browser does not send the first. (After Go's `http.CrossOriginProtection`, which allows reads.) Programs send
 * neither.
 *
 * Invariant: without `cors` no response has a CORS header. No other part of a request is examined before it has passed here.
 */

import { Refusal } from './refusal.ts';
import type { Access, CorsOptions, HttpOptions } from './types.ts';

const METHODS = 'GET, HEAD, PUT, POST, DELETE';
const REQUEST_HEADERS = 'authorization, content-type, accept, if-match, if-none-match';
const RESPONSE_HEADERS = 'etag, link, retry-after, varve-expires';
const CORS_AGE_DEFAULT = 600;

/** Refuses a request to another host (421), or from another site (403). */
export function guardOrigin(request: Request, url: URL, { hosts, cors }: HttpOptions<never>): void {
  if (hosts !== undefined && !hosts.some((host) => host.toLowerCase() === url.host)) {
    throw new Refusal(421, 'This handler does not answer for that host.');
  }
  const { headers } = request;
  const origin = headers.get('origin');
  if (origin !== null && isAllowed(origin, cors)) return;
  const site = headers.get('sec-fetch-site');
  const own =
    site !== null ? site === 'same-origin' || site === 'none' : origin === null || hostOf(origin) === url.host;
  if (!own) throw new Refusal(403, 'Requests of other sites are refused. See the option cors.');
}

/** The response to an OPTIONS request, such as a preflight; undefined for other methods. */
export function preflight(request: Request, cors: CorsOptions | undefined): Response | undefined {
  if (request.method !== 'OPTIONS') return undefined;
  const asked = request.headers.has('access-control-request-method');
  if (!asked || cors === undefined) return new Response(null, { status: 204, headers: { allow: METHODS } });
  const headers = {
    'access-control-allow-methods': METHODS,
    'access-control-allow-headers': REQUEST_HEADERS,
    'access-control-max-age': String(cors.maxAge ?? CORS_AGE_DEFAULT),
  };
  return new Response(null, { status: 204, headers });
}

/** Accepts a request by its token, or refuses it with 401. */
export async function guardAccess(
  request: Request,
  kind: Access['kind'],
  authorize: HttpOptions['authorize'],
): Promise<void> {
  if (authorize === undefined) return;
  const header = request.headers.get('authorization');
  const token = header === null ? undefined : /^bearer +([\w.~+/-]+=*)$/i.exec(header.trim())?.[1];
  if (await authorize({ kind, token, request })) return;
  const challenge = `Bearer realm="varve"${header === null ? '' : ', error="invalid_token"'}`;
  throw new Refusal(401, 'This needs a valid bearer token.', undefined, { 'www-authenticate': challenge });
}

/** Adds the headers of every response: other sites cannot use it as a script, and the named origins get CORS headers. */
export function sealHeaders(headers: Headers, request: Request, cors: CorsOptions | undefined): void {
  headers.set('x-content-type-options', 'nosniff');
  const origin = request.headers.get('origin');
  const allowed = origin !== null && isAllowed(origin, cors);
  headers.set('cross-origin-resource-policy', allowed ? 'cross-origin' : 'same-origin');
  if (cors === undefined) return;
  headers.append('vary', 'Origin');
  if (!allowed) return;
  headers.set('access-control-allow-origin', cors.origins === '*' ? '*' : origin);
  headers.set('access-control-expose-headers', RESPONSE_HEADERS);
}

function isAllowed(origin: string, cors: CorsOptions | undefined): boolean {
  return cors !== undefined && (cors.origins === '*' || cors.origins.includes(origin));
}

/** The host of an origin. Only the host is compared: behind a proxy that ends TLS, the handler and the browser see different schemes. */
function hostOf(origin: string): string | undefined {
  try {
    return new URL(origin).host;
  } catch {
    return undefined;
  }
}
