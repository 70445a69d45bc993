/**
 * What becomes of a page: seen or hidden, frozen, gone into the back/forward cache, back again.
 *
 * Invariant: what is about to be frozen is told before it is; in a worker nothing is told.
 */

/** Who is told. */
export interface Watching {
  /** The page can be seen, or not. */
  see(isVisible: boolean): void;
  /** It is about to be frozen, or may never come back. */
  suspend(): void;
  /** It came back. */
  resume(): void;
}

/** Tells `told` what becomes of this page. Gives what ends that. */
export function watchPage(told: Watching): () => void {
  const target: Partial<Pick<Window, 'addEventListener' | 'removeEventListener' | 'document'>> = globalThis;
  const { document } = target;
  const stop = new AbortController();
  const { signal } = stop;
  target.addEventListener?.(
    'pagehide',
    (event) => {
      if (event.persisted) told.suspend();
      else told.see(false);
    },
    { signal },
  );
  target.addEventListener?.('pageshow', () => told.resume(), { signal });
  document?.addEventListener('visibilitychange', () => told.see(isVisible()), { signal });
  document?.addEventListener('freeze', () => told.suspend(), { signal });
  document?.addEventListener('resume', () => told.resume(), { signal });
  return () => stop.abort();
}

/** Whether the page can be seen; a worker is taken for seen. */
export function isVisible(): boolean {
  return globalThis.document?.visibilityState !== 'hidden';
}
