// Shared by the pages beside the cities: errors in a sentence, and stores that another page or worker has open for a while.
// Invariant: every error is shown, in the one place for it.

import { VarveError } from 'varve';
import { byId, setText } from './dom.ts';

/** Shows an error, in a sentence; undefined when there is none any more. */
export function alarm(error: unknown): void {
  const alert = byId('alert', HTMLElement);
  alert.hidden = error === undefined;
  setText(alert, error === undefined ? '' : sentence(error));
}

/** An error as it is shown: its code, where it has one, and its message. */
export function sentence(error: unknown): string {
  if (error instanceof VarveError) return `${error.code}: ${error.message}`;
  return error instanceof Error ? error.message : String(error);
}

/** Opens a store as soon as no page or worker has it open without sharing it. */
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

/** Reports every change of whether the page is visible. */
export function onVisibility(call: (isVisible: boolean) => void): void {
  document.addEventListener('visibilitychange', () => call(document.visibilityState === 'visible'));
}

/** Saves bytes as a file on the visitor's device. */
export function saveFile(name: string, bytes: Blob): void {
  const url = URL.createObjectURL(bytes);
  const link = document.createElement('a');
  link.href = url;
  link.download = name;
  link.click();
  // By then the browser has begun to read it.
  setTimeout(() => URL.revokeObjectURL(url), 60_000);
}
