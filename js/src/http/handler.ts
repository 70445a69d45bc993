/**
 * The fetch handler: guards, the table of routes, and the common parts of all responses.
 *
 * Invariant: the promise of a handler never rejects; every error becomes a response (problem.ts). A body that the client did not
 * ask for (HEAD) is cancelled, so that no work continues for it.
 */

import { KEY_BYTES_MAX } from '../codec/plain-key.ts';
import { invalid } from '../errors.ts';
import { checkOptions, type Known } from '../options.ts';
import type { Key } from '../types.ts';
import { runBatch } from './batch.ts';
import { bodyResponse } from './compression.ts';
import { deleteEntry, getEntry, putEntry } from './entry.ts';
import { type Exchange, jsonResponse, type Limits } from './exchange.ts';
import { countIn, findIn } from './find.ts';
import { guardAccess, guardOrigin, preflight, sealHeaders } from './guard.ts';
import { METRICS_TYPE, Metrics } from './metrics.ts';
import { problemOf, problemResponse } from './problem.ts';
import { Query } from './query.ts';
import { countRange, deleteRange, getRange } from './range.ts';
import { Refusal } from './refusal.ts';
import type { Access, CorsOptions, Handler, HttpCollection, HttpLimits, HttpOptions, HttpStore } from './types.ts';

type Endpoint<K, V> = (exchange: Exchange<K, V>, segment: string | undefined) => Promise<Response>;

interface Route<K, V> {
  readonly kind: Access['kind'];
  readonly run: Endpoint<K, V>;
}

type Routes<K, V> = Readonly<Record<string, Readonly<Partial<Record<string, Route<K, V>>>>>>;

const LIMITS: Limits = {
  bodyBytes: 8 * 1024 * 1024,
  keyBytes: 4096,
  results: 1000,
  answerBytes: 16 * 1024 * 1024,
  operations: 1000,
  // Below it gzip saves two packets at most, and costs the server some 0.2 ms: ten times as much as a read of the entry.
  gzipBytes: 4096,
};

const CORS: Known<CorsOptions> = { origins: 1, maxAge: 1 };
const HTTP: Known<HttpOptions> = {
  ...{ base: 1, authorize: 1, cors: 1, hosts: 1, limits: 1, keys: 1, collections: 1, onError: 1 },
};

/**
 * Makes a fetch handler for a store. Pass it to `Deno.serve`, `Bun.serve`, a Worker's `fetch`, a service worker, or to a
 * package that serves it on Node. docs/guide/http.md describes its routes and bodies. The handler keeps nothing open: to shut
 * down, stop serving, then close the store. Throws `VARVE_INVALID_ARGUMENT` for an option that makes no sense.
 *
 * @example
 * const db = await open('notes', { storage });
 * Deno.serve(createHandler(db, { authorize: bearer(token) }));
 */
export function createHandler<K = Key, V = unknown>(store: HttpStore<K, V>, options: HttpOptions<K> = {}): Handler {
  checkOptions(options, HTTP);
  checkOptions(options.cors, CORS);
  checkAccess(options as HttpOptions<never>);
  const limits = checkedLimits(options.limits);
  const base = checkedBase(options.base);
  const metrics = new Metrics();
  const routes = routesOf(metrics, store, options.collections);
  const { keys, cors, authorize } = options;

  async function answer(
    request: Request,
    url: URL,
    [route, segment]: ReturnType<typeof placeOf>,
    failed: Exchange<K, V>['failed'],
  ) {
    guardOrigin(request, url, options as HttpOptions<never>);
    const flight = preflight(request, cors);
    if (flight !== undefined) return flight;
    const methods = route === undefined ? undefined : own(routes, route);
    if (methods === undefined) {
      // The response to a client without a token does not show which paths exist.
      await guardAccess(request, 'read', authorize);
      throw new Refusal(404, `There is nothing at this path. The paths are ${Object.keys(routes).join(', ')}.`);
    }
    const found = own(methods, request.method === 'HEAD' ? 'GET' : request.method);
    await guardAccess(request, found?.kind ?? 'read', authorize);
    if (found === undefined) throw methodRefused(Object.keys(methods));
    const query = new Query(url.search, limits.keyBytes);
    const wait = { signal: request.signal };
    return found.run({ request, wait, query, store, limits, keys, base, failed }, segment);
  }

  return async (request) => {
    const started = performance.now();
    const url = new URL(request.url);
    const place = placeOf(url.pathname, base);
    const [route] = place;
    const label = route !== undefined && Object.hasOwn(routes, route) ? route : 'other';
    const isAbort = (error: unknown): boolean => {
      const { aborted, reason } = request.signal;
      return aborted && (error === reason || (error as Error | undefined)?.name === 'AbortError');
    };
    const failed = (error: unknown): void => {
      const { status } = problemOf(error);
      if (status < 500 || isAbort(error)) return;
      metrics.noteFailure(label, status);
      report(options.onError, error, request);
    };
    metrics.inFlight++;
    let response: Response;
    try {
      response = await answer(request, url, place, failed);
    } catch (error) {
      // Nobody reads a response after the client has disconnected. Proxies log the status 499 in that case.
      response = problemResponse(isAbort(error) ? new Refusal(499, 'The client has closed the request.') : error);
      if (response.status >= 500) report(options.onError, error, request);
    }
    metrics.inFlight--;
    metrics.note(label, request.method, response.status, (performance.now() - started) / 1000);
    sealHeaders(response.headers, request, cors);
    return request.method === 'HEAD' ? headOf(response) : response;
  };
}

