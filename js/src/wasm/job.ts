/**
 * A flush or compaction in progress: blocks in, blocks out.
 *
 * Invariant: `step` returns what to do next and is not called again before that is done: the needed bytes fed, the output taken.
 */

import { attempt } from './call.ts';
import type { Engine } from './engine.ts';

/** The results of `step`, by number. */
const STEPS = ['working', 'need', 'write', 'finished', 'done'] as const;

/** The result of one step of a job. */
export interface JobStep {
  /**
   * `need`: the job needs `length` bytes of a table; `write`: it has output for `offset` of a table; `finished`: a table has `offset`
   * bytes.
   */
  readonly kind: (typeof STEPS)[number] | undefined;
  readonly table: number;
  readonly offset: number;
  readonly length: number;
}

/** A job of an engine instance. */
export class CompactionJob {
  readonly #engine: Engine;
  readonly #number: number;

  /** Starts the job that a ticket's specification describes, and overwrites the specification. */
  constructor(engine: Engine, spec: Uint8Array) {
    this.#engine = engine;
    engine.memory.give(spec);
    // It has the data keys.
    spec.fill(0);
    this.#number = attempt(engine, () => engine.exports.varve_job_new());
  }

  /** After a step that failed: the input that is damaged; 0 if it failed for another reason. */
  get damaged(): number {
    return this.#engine.fault.found === undefined ? this.#engine.memory.outU64(2) : 0;
  }

  /** Handles up to `entries` entries. */
  step(entries: number): JobStep {
    const { exports, memory } = this.#engine;
    const kind = STEPS[attempt(this.#engine, () => exports.varve_job_step(this.#number, entries))];
    return { kind, table: memory.outU64(0), offset: memory.outU64(2), length: memory.out[4] ?? 0 };
  }

  /** Passes in the bytes that `step` needed. */
  feed(bytes: Uint8Array): void {
    this.#engine.memory.give(bytes);
    attempt(this.#engine, () => this.#engine.exports.varve_job_feed(this.#number));
  }

  /** The bytes to write, once. */
  output(): Uint8Array<ArrayBuffer> {
    attempt(this.#engine, () => this.#engine.exports.varve_job_output(this.#number));
    return this.#engine.memory.takeOut();
  }

  /** The data with which the engine of the store installs the outputs. */
  result(): Uint8Array<ArrayBuffer> {
    attempt(this.#engine, () => this.#engine.exports.varve_job_result(this.#number));
    return this.#engine.memory.takeOut();
  }

  /** Frees the job, unless its engine is gone already. */
  free(): void {
    const { fault, exports } = this.#engine;
    if (fault.found === undefined) fault.guarded(() => exports.varve_job_free(this.#number));
  }
}
