/**
 * The store behind a server, through HTTP: loads it, and compares it in the end.
 *
 * Invariant: the comparison covers every entry that a stream of the whole range gives, and no key may be missing.
 */

import { ALL, setOf } from './calls.ts';
import type { Ledger, Write } from './ledger.ts';

const BATCH = 500;

export class RemoteStore {
  readonly url: string;

  constructor(
    url: string,
    readonly ledger: Ledger,
  ) {
    this.url = url.replace(/\/$/, '');
  }

  async load(): Promise<void> {
    await this.#write(Array.from({ length: this.ledger.base }, (_, number) => ({ number, version: 1 })));
  }

  async restore(): Promise<void> {
    await this.#write(this.ledger.missing().map((number) => this.ledger.next(number)));
  }

  /** Compares every entry with the last acknowledged write; a difference in words, or undefined. */
  async compare(): Promise<string | undefined> {
    const response = await fetch(this.url + ALL, { headers: { accept: 'application/x-ndjson' } });
    if (!response.ok) return `The whole range was answered with ${response.status}.`;
    let count = 0;
    for (const line of (await response.text()).split('\n')) {
      if (line === '') continue;
      const { key, value } = JSON.parse(line) as { key: string; value: unknown };
      if (!this.ledger.matches(key, value))
        return `The store holds another value of ${key} than was acknowledged: ${line}`;
      count++;
    }
    const expected = this.ledger.count();
    return count === expected ? undefined : `The store holds ${count} of ${expected} acknowledged keys.`;
  }

  async #write(writes: readonly Write[]): Promise<void> {
    for (let at = 0; at < writes.length; at += BATCH) {
      const part = writes.slice(at, at + BATCH);
      const body = `[${part.map(setOf).join(',')}]`;
      const request = { method: 'POST', headers: { 'content-type': 'application/json' }, body };
      const response = await fetch(`${this.url}/batch?atomic=true`, request);
      if (!response.ok) throw new Error(`The server refused a batch with ${response.status}: ${await response.text()}`);
      this.ledger.acknowledge(part);
    }
  }
}
