// Pages that fetch their calls from the site, for a browser that no program can drive without making its profile a private
// one. The page's half is tests/engines/fixtures/remote.ts.
//
//   GET  /remote/<page>/next      waits for a call, answers its number
//   GET  /remote/call/<n>.js      the call as a module: the policy of the pages forbids to evaluate text
//   POST /remote/call/<n>         its outcome
//   POST /remote/<page>/hello     the page is loaded, for the first time or again
//   POST /remote/<page>/said      lines, exceptions
//
// Invariant: a page that says hello again was loaded again and has no earlier calls; those calls are rejected.

import type { IncomingMessage, ServerResponse } from 'node:http';

/** The outcome of a call. */
export interface Outcome {
  readonly value?: unknown;
  readonly error?: string;
}

/** The reports that a page sends without a call. */
export interface Said {
  readonly kind: 'line' | 'error';
  readonly text: string;
}

interface Call {
  readonly source: string;
  resolve(value: unknown): void;
  reject(error: Error): void;
}

/** One page, seen from the test. */
export class RemotePage {
  readonly errors: string[] = [];
  readonly #remote: Remote;
  readonly #listeners: ((text: string) => void)[] = [];
  /** Calls it was given or will be, by number, in order. */
  readonly #calls = new Map<number, Call>();
  #waiting: ((call: number) => void) | undefined;
  #queue: number[] = [];
  #greeted: (() => void) | undefined;
  #left: (() => void) | undefined;

  constructor(remote: Remote) {
    this.#remote = remote;
  }

  /** Resolves when the page says hello. */
  greeting(): Promise<void> {
    return new Promise((resolve) => {
      this.#greeted = resolve;
    });
  }

  /** Resolves when the page no longer waits for calls: it is closed or dead. */
  leaving(): Promise<void> {
    return new Promise((resolve) => {
      this.#left = resolve;
    });
  }

  call(source: string): Promise<unknown> {
    return new Promise((resolve, reject) => {
      const number = this.#remote.add(this);
      this.#calls.set(number, { source, resolve, reject });
      this.#queue.push(number);
      this.#serve();
    });
  }

  hear(listener: (text: string) => void): void {
    this.#listeners.push(listener);
  }

  /** The page is gone, or loaded anew: every caller that waits for it gets an error. */
  forget(why: string): void {
    for (const { reject } of this.#calls.values()) reject(new Error(why));
    this.#calls.clear();
    this.#queue = [];
    this.#waiting = undefined;
  }

  greet(): void {
    this.forget('The page was loaded again.');
    this.#greeted?.();
    this.#greeted = undefined;
  }

  next(response: ServerResponse): void {
    this.#waiting = (number) => answer(response, String(number));
    response.once('close', () => {
      if (!response.writableEnded) this.#left?.();
    });
    this.#serve();
  }

  say({ kind, text }: Said): void {
    if (kind === 'error') this.errors.push(text);
    else for (const listener of this.#listeners) listener(text);
  }

  source(number: number): string | undefined {
    return this.#calls.get(number)?.source;
  }

  end(number: number, { value, error }: Outcome): void {
    const call = this.#calls.get(number);
    this.#calls.delete(number);
    if (error === undefined) call?.resolve(value);
    else call?.reject(new Error(error));
  }

  #serve(): void {
    const [number] = this.#queue;
    if (number === undefined || this.#waiting === undefined) return;
    this.#queue.shift();
    this.#waiting(number);
    this.#waiting = undefined;
  }
}

/** All such pages of a site. */
export class Remote {
  readonly #pages = new Map<string, RemotePage>();
  readonly #calls: RemotePage[] = [];

  /** A page that is about to be loaded with `#remote=<id>`. */
  page(): { id: string; page: RemotePage } {
    const id = String(this.#pages.size);
    const page = new RemotePage(this);
    this.#pages.set(id, page);
    return { id, page };
  }

  /** Gives a call its number. */
  add(page: RemotePage): number {
    return this.#calls.push(page) - 1;
  }

  /** Answers a request of a page; returns false for any other request. */
  respond(path: string, request: IncomingMessage, response: ServerResponse): boolean {
    const [, prefix, name = '', what = ''] = path.split('/');
    if (prefix !== 'remote') return false;
    if (name === 'call') this.#respondToCall(Number.parseInt(what, 10), request, response);
    else this.#respondToPage(this.#pages.get(name), what, request, response);
    return true;
  }

  #respondToCall(number: number, request: IncomingMessage, response: ServerResponse): void {
    const page = this.#calls[number];
    if (request.method === 'GET') {
      const source = page?.source(number) ?? `export default () => { throw new Error('call ${number} is over'); };`;
      response.setHeader('Content-Type', 'text/javascript; charset=utf-8');
      answer(response, source);
    } else void body<Outcome>(request, response, (outcome) => page?.end(number, outcome));
  }

  #respondToPage(page: RemotePage | undefined, what: string, request: IncomingMessage, response: ServerResponse): void {
    if (what === 'next') page?.next(response);
    else if (what === 'hello') {
      page?.greet();
      answer(response, '');
    } else void body<Said[]>(request, response, (said) => said.forEach((one) => void page?.say(one)));
  }
}

function answer(response: ServerResponse, text: string): void {
  response.setHeader('Cache-Control', 'no-store');
  response.end(text);
}

async function body<T>(request: IncomingMessage, response: ServerResponse, take: (value: T) => void): Promise<void> {
  const chunks: Buffer[] = [];
  // A report counts as never sent if its page was killed while sending it.
  request.on('error', () => undefined);
  for await (const chunk of request) chunks.push(chunk as Buffer);
  if (request.complete) take(JSON.parse(Buffer.concat(chunks).toString('utf8')) as T);
  answer(response, '');
}
