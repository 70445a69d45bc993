/**
 * The store behind a server, through HTTP: loads it, resolves writes in doubt after a row, and compares it in the end.
 *
 * Invariant: the comparison covers every entry that a stream of the whole range gives, and no key may be missing.
 */

import { keyOf, type Ledger, valueText, type Write } from './ledger.ts';

const BATCH = 500;
const JSON_TYPE = { 'content-type': 'application/json' };
/** Attempts to find the server idle, and the milliseconds between two. */
const IDLE_TRIES = 200;
const IDLE_MS = 20;

/** A store behind a URL, and what it must hold. */
export class RemoteStore {
  readonly url: string;

  constructor(
    url: string,
    readonly ledger: Ledger,
  ) {
    this.url = url.replace(/\/$/, '');
  }

  /** The same store after its server was started anew. */
  at(url: string): RemoteStore {
    return new RemoteStore(url, this.ledger);
  }

  async load(): Promise<void> {
    await this.#write(Array.from({ length: this.ledger.base }, (_, number) => ({ number, version: 1 })));
  }

  /** After a row: reads the keys in doubt, and writes deleted keys of the base again. Returns whether each outcome was possible. */
  async resolveDoubts(): Promise<boolean> {
    const { ledger } = this;
    await this.#untilIdle();
    const numbers = ledger.doubtful;
    let isRight = true;
    for (let at = 0; at < numbers.length; at += BATCH) {
      const part = numbers.slice(at, at + BATCH);
      const { results } = (await this.#batch(part.map((number) => ({ op: 'get', key: keyOf(number) })))) as Results;
      for (const [i, number] of part.entries()) {
        const value = results[i]?.value;
        if (!ledger.resolve(number, value === undefined ? undefined : JSON.stringify(value))) isRight = false;
      }
    }
    await this.#write(ledger.missing().map((number) => ledger.next(number)));
    return isRight;
  }

  /** Compares every entry with the last acknowledged write; a difference in words, or undefined. */
  async compare(): Promise<string | undefined> {
    const response = await fetch(`${this.url}/range`, { headers: { accept: 'application/x-ndjson' } });
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
      await this.#batch(
        part.map((write) => ({ op: 'set', key: keyOf(write.number), value: JSON.parse(valueText(write)) as unknown })),
        '?atomic=true',
      );
      this.ledger.acknowledge(part);
    }
  }

  async #batch(operations: readonly object[], query = ''): Promise<unknown> {
    const body = JSON.stringify(operations);
    const response = await fetch(`${this.url}/batch${query}`, { method: 'POST', headers: JSON_TYPE, body });
    const text = await response.text();
    if (!response.ok)
      throw new Error(`The server refused a batch of ${operations.length} with ${response.status}: ${text}`);
    return JSON.parse(text);
  }

  /** Waits until the server answers nobody but us. */
  async #untilIdle(): Promise<void> {
    for (let tries = 0; tries < IDLE_TRIES; tries++) {
      const text = await (await fetch(`${this.url}/metrics`)).text();
      if (/^varve_http_requests_in_flight 1$/m.test(text)) return;
      await new Promise((resolve) => setTimeout(resolve, IDLE_MS));
    }
    throw new Error('The server still answers requests whose connections have ended. Is it stuck?');
  }
}

interface Results {
  readonly results: readonly { readonly value?: unknown }[];
}
