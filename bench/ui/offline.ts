/**
 * Registers the service worker, and says what the page can do for it.
 *
 * Invariant: a run that the command line drives has none: workers that start through a service worker start later. The page
 * is never reloaded by itself.
 */

import { button, byId, make, setText } from './dom.ts';

/** Registers the service worker and keeps the line about it. */
export async function offerOffline(): Promise<void> {
  const line = byId('offline');
  if (!('serviceWorker' in navigator) || !isSecureContext) {
    setText(line, 'This browser keeps no copy of the page here: it needs the network.');
    return;
  }
  try {
    await navigator.serviceWorker.register('./offline-worker.js', { updateViaCache: 'none' });
    await navigator.serviceWorker.ready;
    setText(line, 'Kept in this browser: the page works without a network.');
    line.dataset['state'] = 'ready';
    if (!crossOriginIsolated) offerReload();
  } catch (error) {
    setText(
      line,
      `The page could not be kept for use without a network: ${error instanceof Error ? error.message : error}`,
    );
  }
}

/** The host sends no headers, but the service worker does, from the next loading on. */
function offerReload(): void {
  byId('isolation').replaceChildren(
    make('span', {
      text: 'The timer of this page is coarse, as its host sends no isolation headers. Loaded again it is finer. ',
    }),
    button('Load again', () => location.reload()),
  );
}
