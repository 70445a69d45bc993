// The head of the page: what the store is, how it opened, how loading goes, and what went wrong.
// Invariant: every state is a sentence, for readers of the page and for screen readers alike.

import { type RecoveryReport, type StorageReport, VarveError } from 'varve';
import { byId, setText } from './dom.ts';
import { formatBytes, formatCount, formatDuration } from './format.ts';
import type { LoadState } from './loader.ts';

export class Status {
  readonly #headline = byId('headline', HTMLElement);
  readonly #subline = byId('subline', HTMLElement);
  readonly #alert = byId('alert', HTMLElement);
  readonly #loading = byId('loading', HTMLElement);
  readonly #bar = byId('loading-bar', HTMLProgressElement);
  readonly #loadingText = byId('loading-text', HTMLElement);

  say(headline: string): void {
    setText(this.#headline, headline);
  }

  /** Where the store is kept and what opening it found. */
  show(storage: StorageReport, recovery: RecoveryReport): void {
    const why = storage.reason === undefined ? '' : `: ${storage.reason}`;
    const places: Record<string, string> = {
      opfs: 'OPFS, files of this origin on this device',
      indexeddb: `IndexedDB, a database of this origin on this device${why}`,
    };
    const place = `Storage: ${places[storage.kind] ?? `memory, gone with this tab${why}`}.`;
    setText(this.#subline, `${place.replace(/\.{2,}$/, '.')} Recovery: ${recoverySentence(recovery)}`);
  }

  /** Shows an error, in a sentence; undefined when there is none any more. */
  alarm(error: unknown): void {
    this.#alert.hidden = error === undefined;
    if (error === undefined) return setText(this.#alert, '');
    if (error instanceof VarveError) return setText(this.#alert, `${error.code}: ${error.message}`);
    setText(this.#alert, error instanceof Error ? error.message : String(error));
  }

  /** The store is open elsewhere without being shared, or its leader does not answer yet. */
  locked(error: VarveError): void {
    this.say('This store is open elsewhere');
    setText(this.#subline, `${error.code}: ${error.message} This tab keeps trying by itself.`);
  }

  showLoading(isLoading: boolean): void {
    this.#loading.hidden = !isLoading;
    if (isLoading) {
      this.#bar.removeAttribute('value');
      setText(this.#loadingText, 'Fetching the file of cities');
    }
  }

  /** How far loading is: of the requested rows where a number was requested, else of the file. */
  progress(state: LoadState, limit: number): void {
    const { rows, rowsPerSecond, bytes, bytesTotal } = state;
    if (Number.isFinite(limit)) this.#bar.value = rows / limit;
    else if (bytesTotal > 0) this.#bar.value = bytes / bytesTotal;
    const of = bytesTotal > 0 ? ` of ${formatBytes(bytesTotal)}` : '';
    const parts = [
      `${formatCount(rows)} rows stored`,
      `${formatCount(rowsPerSecond)} rows/s`,
      `${formatBytes(bytes)}${of}`,
      formatDuration(state.elapsedMs),
    ];
    setText(this.#loadingText, parts.join(' \u00b7 '));
  }
}

function recoverySentence({ state, records, recordsDropped }: RecoveryReport): string {
  switch (state) {
    case 'new':
      return 'none, the store is new.';
    case 'lost':
      return 'none, the files of this store are gone.';
    case 'clean':
      return 'clean, the log was sealed.';
    case 'replayed':
      return `${formatCount(records)} log records replayed.`;
    case 'torn':
      return `${formatCount(records)} log records replayed; a torn end was dropped, ${formatCount(recordsDropped)} records with it.`;
  }
}
