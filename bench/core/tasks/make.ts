/** Makes the task of one round out of a suite and the stage it runs on. */

import type { Access } from '../engine.ts';
import type { Stage } from '../stage.ts';
import { batchTraces, countFromFirst, mixTrace, pointTrace, scatteredTraces, type TraceChoice } from '../trace.ts';
import type { Suite } from '../workloads.ts';
import { AsyncPoints } from './async-points.ts';
import { Batches } from './batches.ts';
import { Mixes } from './mixes.ts';
import { Opens } from './opens.ts';
import { Ranges } from './ranges.ts';
import { Reads } from './reads.ts';
import { SyncPoints } from './sync-points.ts';
import type { Task } from './task.ts';
import { Transactions } from './transactions.ts';

export interface RoundChoice {
  readonly access: Access;
  readonly calls: number;
  /** Varies what is drawn at random. */
  readonly round: number;
  readonly seed: number;
}

/** The task of one round. */
export function makeTask({ work, reserve }: Suite, stage: Stage, { access, calls, round, seed }: RoundChoice): Task {
  const { session, dataset, state, engine } = stage;
  const waves = access === 'inflight';
  const choice: TraceChoice = {
    calls,
    round,
    seed,
    there: reserve === undefined ? undefined : countFromFirst(state),
  };
  switch (work.kind) {
    case 'points': {
      const trace = pointTrace(dataset, work, choice);
      if (session.kind === 'sync') return new SyncPoints(session, dataset, state, trace);
      const how = { waves: waves || engine.grouped !== undefined, echo: engine.echo === true };
      return new AsyncPoints(session, dataset, state, trace, how);
    }
    case 'batches':
      return new Batches(session, dataset, state, batchTraces(dataset, work.size, choice), waves);
    case 'ranges':
      return new Ranges(session, dataset, state, { size: work.size, calls, round, seed, waves, scan: false });
    case 'scan':
      return new Ranges(session, dataset, state, {
        size: dataset.keys.length,
        calls,
        round,
        seed,
        waves: false,
        scan: true,
      });
    case 'open':
      return new Opens(stage, dataset, state, calls);
    case 'mix':
      return new Mixes(session, dataset, state, mixTrace(dataset, work, choice));
    case 'reads':
      return new Reads(session, dataset, state, scatteredTraces(dataset, work.size, choice));
    case 'transactions':
      return new Transactions(session, dataset, state, scatteredTraces(dataset, work.size, choice), waves);
  }
}
