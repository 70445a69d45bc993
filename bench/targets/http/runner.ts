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
import { CRUD, type Phase } from './suites.ts';

export interface Extent {
  /** Seconds of a row, all rounds together; the load phases are scaled with it. */
  readonly seconds: number;
  readonly rounds: number;
  readonly connections: readonly number[];
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
  /** Requests a second that were due in an open loop; none in a closed one. */
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
  const { suite, title, runtime, connections, durability, due, published, rounds, floor = [] } = work;
  const place = `${runtime}, ${connections} connections${due ? ', at a fixed rate' : ''}`;
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
    floor.length > 0 && `${times(perSecond(rounds) / perSecond(floor))} the bare server`,
    published && `published, another machine: ${published}`,
  ];
  const note = notes.filter((text) => typeof text === 'string').join('; ');
  row({ name: 'varve', role: 'varve' }, rounds, { durability, note }, problem);
  if (floor.length > 0) row({ name: 'bare', role: 'floor' }, floor, { durability: 'memory' });
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

  /**
   * Runs the phases of a suite, one after the other in each round; a closed one with its floor, an open one at a share of the
   * rate of the one before. Afterwards the whole store is compared.
   */
  async run(suite: string, phases: readonly Phase[], rounds: number, emit: Emit): Promise<void> {
    const works = phases.map((phase) => ({ phase, due: 0, rounds: [] as ServerRound[], floor: [] as ServerRound[] }));
    for (let round = 0; round < rounds; round++) {
      let before = 0;
      for (const work of works) {
        const { kind, connections, openShare } = work.phase;
        const length = this.#lengthOf(work.phase, rounds);
        if (openShare !== undefined && 'seconds' in length) {
          work.due = Math.max(1, Math.round(before * openShare));
          work.rounds.push(await this.round(kind, connections, { perSecond: work.due, ...length }));
          continue;
        }
        const made = await this.round(kind, connections, length);
        work.rounds.push(made);
        const { tally, requests } = made.outcomes;
        const answer_bytes = requests === 0 ? 0 : Math.round(tally.bytes / requests);
        work.floor.push(await this.round(bare(kind, answer_bytes), connections, length));
        before = perSecond([made]);
      }
    }
    const problem = await this.store.compare();
    for (const { phase, ...work } of works) reportWork(emit, { suite, ...phase, ...this.head, ...work }, problem);
  }

  /** Scaled, so that at SECONDS a phase is as long as it says. */
  #lengthOf({ seconds = SECONDS, requests, connections }: Phase, rounds: number): Length {
    const scale = this.extent.seconds / SECONDS;
    if (requests === undefined) return { seconds: (seconds * scale) / rounds };
    return { requests: Math.min(requests, Math.max(connections * REQUESTS_MIN, Math.round(requests * scale))) };
  }
}
