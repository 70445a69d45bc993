// Both halves of calls by messages, from a page to a worker of the browser tests.
// Invariants: a worker answers each call once, with a value or an error in words. It gets no call before it has reported that it listens,
// because Firefox can lose messages to a module worker while its imports load.

interface Question {
  readonly number: number;
  readonly name: string;
  readonly args: readonly unknown[];
}

interface Answer {
  readonly number: number;
  readonly value?: unknown;
  readonly error?: string;
}

/** The first message of a worker. */
const READY = 'ready';

interface Called {
  /** Resolves with the worker when it listens. */
  readonly worker: Promise<Worker>;
  readonly waiting: Map<number, (answer: Answer) => void>;
}

const called = new Map<string, Called>();
let calls = 0;

/** Calls a function of a worker by its name. The worker is started at the first call; lines that the worker sends are logged here. */
export function callWorker(script: string, name: string, ...args: readonly unknown[]): Promise<unknown> {
  const { worker, waiting } = called.get(script) ?? start(script);
  return new Promise((resolve, reject) => {
    const number = calls++;
    waiting.set(number, ({ value, error }) => (error === undefined ? resolve(value) : reject(new Error(error))));
    worker.then((listening) => listening.postMessage({ number, name, args } satisfies Question), reject);
  });
}

function start(script: string): Called {
  const worker = new Worker(script, { type: 'module' });
  const waiting: Called['waiting'] = new Map();
  let listens = (): void => undefined;
  const ready = new Promise<Worker>((resolve, reject) => {
    listens = () => resolve(worker);
    worker.onerror = ({ message }) => reject(new Error(message));
  });
  worker.onmessage = ({ data }: MessageEvent<Answer | string>) => {
    if (data === READY) return listens();
    if (typeof data === 'string') return console.debug(data);
    waiting.get(data.number)?.(data);
    waiting.delete(data.number);
  };
  const known = { worker: ready, waiting };
  called.set(script, known);
  return known;
}

/** In a worker: answers calls with these functions, and sends the page the lines logged with `console.debug`. */
export function answerCalls(functions: Readonly<Record<string, (...args: never[]) => unknown>>): void {
  console.debug = (...words: unknown[]) => postMessage(words.join(' '));
  addEventListener('message', async ({ data: { number, name, args } }: MessageEvent<Question>) => {
    try {
      const value = await functions[name]?.(...(args as never[]));
      postMessage({ number, value } satisfies Answer);
    } catch (error) {
      postMessage({ number, error: String(error) } satisfies Answer);
    }
  });
  postMessage(READY);
}
