/**
 * An engine as a feed sees it. Its messages arrive one at a time, when the test lets them.
 *
 * Invariants: requests arrive in their order, and pages are answered in theirs. A page leaves only when all writes that it has seen are
 * committed. The report of `after` may still be undone. No storage does more than that.
 */

import type { Client } from '../../../js/src/client/client.ts';
import { ChangeKind, type Page, type PageRequest } from '../../../js/src/protocol/change-page.ts';
import type { StoreState } from '../../../js/src/protocol/messages.ts';

interface Asked<A> {
  readonly asked: A;
  readonly resolve: (answer: unknown) => void;
  readonly reject: (error: unknown) => void;
}
type AskedPage = Asked<PageRequest>;
type AskedAfter = Asked<StoreState | undefined>;
type Sent = { readonly page: AskedPage } | { readonly after: AskedAfter };

/** The engine, its storage, and what is under way to and from it. */
export class FeedModel {
  /** Keys of one byte; the key of sequence `n` is the one at `n - 1`. */
  readonly log: number[] = [];
  /** How many requests were made. */
  requests = 0;
  /** Whether acknowledged writes can be logged, and so be reported. */
  canLog = true;
  #committed = 0;
  #reported = 0;
  #opening = 1;
  /** Sent, but not yet arrived. */
  #sent: Sent[] = [];
  /** Run, but the answer has not yet arrived. */
  #pages: { readonly page: AskedPage; answer: Page }[] = [];
  #afters: AskedAfter[] = [];
  /** Answered, but the answer has not yet arrived. */
  #answered: { readonly after: AskedAfter; readonly state: StoreState }[] = [];

  /** The client that a feed calls. */
  readonly client: Pick<Client, 'submit' | 'ask' | 'aborts'> = {
    aborts: 0,
    submit: (_operation, _key, value) =>
      this.#send((asked) => ({ page: { ...asked, asked: value as PageRequest } })) as Promise<never>,
    ask: (ask) => {
      const state = 'args' in ask ? (ask.args[0] as StoreState | undefined) : undefined;
      return this.#send((asked) => ({ after: { ...asked, asked: state } }));
    },
  };

  write(key: number): void {
    this.log.push(key);
    this.#report();
  }

  commit(): void {
    if (!this.canLog) return;
    this.#committed = this.log.length;
  }

  /** The storage refused: uncommitted writes are undone, and requests that could not be answered are answered anew. */
  revive(): void {
    this.log.length = this.#committed;
    this.#reopen();
  }

  /** Another engine leads, which has the committed writes; all requests without an answer are sent to it again. */
  succeed(): void {
    this.log.length = this.#committed;
    const again = this.#pages.map(({ page }) => ({ page }));
    this.#pages = [];
    this.#sent = [...again, ...this.#sent];
    this.#reopen();
  }

  /** Its leader does not answer, or the engine there failed: all calls are given up. Requests `after` stay. */
  giveUp(): void {
    this.client.aborts++;
    const failed = Object.assign(new Error('failed'), { code: 'VARVE_IO' });
    const pages = this.#sent.flatMap((sent) => ('page' in sent ? [sent.page] : []));
    for (const page of [...pages, ...this.#pages.map(({ page }) => page)]) page.reject(failed);
    this.#pages = [];
    this.#sent = this.#sent.filter((sent) => 'after' in sent);
  }

  /** The messages that can arrive now. */
  get arrivals(): (() => void)[] {
    const arrivals: (() => void)[] = this.#answered.map((answer) => () => {
      this.#answered = this.#answered.filter((other) => other !== answer);
      answer.after.resolve(answer.state);
    });
    if (this.#sent.length > 0) arrivals.push(() => this.#arrive());
    if ((this.#pages[0]?.answer.through ?? Number.POSITIVE_INFINITY) <= this.#committed) {
      arrivals.push(() => {
        const { page, answer } = this.#pages.shift() as { page: AskedPage; answer: Page };
        page.resolve(answer);
      });
    }
    return arrivals;
  }

  #send(wrap: (promise: Omit<Asked<unknown>, 'asked'>) => Sent): Promise<unknown> {
    this.requests++;
    return new Promise((resolve, reject) => this.#sent.push(wrap({ resolve, reject })));
  }

  #arrive(): void {
    const sent = this.#sent.shift();
    if (sent === undefined) return;
    if ('page' in sent) this.#pages.push({ page: sent.page, answer: this.#read(sent.page.asked) });
    else {
      this.#afters.push(sent.after);
      this.#report();
    }
  }

  #read({ since, start, end, bytesMax }: PageRequest): Page {
    if (this.canLog) this.#reported = this.log.length;
    const changes = [];
    let through = Math.min(since, this.#reported);
    while (through < this.#reported && changes.length * 32 < bytesMax) {
      const key = this.log[through++] as number;
      if (key < (start[0] ?? 0) || key >= (end[0] ?? 255)) continue;
      const [bytes, value] = [Uint8Array.of(key), new Uint8Array(0)];
      changes.push({ sequence: through, kind: ChangeKind.set, expiresAt: undefined, key: bytes, value });
    }
    return { through, floor: 0, changes };
  }

  #report(): void {
    const state = { sequence: this.log.length, opening: this.#opening };
    const isOld = ({ asked }: AskedAfter): boolean =>
      asked?.sequence !== state.sequence || asked.opening !== state.opening;
    for (const after of this.#afters.filter(isOld)) this.#answered.push({ after, state });
    this.#afters = this.#afters.filter((after) => !isOld(after));
  }

  #reopen(): void {
    this.#opening++;
    this.#reported = Math.min(this.#reported, this.log.length);
    for (const late of this.#pages) late.answer = this.#read(late.page.asked);
    this.#report();
  }
}
