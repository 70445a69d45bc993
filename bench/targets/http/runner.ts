/**
 * Runs the suites on one server.
 *
 * Invariant: a row and its floor take turns round by round, so that a busy machine is equally busy for both. After every round
 * what was cut off is settled; after every suite the whole store is read and compared, and a difference marks all its rows.
 */

import { Latencies } from '../../core/latency.ts';
import { bare, type Kind } from './calls.ts';
import { type Length, type Pace, runLoop } from './loops.ts';
import { type HttpRow, makeRow, type Round, type RowHead } from './row.ts';
import { noOutcomes, Session } from './session.ts';
import { Share } from './share.ts';
import type { RemoteStore } from './store.ts';
import { LOAD, type Phase, type Work } from './suites.ts';
import { judge } from './thresholds.ts';

/** How much is run. */
export interface Extent {
  /** Seconds of a row, all rounds together; the load phases are scaled with it. */
  readonly seconds: number;
  readonly rounds: number;
  readonly connections: readonly number[];
  /** Requests of a row of `http-single` and `http-batch`, instead of seconds. */
  readonly requests?: number | undefined;
  /** Requests a second of the open loop; default: a share of what the closed loop reached. */
  readonly perSecond?: number | undefined;
}

/** Seconds of a row in the full mode: at so many the phases of `http-load` last as long as they say. */
export const SECONDS = 3;
/** Requests of each connection at least, where a phase is a number of them. */
const REQUESTS_MIN = 4;
const WARM_UP_SECONDS = 0.2;

/** What every row of a server has in common. */
export type ServerHead = Pick<RowHead, 'runtime' | 'durability'>;

/** Told of every row that is done. */
export type OnRow = (row: HttpRow) => void;

/** The suites on one server. */
export class Runner {
  readonly #store: RemoteStore;
  readonly #head: ServerHead;
  readonly #extent: Extent;
  readonly #onRow: OnRow;
  /** Another seed for every round. */
  #seed = 1;

  constructor(store: RemoteStore, head: ServerHead, extent: Extent, onRow: OnRow) {
    this.#store = store;
    this.#head = head;
    this.#extent = extent;
    this.#onRow = onRow;
  }

  /** Lets the server compile what it runs. */
  async warmUp(kind: Kind): Promise<void> {
    await this.round(kind, 10, { seconds: WARM_UP_SECONDS });
  }

  /** One round of a closed or an open loop, and what it left settled. */
  async round(kind: Kind, connections: number, length: Length | Pace): Promise<Round> {
    const outcomes = noOutcomes();
    const latencies = new Latencies();
    const { ledger, url } = this.#store;
    const seed = this.#seed++ * 104_729;
    const sessions = Array.from({ length: connections }, (_, i) => {
      return new Session(kind, new Share(ledger, i, connections, seed), outcomes);
    });
    const seconds = await runLoop(url, sessions, length, latencies);
    if (!(await this.#store.settle())) {
      outcomes.wrong++;
      outcomes.problem ??=
        'A write that was never answered left something that is neither the old value nor the new one.';
    }
    return { outcomes, seconds, latencies };
  }

  /** `http-single` and `http-batch`: every kind of work by every number of connections, with its floor. */
  async works(suite: string, works: readonly Work[]): Promise<HttpRow[]> {
    const { connections, rounds, seconds, requests } = this.#extent;
    const length = requests === undefined ? { seconds: seconds / rounds } : { requests: Math.ceil(requests / rounds) };
    const cells = connections.flatMap((many) =>
      works.map((work) => ({ work, many, own: [] as Round[], floor: [] as Round[] })),
    );
    for (let i = 0; i < rounds; i++) {
      for (const { work, many, own, floor } of cells) {
        await this.#pair(work.kind, many, length, own, floor);
      }
    }
    const rows = cells.flatMap(({ work, many, own, floor }) => this.#rows(suite, work, many, own, floor));
    return this.#verified(rows);
  }

  /** `http-load`: the phases one after the other; each closed one with its floor. */
  async load(): Promise<HttpRow[]> {
    const rows: HttpRow[] = [];
    let before = 0;
    for (const phase of LOAD) {
      const made =
        phase.openShare === undefined ? await this.#closed(phase) : await this.#open(phase, before * phase.openShare);
      before = made[0]?.requestsPerSecond ?? before;
      rows.push(...made);
    }
    return this.#verified(rows);
  }

  async #closed(phase: Phase): Promise<HttpRow[]> {
    const own: Round[] = [];
    const floor: Round[] = [];
    await this.#pair(phase.kind, phase.connections, this.#lengthOf(phase), own, floor);
    return this.#rows('http-load', phase, phase.connections, own, floor);
  }

  async #open(phase: Phase, share: number): Promise<HttpRow[]> {
    const perSecond = this.#extent.perSecond ?? Math.max(1, Math.round(share));
    const pace = { perSecond, seconds: (phase.seconds ?? SECONDS) * this.#scale };
    const round = await this.round(phase.kind, phase.connections, pace);
    const head = { ...this.#headOf('http-load', phase, phase.connections), loop: 'open', due: perSecond } as const;
    return [makeRow(head, [round])];
  }

  async #pair(kind: Kind, connections: number, length: Length, own: Round[], floor: Round[]): Promise<void> {
    const round = await this.round(kind, connections, length);
    own.push(round);
    const { chars, requests } = round.outcomes;
    const answer_bytes = requests === 0 ? 0 : Math.round(chars / requests);
    floor.push(await this.round(bare(kind, answer_bytes), connections, length));
  }

  #rows(suite: string, work: Work, connections: number, own: Round[], floor: Round[]): HttpRow[] {
    const head = this.#headOf(suite, work, connections);
    const bareRow = makeRow({ ...head, engine: 'bare', durability: 'memory', published: undefined }, floor);
    return [{ ...makeRow(head, own), barePerSecond: bareRow.requestsPerSecond }, bareRow];
  }

  #headOf(suite: string, { title, published }: Work, connections: number): RowHead {
    return { suite, work: title, ...this.#head, engine: 'varve', loop: 'closed', connections, published };
  }

  /** Compares the whole store, and hands the rows on. */
  async #verified(rows: readonly HttpRow[]): Promise<HttpRow[]> {
    const difference = await this.#store.compare();
    return rows.map((row) => {
      const judged = row.suite === 'http-load' && row.engine === 'varve' ? { ...row, verdict: judge(row) } : row;
      const done =
        difference === undefined || row.engine === 'bare'
          ? judged
          : { ...judged, verified: false, problem: difference };
      this.#onRow(done);
      return done;
    });
  }

  #lengthOf({ seconds = 0, requests, connections }: Phase): Length {
    if (requests === undefined) return { seconds: seconds * this.#scale };
    return { requests: Math.min(requests, Math.max(connections * REQUESTS_MIN, Math.round(requests * this.#scale))) };
  }

  get #scale(): number {
    return this.#extent.seconds / SECONDS;
  }
}
