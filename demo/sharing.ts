// Which tab has the engine, this one or another, and how many share it.
// Invariant: it shows what `stats().sharing` reports. A tab that becomes leader shows that for a while, and how long a call had to wait.

import type { SharingReport } from 'varve';
import { sharingText } from '../js/src/inspector/sharing.ts';
import { byId, setText } from './dom.ts';
import { formatDuration } from './format.ts';

/** How long the news stays. */
const NEWS_MS = 8000;
/** A call that took longer may have waited for the new leader. */
const WAITED_MS = 20;

export class Sharing {
  readonly #line = byId('sharing', HTMLElement);
  readonly #text = byId('sharing-text', HTMLElement);
  #led: boolean | undefined;
  #news = '';
  #newsUntil = 0;

  constructor() {
    // With the same parameters as this tab's address.
    byId('sharing-open', HTMLAnchorElement).href = location.href;
  }

  /** @param tookMs how long the store took to answer */
  show(report: SharingReport | undefined, tookMs: number): void {
    this.#line.hidden = report === undefined;
    if (report === undefined) return;
    const { leads } = report;
    if (this.#led === false && leads) this.#succeed(tookMs);
    this.#led = leads;
    this.#line.dataset['role'] = leads ? 'leader' : 'follower';
    const hasNews = leads && performance.now() < this.#newsUntil;
    setText(this.#text, hasNews ? this.#news : sharingText(report));
  }

  #succeed(tookMs: number): void {
    const waited = tookMs > WAITED_MS ? `: a call made meanwhile was answered after ${formatDuration(tookMs)}` : '';
    this.#news = `This tab leads now${waited}.`;
    this.#newsUntil = performance.now() + NEWS_MS;
  }
}
