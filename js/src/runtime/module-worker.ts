/**
 * Starting module workers.
 *
 * Invariant: browsers start only scripts of the page's origin. A script of another origin, for example of a CDN, is imported by a
 * script of this one. Its server must allow that (CORS), and a Content-Security-Policy of the page needs `worker-src blob:`.
 */

/** Starts a module worker. */
export function moduleWorker(url: string, name: string): Worker {
  return new Worker(isForeign(url) ? importing(url) : url, { type: 'module', name });
}

/**
 * Starts the worker whose script lies beside a module of another origin. Otherwise undefined: the caller starts it in the one form that
 * every bundler finds.
 */
export function foreignWorker(module: string, file: string, name: string): Worker | undefined {
  return isForeign(module) ? moduleWorker(module.replace(/[^/]*$/, file), name) : undefined;
}

/** The address of a script of this origin that imports a module. */
function importing(url: string): string {
  return URL.createObjectURL(new Blob([`import ${JSON.stringify(url)}`], { type: 'text/javascript' }));
}

function isForeign(url: string): boolean {
  return /^https?:/.test(url) && globalThis.origin !== undefined && new URL(url).origin !== origin;
}
