/**
 * Runs suites on servers.
 *
 * Invariant: servers, and a row and its floor, take turns round by round, so that a busy machine is equally busy for all. After
 * every suite the whole store is read and compared, and a difference marks all its rows.
 */

import { rate, times } from '../../core/figures.ts';
import { median } from '../../core/latency.ts';
import type { Length, Pace } from '../../core/load.ts';
import type { Round } from '../../core/measure.ts';
import type { Emit } from '../../core/plan.ts';
import { report } from '../../core/suite.ts';
import { bare, type Kind } from './calls.ts';
import { type Outcomes, runConnections } from './connection.ts';
import { Ledger, Share } from './ledger.ts';
import type { Options } from './programs/program.ts';
import { ROWS } from './programs/site.ts';
import { type RuntimeName, type Server, startServer } from './server.ts';
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
const KEYS = 20_000;

interface ServerRound extends Round {
  readonly outcomes: Outcomes;
  readonly rows: number;
}

export class Runner {
  #seed = 1;

  private constructor(
    readonly runtime: RuntimeName,
    readonly options: Options,
    readonly server: Server,
    readonly store: RemoteStore,
  ) {}

  /** Starts a server, loads its store, and lets it compile the code that it runs. */
  static async start(runtime: RuntimeName, options: Options, keys = KEYS): Promise<Runner> {
    const server = await startServer(runtime, options);
    try {
      const runner = new Runner(runtime, options, server, new RemoteStore(server.url, new Ledger(keys)));
      await runner.store.load();
      await runner.round(CRUD, 10, { seconds: WARM_UP_SECONDS });
      return runner;
    } catch (error) {
      await server.stop();
      throw error;
    }
  }

  async round(kind: Kind, connections: number, length: Length | Pace): Promise<ServerRound> {
    const { ledger, url } = this.store;
    const shares = Share.ofAll(ledger, connections, this.#seed++ * 104_729);
    const before = await this.#rows();
    const round = await runConnections(url, kind, shares, ledger, length);
    const rows = (await this.#rows()) - before;
    await this.store.restore();
    return { ...round, rows };
  }

  async #rows(): Promise<number> {
    return this.runtime === 'workerd' ? Number(await (await fetch(this.store.url + ROWS)).text()) : 0;
  }

  /** Kills the server (SIGKILL), and compares the store after another one has opened it. */
  async compareAfterDeath(): Promise<string | undefined> {
    await this.server.kill();
    const next = await startServer(this.runtime, this.options);
    try {
      return await new RemoteStore(next.url, this.store.ledger).compare();
    } finally {
      await next.stop();
    }
  }
}

interface Work {
  readonly runner: Runner;
  readonly phase: Phase;
  readonly rounds: ServerRound[];
  readonly floor: ServerRound[];
  /** Requests a second that were due in an open loop; 0 in a closed one. */
  due: number;
}

/**
 * Runs the phases of a suite on some servers, one after the other in each round; a closed one with its floor, an open one at a
 * share of the rate of the one before. `compare` gives the difference of a store in the end, in words.
 */
export async function runPhases(
  suite: string,
  runners: readonly Runner[],
  phases: readonly Phase[],
  { seconds, rounds }: Extent,
  emit: Emit,
  compare = ({ store }: Runner) => store.compare(),
): Promise<void> {
  const works = phases.flatMap((phase) =>
    runners.map((runner): Work => ({ runner, phase, rounds: [], floor: [], due: 0 })),
  );
  for (let round = 0; round < rounds; round++) {
    for (const [i, work] of works.entries()) {
      await runRound(work, lengthOf(work.phase, seconds, rounds), works[i - runners.length]?.rounds.at(-1));
    }
  }
  for (const runner of runners) {
    const problem = await compare(runner);
    for (const work of works) if (work.runner === runner) conclude(emit, suite, work, problem);
  }
}

async function runRound(work: Work, length: Length, before: ServerRound | undefined): Promise<void> {
  const { runner, phase, rounds, floor } = work;
  const { kind, connections, openShare, isOfLevel } = phase;
  if (openShare !== undefined && before !== undefined && 'seconds' in length) {
    work.due = Math.max(1, Math.round(perSecond([before]) * openShare));
    rounds.push(await runner.round(kind, connections, { perSecond: work.due, ...length }));
    return;
  }
  const made = await runner.round(kind, connections, length);
  rounds.push(made);
  const { requests, tally } = made.outcomes;
  if (isOfLevel || requests === 0) return;
  floor.push(await runner.round(bare(kind, Math.round(tally.bytes / requests)), connections, length));
}

/** Scaled, so that at SECONDS a phase is as long as it says. */
function lengthOf({ seconds: whole = SECONDS, requests, connections }: Phase, seconds: number, rounds: number): Length {
  const scale = seconds / SECONDS;
  if (requests === undefined) return { seconds: (whole * scale) / rounds };
  return { requests: Math.min(requests, Math.max(connections * REQUESTS_MIN, Math.round(requests * scale))) };
}

const perSecond = (rounds: readonly ServerRound[]): number =>
  median(rounds.map(({ outcomes, elapsedMs }) => (outcomes.requests * 1000) / elapsedMs));

function conclude(emit: Emit, suite: string, work: Work, problem: string | undefined): void {
  const { runner, phase, rounds, floor, due } = work;
  const { connections, published, isOfLevel } = phase;
  const place = `${runner.runtime}, ${connections} connections${due > 0 ? ', at a fixed rate' : ''}`;
  const { durability } = runner.options;
  const title = isOfLevel ? `${phase.title}, ${durability}` : phase.title;
  const row = (name: string, role: 'varve' | 'floor', own: readonly ServerRound[], more: object, wrong?: string) => {
    const errors = own.reduce((sum, { outcomes, tally }) => sum + outcomes.failed + tally.wrong, 0);
    const found = wrong ?? own.find(({ outcomes }) => outcomes.problem !== undefined)?.outcomes.problem;
    report({ emit, place }, { name, role }, { suite, phase: title, errors, ...more }, own, found);
  };
  const sum = (of: (round: ServerRound) => number): number => rounds.reduce((all, round) => all + of(round), 0);
  const [billed, ops] = [sum(({ rows }) => rows), sum(({ tally }) => tally.ops)];
  const notes = [
    `${rate(perSecond(rounds))} requests/s`,
    due > 0 && `open loop, ${rate(due)}/s due`,
    floor.length > 0 && `${times(perSecond(rounds) / perSecond(floor))} the bare server`,
    billed > 0 && `${rate((billed * 1000) / ops)} rows written per 1,000 operations`,
    published && `published, another machine: ${published}`,
  ];
  const note = notes.filter((text) => typeof text === 'string').join('; ');
  row('varve', 'varve', rounds, { durability, note }, problem);
  if (floor.length > 0) row('bare', 'floor', floor, { durability: 'memory' });
}
