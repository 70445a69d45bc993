/**
 * Runs the suites on one server.
 *
 * Invariant: a row and its floor take turns round by round, so that a busy machine is equally busy for both. After every
 * suite the whole store is read and compared, and a difference marks all its rows.
 */

import type { Engine } from '../../core/engine.ts';
import { rate, times } from '../../core/figures.ts';
import { median } from '../../core/latency.ts';
import type { Length, Pace } from '../../core/load.ts';
import { type Round, roundOf } from '../../core/measure.ts';
import type { Emit } from '../../core/plan.ts';
import type { Row } from '../../core/row.ts';
import { report } from '../../core/suite.ts';
import { bare, type Kind } from './calls.ts';
import { runConnections } from './connection.ts';
import { Ledger } from './ledger.ts';
import { Outcomes } from './outcomes.ts';
import type { Options } from './programs/program.ts';
import { type RuntimeName, type Server, startServer } from './server.ts';
import { Share } from './share.ts';
import { RemoteStore } from './store.ts';
import { CRUD, LOAD, type Phase, type Work } from './suites.ts';

export interface Extent {
  /** Seconds of a row, all rounds together; the load phases are scaled with it. */
  readonly seconds: number;
  readonly rounds: number;
  readonly connections: readonly number[];
  /** Requests of a row of `http-single` and `http-batch`, instead of seconds. */
  readonly requests?: number | undefined;
}

/** Seconds of a row in the full mode: at so many the phases of `http-load` last as long as they say. */
export const SECONDS = 3;
/** Requests of each connection at least, where a phase is a number of them. */
const REQUESTS_MIN = 4;
const WARM_UP_SECONDS = 0.2;
/** Entries of a store. */
const KEYS = 20_000;

/** The part that all rows of a server share. */
interface ServerHead {
  /** Where the server runs: `node`, `deno`, `workerd`. */
  readonly runtime: string;
  readonly durability: Row['durability'];
}

export interface ServerRound extends Round {
  readonly outcomes: Outcomes;
}

interface ServerWork extends ServerHead {
  readonly suite: string;
  readonly title: string;
  readonly connections: number;
  /** Requests a second that were due, of an open loop. */
  readonly due?: number;
  /** The published figures of such a row, of another store on another machine. */
  readonly published?: string | undefined;
  readonly rounds: readonly ServerRound[];
  /** The same bytes through the server alone, in the same rounds. */
  readonly floor?: readonly ServerRound[];
}

const perSecond = (rounds: readonly ServerRound[]): number =>
  median(rounds.map(({ outcomes, elapsed_ms }) => (outcomes.requests * 1000) / elapsed_ms));

/** Reports the row of some work, and that of its floor; `problem` names a difference that the pass over the store found. */
export function reportWork(emit: Emit, work: ServerWork, problem: string | undefined): void {
  const { suite, title, runtime, connections, durability, due, published, rounds, floor } = work;
  const place = `${runtime}, ${connections} connections${due === undefined ? '' : ', at a fixed rate'}`;
  const row = (
    engine: Pick<Engine, 'name' | 'role'>,
    own: readonly ServerRound[],
    more: object,
    wrong?: string,
  ): void => {
    const errors = own.reduce((sum, { outcomes, tally }) => sum + outcomes.failed + tally.wrong, 0);
    const found = wrong ?? own.find(({ outcomes }) => outcomes.problem !== undefined)?.outcomes.problem;
    report({ emit, place }, engine, { suite, phase: title, errors, ...more }, own, found);
  };
  const notes = [
    `${rate(perSecond(rounds))} requests/s`,
    due && `open loop, ${rate(due)}/s due`,
    floor && `${times(perSecond(rounds) / perSecond(floor))} the bare server`,
    published && `published, another machine: ${published}`,
  ];
  const note = notes.filter((text) => typeof text === 'string').join('; ');
  row({ name: 'varve', role: 'varve' }, rounds, { durability, note }, problem);
  if (floor !== undefined) row({ name: 'bare', role: 'floor' }, floor, { durability: 'memory' });
}

