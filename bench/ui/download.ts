/** Saving a text as a file of the person who asked for it. */

import { make } from './dom.ts';

/** Offers `text` as a download. */
export function download(name: string, type: string, text: string): void {
  const link = make('a', { attributes: { href: URL.createObjectURL(new Blob([text], { type })), download: name } });
  link.click();
  URL.revokeObjectURL(link.href);
}

/** The name of a file of a run: `varve-bench-2026-01-31-1405.json`. */
export function fileName(date: string, ending: string): string {
  return `varve-bench-${date.slice(0, 16).replace('T', '-').replace(':', '')}.${ending}`;
}
