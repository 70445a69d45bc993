// What the pages beside the cities have in common: errors in a sentence, and stores that somebody else holds for a while.
// Invariant: what goes wrong is said, in the one place for it.

import { VarveError } from 'varve';
import { byId, setText } from './dom.ts';

/** Says what is wrong, in a sentence; undefined when nothing is any more. */
export function alarm(error: unknown): void {
  const alert = byId('alert', HTMLElement);
  alert.hidden = error === undefined;
  setText(alert, error === undefined ? '' : sentence(error));
}

/** An error as it is told: its code, where it has one, and its message. */
export function sentence(error: unknown): string {
  if (error instanceof VarveError) return `${error.code}: ${error.message}`;
  return error instanceof Error ? error.message : String(error);
}

/** Opens a store as soon as nobody holds it who does not share it. */
export async function openPatiently<T>(attempt: () => Promise<T>): Promise<T> {
  for (;;) {
    try {
      const opened = await attempt();
      alarm(undefined);
      return opened;
    } catch (error) {
      if (!(error instanceof VarveError) || error.code !== 'VARVE_LOCKED') throw error;
      alarm(error);
    }
  }
}

/** Calls with every change of whether the page can be seen. */
export function onVisibility(call: (is_visible: boolean) => void): void {
  document.addEventListener('visibilitychange', () => call(document.visibilityState === 'visible'));
}

/** Saves bytes as a file of the visitor's. */
export function saveFile(name: string, bytes: Blob): void {
  const url = URL.createObjectURL(bytes);
  const link = document.createElement('a');
  link.href = url;
  link.download = name;
  link.click();
  // The browser has begun to read it by then.
  setTimeout(() => URL.revokeObjectURL(url), 60_000);
}
