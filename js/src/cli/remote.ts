/**
 * A store behind `varve/http`, with the calls that the commands need.
 *
 * Invariant: keys and values are exactly those of the store, because the handler never changes a value to fit. The token goes only to
 * the URL that was named, in a header.
 */

import { KEY_BYTES_MAX } from '../codec/plain-key.ts';
import type { VarveErrorCode } from '../errors.ts';
import { keyFromJson, keyToJson } from '../http/json-key.ts';
import { JSON_TYPE, NDJSON_TYPE, valueFromJson, valueOfBody } from '../http/media.ts';
import type { Problem } from '../http/problem.ts';
import { entryToJson } from '../rows/jsonl.ts';
import type {
  CountOptions,
  DeleteOptions,
  DeleteReceipt,
  Entry,
  Key,
  KeyRange,
  Receipt,
  ScanOptions,
  SetOptions,
  StoreStats,
  WriteOptions,
} from '../types.ts';
import { CommandError, Exit, exitOfCode } from './exit.ts';
import { linesOf, textsOf } from './lines.ts';
import { shown } from './text.ts';

/** One line of a range. */
interface Line {
  readonly key: unknown;
  readonly [form: string]: unknown;
}

/** A store behind `varve/http`. */
export class RemoteStore {
  readonly #base: string;
  readonly #signal: AbortSignal;

  constructor(url: string, signal: AbortSignal) {
    this.#base = url.replace(/\/+$/, '');
    this.#signal = signal;
  }

  async getEntry(key: Key): Promise<Entry<unknown> | undefined> {
    const response = await this.#fetch('GET', '/kv', { key });
    if (response.status === 404) {
      const problem = await problemOf(response);
      if (problem?.code === 'VARVE_NOT_FOUND') return undefined;
      throw this.#refused(response, problem);
    }
    const body = await this.#body(response, () => response.arrayBuffer());
    const type = (response.headers.get('content-type') ?? '').split(';', 1)[0] as string;
    const expires = response.headers.get('varve-expires');
    return {
      value: valueOfBody(type, new Uint8Array(body)),
      sequence: Number(/\d+/.exec(response.headers.get('etag') ?? '')?.[0]),
      expiresAt: expires === null ? undefined : new Date(expires),
    };
  }

  async set(key: Key, value: unknown, { expiresIn, durability }: SetOptions = {}): Promise<Receipt> {
    return this.#batch([{ op: 'set', ...(await entryToJson(key, value)), expiresIn }], durability);
  }

  async setMany(entries: Iterable<readonly [Key, unknown]>): Promise<Receipt> {
    const set = async ([key, value]: readonly [Key, unknown]) => ({ op: 'set', ...(await entryToJson(key, value)) });
    return this.#batch(await Promise.all([...entries].map(set)));
  }

  /** Deletes a key. The receipt always reports whether it was there. */
  async delete(key: Key, { durability }: DeleteOptions = {}): Promise<DeleteReceipt> {
    return this.#json<DeleteReceipt>(await this.#fetch('DELETE', '/kv', { key }, { existed: true, durability }));
  }

  async deleteRange(range: KeyRange, { durability }: WriteOptions = {}): Promise<Receipt> {
    return this.#json<Receipt>(await this.#fetch('DELETE', '/range', { ...range }, { durability }));
  }