export class Runner {
  /** Another seed for every round. */
  #seed = 1;

  private constructor(
    readonly server: Server,
    readonly store: RemoteStore,
    private readonly head: ServerHead,
    private readonly extent: Extent,
  ) {}

  /** Starts a server, loads its store, and lets it compile the code that it runs. */
  static async start(runtime: RuntimeName, options: Options, extent: Extent, keys = KEYS): Promise<Runner> {
    const server = await startServer(runtime, options);
    try {
      const store = new RemoteStore(server.url, new Ledger(keys));
      await store.load();
      const runner = new Runner(server, store, { runtime, durability: options.durability }, extent);
      await runner.round(CRUD, 10, { seconds: WARM_UP_SECONDS });
      return runner;
    } catch (error) {
      await server.stop();
      throw error;
    }
  }

  /** One round of a closed or an open loop. */
  async round(kind: Kind, connections: number, length: Length | Pace): Promise<ServerRound> {
    const { ledger, url } = this.store;
    const outcomes = new Outcomes(ledger);
    const shares = Share.ofAll(ledger, connections, this.#seed++ * 104_729);
    const { elapsed_ms, latencies } = await runConnections(url, kind, shares, outcomes, length);
    await this.store.restore();
    return { outcomes, ...roundOf(outcomes.tally, elapsed_ms, latencies) };
  }

  /** `http-single` and `http-batch`: every kind of work by every number of connections, with its floor. */
  async works(suite: string, works: readonly Work[], emit: Emit): Promise<void> {
    const { connections, rounds, seconds, requests } = this.extent;
    const length = requests === undefined ? { seconds: seconds / rounds } : { requests: Math.ceil(requests / rounds) };
    const cells = connections.flatMap((many) => works.map((work) => this.#workOf(suite, work, many)));
    for (let i = 0; i < rounds; i++) for (const cell of cells) await this.#pair(cell, length);
    const problem = await this.store.compare();
    for (const cell of cells) reportWork(emit, cell, problem);
  }

  /** `http-load`: the phases one after the other; each closed one with its floor. */
  async load(emit: Emit): Promise<void> {
    const works: ServerWork[] = [];
    let before = 0;
    for (const phase of LOAD) {
      const work = this.#workOf('http-load', phase, phase.connections);
      if (phase.openShare === undefined) {
        await this.#pair(work, this.#lengthOf(phase));
        before = perSecond(work.rounds);
        works.push(work);
      } else {
        const due = Math.max(1, Math.round(before * phase.openShare));
        const pace = { perSecond: due, seconds: (phase.seconds ?? SECONDS) * this.#scale };
        const { floor: _, ...open } = work;
        works.push({ ...open, due, rounds: [await this.round(phase.kind, phase.connections, pace)] });
      }
    }
    const problem = await this.store.compare();
    for (const work of works) reportWork(emit, work, problem);
  }

  #workOf(suite: string, { title, published, kind }: Work, connections: number) {
    const rounds: ServerRound[] = [];
    const floor: ServerRound[] = [];
    return { suite, title, published, connections, ...this.head, kind, rounds, floor };
  }

  async #pair(work: { kind: Kind; connections: number; rounds: ServerRound[]; floor: ServerRound[] }, length: Length) {
    const { kind, connections, rounds, floor } = work;
    const round = await this.round(kind, connections, length);
    rounds.push(round);
    const { tally, requests } = round.outcomes;
    const answer_bytes = requests === 0 ? 0 : Math.round(tally.bytes / requests);
    floor.push(await this.round(bare(kind, answer_bytes), connections, length));
  }

  #lengthOf({ seconds = 0, requests, connections }: Phase): Length {
    if (requests === undefined) return { seconds: seconds * this.#scale };
    return { requests: Math.min(requests, Math.max(connections * REQUESTS_MIN, Math.round(requests * this.#scale))) };
  }

  get #scale(): number {
    return this.extent.seconds / SECONDS;
  }
}
