/**
 * The service worker of the benchmark: the page works without a network after the first visit, and is cross-origin isolated
 * on a host that sends no headers.
 *
 * Invariant: while there is a network, nothing is served from the cache, so what was built last is what runs; without one,
 * everything comes from one cache, filled with the files of one build. Only answers of this origin are touched.
 */

export type {};

/** Put here by the build (scripts/site.mjs): a hash of all files, and their names. */
declare const OFFLINE: { readonly version: string; readonly files: readonly string[] };

const scope = self as unknown as ServiceWorkerGlobalScope;
const PREFIX = `varve-bench ${scope.registration.scope} `;
const CACHE = PREFIX + OFFLINE.version;

/** These headers make a page cross-origin isolated: a finer timer, and the browser's own measurement of memory. */
const ISOLATION = {
  'Cross-Origin-Opener-Policy': 'same-origin',
  'Cross-Origin-Embedder-Policy': 'require-corp',
  'Cross-Origin-Resource-Policy': 'same-origin',
};

scope.addEventListener('install', (event) => {
  event.waitUntil(fill());
});

scope.addEventListener('activate', (event) => {
  event.waitUntil(takeOver());
});

scope.addEventListener('fetch', (event) => {
  const { request } = event;
  const { origin, pathname } = new URL(request.url);
  const isOwn = origin === scope.location.origin && pathname.startsWith(new URL(scope.registration.scope).pathname);
  if (isOwn && request.method === 'GET') event.respondWith(answer(request));
});

async function fill(): Promise<void> {
  const cache = await caches.open(CACHE);
  // `no-cache` asks the server whether the browser's own copy is still right.
  await cache.addAll(OFFLINE.files.map((file) => new Request(file, { cache: 'no-cache' })));
  await scope.skipWaiting();
}

async function takeOver(): Promise<void> {
  const names = await caches.keys();
  await Promise.all(
    names.filter((name) => name.startsWith(PREFIX) && name !== CACHE).map((name) => caches.delete(name)),
  );
  await scope.clients.claim();
}

async function answer(request: Request): Promise<Response> {
  try {
    const response = await fetch(request);
    if (response.ok && isOfPeer(request)) await keep(request, response.clone());
    return isolated(response);
  } catch (error) {
    const cache = await caches.open(CACHE);
    // The address of a page carries the choice of suites; of a script, nothing that counts.
    const kept = await cache.match(request, { ignoreSearch: true });
    if (kept === undefined) throw error;
    return isolated(kept);
  }
}

/** Large files of peers are not kept until a run fetches them. */
function isOfPeer(request: Request): boolean {
  return new URL(request.url).pathname.includes('/peers/');
}

async function keep(request: Request, response: Response): Promise<void> {
  const cache = await caches.open(CACHE);
  // Without room the answer still goes to the page.
  await cache.put(request, response).catch(() => undefined);
}

/** The same answer with the headers of isolation. */
function isolated(response: Response): Response {
  // A redirect is the browser's to follow, and an answer without a status cannot be made anew.
  if (response.status === 0 || response.redirected) return response;
  const headers = new Headers(response.headers);
  for (const [name, value] of Object.entries(ISOLATION)) headers.set(name, value);
  const empty = [101, 204, 205, 304].includes(response.status);
  return new Response(empty ? null : response.body, {
    status: response.status,
    statusText: response.statusText,
    headers,
  });
}