  async *keys(options: ScanOptions = {}): AsyncGenerator<Key, undefined> {
    for await (const { key } of this.#range(options, true)) yield keyFromJson(key, KEY_BYTES_MAX);
  }

  async *entries(options: ScanOptions = {}): AsyncGenerator<[Key, unknown], undefined> {
    for await (const line of this.#range(options)) {
      yield [keyFromJson(line.key, KEY_BYTES_MAX), valueFromJson(line)];
    }
  }

  async count({ signal: _, ...range }: CountOptions = {}): Promise<number> {
    const { count } = await this.#json<{ count: number }>(await this.#fetch('GET', '/count', range));
    return count;
  }

  async stats(): Promise<StoreStats & { readonly name: string }> {
    return this.#json<StoreStats & { name: string }>(await this.#fetch('GET', '/stats', {}));
  }

  async close(): Promise<void> {}

  async *#range(
    { reverse, limit, signal: _, ...range }: ScanOptions,
    keysOnly?: true,
  ): AsyncGenerator<Line, undefined> {
    const options = { reverse: reverse || undefined, limit, keysOnly };
    const headers = { accept: NDJSON_TYPE };
    const response = await this.#check(await this.#fetch('GET', '/range', { ...range }, options, { headers }));
    if (response.body === null) return;
    try {
      for await (const line of linesOf(textsOf(response.body))) yield JSON.parse(line) as Line;
    } catch (error) {
      throw this.#broken('broke off its answer', error);
    }
  }

  async #batch(operations: readonly unknown[], durability?: string): Promise<Receipt> {
    const body = JSON.stringify(operations);
    const headers = { 'content-type': JSON_TYPE };
    const options = { atomic: true, durability };
    return this.#json<Receipt>(await this.#fetch('POST', '/batch', {}, options, { headers, body }));
  }

  async #fetch(
    method: string,
    path: string,
    keys: Readonly<Record<string, Key | undefined>>,
    options: Readonly<Record<string, unknown>> = {},
    init: { headers?: Record<string, string>; body?: string } = {},
  ): Promise<Response> {
    const query = new URLSearchParams();
    for (const [name, key] of Object.entries(keys)) {
      if (key !== undefined) query.set(name, JSON.stringify(keyToJson(key)));
    }
    for (const [name, option] of Object.entries(options)) if (option !== undefined) query.set(name, String(option));
    const headers = new Headers(init.headers);
    const token = process.env['VARVE_TOKEN'];
    if (token) headers.set('authorization', `Bearer ${token}`);
    const url = `${this.#base}${path}${query.size === 0 ? '' : `?${query}`}`;
    try {
      return await fetch(url, { ...init, method, headers, signal: this.#signal, redirect: 'error' });
    } catch (error) {
      throw this.#broken('cannot be reached', error);
    }
  }

  /** The error for a connection that failed. */
  #broken(what: string, error: unknown): CommandError {
    this.#signal.throwIfAborted();
    const { cause = error } = error as { cause?: unknown };
    const why = cause instanceof Error ? cause.message || (cause as { code?: string }).code : String(cause);
    return new CommandError(Exit.failed, `${shown(this.#base)} ${what}: ${why}.`);
  }

  #json<T>(response: Response): Promise<T> {
    return this.#body(response, () => response.json() as Promise<T>);
  }

  /** The body of an answer, which `read` reads to its end. */
  async #body<T>(response: Response, read: () => Promise<T>): Promise<T> {
    await this.#check(response);
    try {
      return await read();
    } catch (error) {
      throw this.#broken('broke off its answer', error);
    }
  }

  async #check(response: Response): Promise<Response> {
    if (response.ok) return response;
    throw this.#refused(response, await problemOf(response));
  }

  #refused(response: Response, problem: Problem | undefined): CommandError {
    const { status } = response;
    if (status === 401) {
      return new CommandError(Exit.failed, `${shown(this.#base)} needs a token: set VARVE_TOKEN in the environment.`);
    }
    if (problem === undefined) {
      return new CommandError(Exit.failed, `${shown(this.#base)} answered ${status}, and not as varve/http does.`);
    }
    const code = problem.code as VarveErrorCode | undefined;
    const exit = code === undefined ? Exit.failed : exitOfCode(code);
    return new CommandError(exit, `${shown(this.#base)} answered ${status}: ${problem.detail}`, code);
  }
}

/** The problem in a response of `varve/http`. */
async function problemOf(response: Response): Promise<Problem | undefined> {
  if (response.headers.get('content-type') !== 'application/problem+json') return undefined;
  return (await response.json().catch(() => undefined)) as Problem | undefined;
}