function routesOf<K, V>(
  metrics: Metrics,
  store: HttpStore<K, V>,
  collections: readonly HttpCollection[] = [],
): Routes<K, V> {
  const byName = new Map(collections.map((one) => [one.name, one]));
  return {
    '/kv': {
      GET: { kind: 'read', run: getEntry },
      PUT: { kind: 'write', run: putEntry },
      DELETE: { kind: 'write', run: deleteEntry },
    },
    '/range': { GET: { kind: 'read', run: getRange }, DELETE: { kind: 'write', run: deleteRange } },
    ...(byName.size > 0
      ? {
          '/find': { GET: { kind: 'read', run: findIn(byName) } },
          '/count-by': { GET: { kind: 'read', run: countIn(byName) } },
        }
      : {}),
    '/count': { GET: { kind: 'read', run: countRange } },
    '/batch': { POST: { kind: 'write', run: runBatch } },
    '/health': {
      GET: {
        kind: 'health',
        run: async ({ query }) => {
          query.end();
          // Tests what every writer needs: an engine that responds and a log that can be flushed.
          await store.flush();
          return jsonResponse({ status: 'ok' });
        },
      },
    },
    '/stats': {
      GET: {
        kind: 'metrics',
        run: async ({ query }) => {
          query.end();
          const stats = await store.stats?.();
          if (stats === undefined)
            throw new Refusal(404, 'This is a view of a store, which has no numbers of its own.');
          return jsonResponse({ name: store.name, ...stats });
        },
      },
    },
    '/metrics': {
      GET: {
        kind: 'metrics',
        run: async (exchange) => {
          exchange.query.end();
          const text = metrics.text(store.name, await store.stats?.());
          const headers = { 'content-type': METRICS_TYPE, 'cache-control': 'no-store', vary: 'Accept-Encoding' };
          return bodyResponse(exchange, text, text.length, new Headers(headers));
        },
      },
    },
  };
}

/** The route of a path and, under `/kv`, `/find` and `/count-by`, the one segment after it. */
function placeOf(pathname: string, base: string): [route: string | undefined, segment: string | undefined] {
  if (!pathname.startsWith(`${base}/`)) return [undefined, undefined];
  const path = pathname.slice(base.length);
  const [, route = path, segment] = /^(\/kv|\/find|\/count-by)\/([^/]+)$/.exec(path) ?? [];
  return [route, segment];
}

/** A member of the object itself, not of its prototype: clients can send any text as a method. */
function own<T>(members: Readonly<Partial<Record<string, T>>>, name: string): T | undefined {
  return Object.hasOwn(members, name) ? members[name] : undefined;
}

function report(onError: HttpOptions['onError'], error: unknown, request: Request): void {
  try {
    onError?.(error, request);
  } catch {
    // The client gets its response even if `onError` fails.
  }
}

function headOf(response: Response): Response {
  const { status, headers, body } = response;
  body?.cancel().catch(() => undefined);
  return new Response(null, { status, headers });
}

function methodRefused(methods: readonly string[]): Refusal {
  const allowed = methods.flatMap((method) => (method === 'GET' ? ['GET', 'HEAD'] : [method])).join(', ');
  return new Refusal(405, `This path takes ${allowed}.`, 'VARVE_INVALID_ARGUMENT', { allow: allowed });
}

/** Checks the options that decide who is answered: programs in JavaScript can pass anything. */
function checkAccess({ authorize, cors, hosts }: HttpOptions<never>): void {
  if (authorize !== undefined && typeof authorize !== 'function') {
    throw invalid('authorize is a function. For tokens, pass bearer(token).');
  }
  if (hosts !== undefined && !(Array.isArray(hosts) && hosts.every((host) => typeof host === 'string'))) {
    throw invalid("hosts is a list such as ['localhost:8080'].");
  }
  const origins = cors === undefined ? '*' : cors.origins;
  if (origins !== '*' && !(Array.isArray(origins) && origins.every(isOrigin))) {
    throw invalid("cors.origins is '*' or a list of origins such as ['https://app.example'], without a path.");
  }
}

/** Whether this is an origin as browsers send it. Those of apps have schemes of their own, such as `capacitor://localhost`. */
function isOrigin(text: unknown): boolean {
  try {
    const { protocol, host } = new URL(text as string);
    return text === `${protocol}//${host}`;
  } catch {
    return false;
  }
}

function checkedBase(base = ''): string {
  const bare = base.replace(/\/$/, '');
  if (bare === '' || /^(\/[\w.~-]+)+$/.test(bare)) return bare;
  throw invalid("base is a path such as '/api/store'.");
}

function checkedLimits(given: HttpLimits = {}): Limits {
  checkOptions(given, LIMITS);
  const limits = { ...LIMITS };
  for (const [name, limit] of Object.entries(given)) {
    if (limit === undefined) continue;
    const most = name === 'keyBytes' ? KEY_BYTES_MAX : Number.MAX_SAFE_INTEGER;
    if (!Number.isSafeInteger(limit) || limit < 1 || limit > most) {
      throw invalid(`The limit ${name} is an integer from 1 to ${most}.`);
    }
    limits[name as keyof Limits] = limit;
  }
  return limits;
}
