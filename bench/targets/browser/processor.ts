/**
 * The processor time of the browser's processes, suite by suite: what all engines of a suite took together.
 *
 * Invariant: a process that ended keeps what it had taken when it was last asked for.
 */

import type { CDPSession, Page } from 'playwright';
import type { Access } from '../../core/engine.ts';

/** What one suite took through one way in. */
export interface ProcessorTime {
  readonly suite: string;
  readonly access: Access;
  /** Seconds by kind of process: `renderer` has the page and its workers, `storage` IndexedDB and OPFS's files. */
  readonly seconds: Readonly<Record<string, number>>;
}

/** Asks a browser for the processor time of its processes. */
export class ProcessorClock {
  readonly times: ProcessorTime[] = [];
  readonly #session: CDPSession;
  readonly #taken = new Map<number, { kind: string; seconds: number }>();
  #last: Record<string, number> = {};
  #suite: string | undefined;
  #pending: Promise<void> = Promise.resolve();

  private constructor(session: CDPSession) {
    this.#session = session;
  }

  /** A clock that counts from now on; undefined where the browser does not tell. */
  static async start(page: Page): Promise<ProcessorClock | undefined> {
    const session = await page.context().browser()?.newBrowserCDPSession();
    if (session === undefined) return undefined;
    const clock = new ProcessorClock(session);
    clock.#last = await clock.#read();
    return clock;
  }

  /** A suite has ended: a row of it has come. The first row of several takes the time. */
  ended(suite: string, access: Access): void {
    const key = `${suite} ${access}`;
    if (key === this.#suite) return;
    this.#suite = key;
    this.#pending = this.#pending.then(async () => {
      const now = await this.#read();
      const seconds = Object.fromEntries(
        Object.entries(now).map(([kind, total]) => [kind, Number((total - (this.#last[kind] ?? 0)).toFixed(3))]),
      );
      this.#last = now;
      this.times.push({ suite, access, seconds });
    });
    // What cannot be told is left out; the run itself is none the worse.
    this.#pending = this.#pending.catch(() => undefined);
  }

  /** Resolves when what was asked for has been told. */
  async settled(): Promise<readonly ProcessorTime[]> {
    await this.#pending;
    return this.times;
  }

  async #read(): Promise<Record<string, number>> {
    const { processInfo } = await this.#session.send('SystemInfo.getProcessInfo');
    for (const { id, type, cpuTime } of processInfo) {
      this.#taken.set(id, { kind: type.split('.').at(-1) ?? type, seconds: cpuTime });
    }
    const sums: Record<string, number> = {};
    for (const { kind, seconds } of this.#taken.values()) sums[kind] = (sums[kind] ?? 0) + seconds;
    return sums;
  }
}
