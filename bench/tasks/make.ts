/** Makes the task of one round out of a suite and the stage it runs on. */

import type { Access } from '../engine.ts';
import type { Stage } from '../stage.ts';
import { batchTraces, pointTrace } from '../trace.ts';
import type { Suite } from '../workloads.ts';
import { AsyncPoints } from './async-points.ts';
import { Batches } from './batches.ts';
import { Opens } from './opens.ts';
import { Ranges } from './ranges.ts';
import { SyncPoints } from './sync-points.ts';
import type { Task } from './task.ts';

export interface RoundChoice {
  readonly access: Access;
  readonly calls: number;
  /** Varies what is drawn at random. */
  readonly round: number;
}

/** The task of one round. */
export function makeTask({ work }: Suite, stage: Stage, { access, calls, round }: RoundChoice): Task {
  const { session, dataset, state, engine } = stage;
  const waves = access === 'inflight';
  switch (work.kind) {
    case 'points': {
      const trace = pointTrace(dataset, work, calls, round);
      if (session.kind === 'sync') return new SyncPoints(session, dataset, state, trace);
      const how = { waves: waves || engine.grouped !== undefined, echo: engine.echo === true };
      return new AsyncPoints(session, dataset, state, trace, how);
    }
    case 'batches':
      return new Batches(session, dataset, state, batchTraces(dataset, work.size, calls, round), waves);
    case 'ranges':
      return new Ranges(session, dataset, state, { size: work.size, calls, round, waves, scan: false });
    case 'scan':
      return new Ranges(session, dataset, state, { size: dataset.keys.length, calls, round, waves: false, scan: true });
    case 'open':
      return new Opens(stage, dataset, state, calls);
  }
}
