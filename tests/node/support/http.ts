/** A store behind its fetch handler, called as a program would call it. */

import { createHandler, type Handler, type HttpOptions } from '../../../js/src/http.ts';
import { open } from '../../../js/src/index.ts';
import type { Store } from '../../../js/src/store/store.ts';
import type { Key, ScanOptions } from '../../../js/src/types.ts';
import { wasm } from './engine.ts';
import { KeptDevices } from './kept-devices.ts';

/** The origin that the handler sees. */
export const ORIGIN = 'http://varve.test';

/** The parts of a request besides method and path. */
export interface Sent {
  readonly body?: BodyInit | null;
  readonly headers?: Record<string, string>;
  readonly signal?: AbortSignal;
}

/** A store, its handler, and a way to call it. */
export interface Served {
  readonly db: Store<Key, unknown>;
  readonly handler: Handler;
  /** Sends a request; a path is taken from the handler's root. */
  send(method: string, path: string, sent?: Sent): Promise<Response>;
  /** Puts JSON. */
  put(path: string, value: unknown, headers?: Record<string, string>): Promise<Response>;
  /** Posts a batch. */
  batch(operations: unknown, query?: string): Promise<Response>;
}

/** Serves a new store over the real engine. */
export async function serve(options: HttpOptions<Key> = {}): Promise<Served> {
  const db = await open('http', { storage: new KeptDevices(), wasm });
  return served(db, createHandler(db, options));
}

/** Calls a handler. */
export function served(db: Store<Key, unknown>, handler: Handler): Served {
  const send: Served['send'] = (method, path, sent = {}) =>
    handler(new Request(`${ORIGIN}${path}`, { method, ...sent }));
  const json = { 'content-type': 'application/json' };
  return {
    db,
    handler,
    send,
    put: (path, value, headers = {}) =>
      send('PUT', path, { body: JSON.stringify(value), headers: { ...json, ...headers } }),
    batch: (operations, query = '') =>
      send('POST', `/batch${query}`, { body: JSON.stringify(operations), headers: json }),
  };
}

/** The same store, and how many entries its scans have returned so far. */
export function counted(db: Store<Key, unknown>): { store: Store<Key, unknown>; given(): number } {
  let given = 0;
  async function* entries(options?: ScanOptions<Key>): AsyncGenerator<[Key, unknown], void, undefined> {
    for await (const entry of db.entries(options)) {
      given++;
      yield entry;
    }
  }
  const store = new Proxy(db, {
    get(target, name) {
      if (name === 'entries') return entries;
      const member: unknown = Reflect.get(target, name, target);
      return typeof member === 'function' ? member.bind(target) : member;
    },
  });
  return { store, given: () => given };
}

/** Status and body of a problem. */
export async function problem(response: Response): Promise<{ status: number; code?: string; detail: string }> {
  const { status, detail, code } = (await response.json()) as { status: number; detail: string; code?: string };
  if (status !== response.status) throw new Error(`The problem says ${status}, the answer ${response.status}.`);
  return code === undefined ? { status, detail } : { status, code, detail };
}

/** A key as it appears in a query. */
export function query(json: unknown): string {
  return encodeURIComponent(JSON.stringify(json));
}
