/**
 * Watches the state of a page: visible or hidden, frozen, gone into the back/forward cache, back again.
 *
 * Invariant: `suspend` is called before the page is frozen. In a worker no callback is called.
 */

/** The callbacks of `watchPage`. */
interface Watching {
  /** The page became visible or hidden. */
  see(isVisible: boolean): void;
  /** The page is about to be frozen, or may never come back. */
  suspend(): void;
  /** The page came back. */
  resume(): void;
  /** The network is back. */
  retry(): void;
}

/** Calls `watcher` when the state of this page changes. Returns a function that ends the watching. */
export function watchPage(watcher: Watching): () => void {
  const target: Partial<Pick<Window, 'addEventListener' | 'removeEventListener' | 'document'>> = globalThis;
  const { document } = target;
  const stop = new AbortController();
  const { signal } = stop;
  target.addEventListener?.(
    'pagehide',
    (event) => {
      if (event.persisted) watcher.suspend();
      else watcher.see(false);
    },
    { signal },
  );
  target.addEventListener?.('pageshow', () => watcher.resume(), { signal });
  target.addEventListener?.('online', () => watcher.retry(), { signal });
  document?.addEventListener('visibilitychange', () => watcher.see(isVisible()), { signal });
  document?.addEventListener('freeze', () => watcher.suspend(), { signal });
  document?.addEventListener('resume', () => watcher.resume(), { signal });
  return () => stop.abort();
}

/** Whether the page is visible; a worker counts as visible. */
export function isVisible(): boolean {
  return globalThis.document?.visibilityState !== 'hidden';
}
