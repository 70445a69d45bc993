/**
 * Watches the state of a page: visible or hidden, frozen, gone into the back/forward cache, back again.
 *
 * Invariant: `suspend` is called before the page is frozen, but after the program's own listeners, which may still save something. When
 * a page is left, `pagehide` comes first, then `visibilitychange` (unless the page was hidden), then `freeze` (in Chromium only). Without
 * a document only `retry` is called.
 */

/** The callbacks of `watchPage`. */
interface Watching {
  /** The page became visible or hidden. */
  see(isVisible: boolean): void;
  /** The page is being left. Its listeners may be called again. */
  leave(): void;
  /** The page is about to be frozen, or may never come back. */
  suspend(): void;
  /** The page came back. */
  resume(): void;
  /** The network is back. */
  retry(): void;
}

/** Calls `watcher` when the state of this page changes. Returns a function that ends the watching. */
export function watchPage(watcher: Watching): () => void {
  const target: Partial<Pick<Window, 'addEventListener' | 'document'>> = globalThis;
  const { document } = target;
  const stop = new AbortController();
  const { signal } = stop;
  const unwatch = (): void => stop.abort();
  target.addEventListener?.('online', () => watcher.retry(), { signal });
  if (document === undefined) return unwatch;
  let isLeft = false;
  /** The page may come back, and no `freeze` says when it is frozen. */
  let isKept = false;
  const suspend = (): void => {
    if (isLeft && isKept) watcher.suspend();
  };
  const hide = (event: PageTransitionEvent): void => {
    isLeft = true;
    isKept = event.persisted && !('onfreeze' in document);
    watcher.leave();
    if (!isVisible()) suspend();
    // Where no `visibilitychange` follows.
    else setTimeout(suspend);
  };
  target.addEventListener?.(
    'pagehide',
    () => {
      // A listener that is added now comes last.
      target.addEventListener?.('pagehide', hide, { once: true, signal });
    },
    { capture: true, signal },
  );
  target.addEventListener?.(
    'visibilitychange',
    () => {
      if (!isLeft || isVisible()) return;
      watcher.leave();
      suspend();
    },
    { signal },
  );
  target.addEventListener?.(
    'pageshow',
    () => {
      isLeft = false;
      watcher.resume();
    },
    { signal },
  );
  document.addEventListener('visibilitychange', () => watcher.see(isVisible()), { signal });
  document.addEventListener('freeze', () => watcher.suspend(), { signal });
  document.addEventListener('resume', () => watcher.resume(), { signal });
  return unwatch;
}

/** Whether the page is visible; a worker counts as visible. */
export function isVisible(): boolean {
  return globalThis.document?.visibilityState !== 'hidden';
}
