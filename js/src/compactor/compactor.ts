/**
 * The compactor: runs flushes and compactions beside the engine worker, so that they do not take the engine worker's time.
 *
 * Life of a job: Its specification arrives with all it needs except the input tables. The job is stepped in slices of a few
 * milliseconds. Between steps, input is requested and output is written. The result or the error goes back.
 *
 * Invariant: it decides nothing and owns nothing. A result takes effect only when the engine worker accepts it. If the
 * compactor ends at any point, it leaves slots that belong to no table.
 */

import { toWire, VarveError } from '../errors.ts';
import { nextTurn } from '../runtime/turn.ts';
import type { OpenOutput, OutputPlace } from '../storage/compactor-port.ts';
import type { Engine } from '../wasm/engine.ts';
import { instantiate } from '../wasm/instantiate.ts';
import { CompactionJob } from '../wasm/job.ts';
import { Checker, type CheckerRequest, type CheckerResponse } from './checker.ts';
import { driveJob } from './drive-job.ts';
import type { CompactorRequest, CompactorResponse } from './messages.ts';
import { CompactorOutputs } from './output.ts';

/** Sends a message to the engine worker. */
type Post = (message: CompactorResponse | CheckerResponse, transfer: Transferable[]) => void;

interface Running {
  readonly urgent: boolean;
  waiting: boolean;
  /** Resolves the job's open request, if any, with input bytes or the number of a slot. */
  resolve?: (answer: Uint8Array | number) => void;
  reject?: (error: VarveError) => void;
}

/** Answers the messages of one engine worker. */
export class Compactor {
  readonly #post: Post;
  readonly #jobs = new Map<number, Running>();
  readonly #checker: Checker;
  #engine: Engine | undefined;
  readonly #place: OutputPlace;
  readonly #outputs = new Set<CompactorOutputs>();
  #slots: Promise<OpenOutput> | undefined;
  #halted = false;

  constructor(post: Post, place: OutputPlace) {
    this.#post = post;
    this.#place = place;
    this.#checker = new Checker((message) => post(message, []));
  }

  /** Handles one message. */
  receive(message: CompactorRequest | CheckerRequest): void {
    switch (message.type) {
      case 'start':
        this.#engine = instantiate(message.module);
        this.#slots = this.#place(message.store);
        this.#slots.catch(() => undefined);
        return;
      case 'job':
        void this.#run(message.job, message.spec, message.urgent);
        return;
      case 'input':
        this.#jobs.get(message.job)?.resolve?.(message.bytes);
        return;
      case 'slot':
        this.#jobs.get(message.job)?.resolve?.(message.slot);
        return;
      case 'refused':
        this.#jobs.get(message.job)?.reject?.(VarveError.fromWire(message.error));
        return;
      default:
        this.#checker.receive(message);
    }
  }

  /** Closes all slots. After that, nothing is opened or written. */
  halt(): void {
    this.#halted = true;
    for (const outputs of this.#outputs) outputs.closeAll();
  }

  async #run(job: number, spec: Uint8Array, urgent: boolean): Promise<void> {
    this.#jobs.set(job, { urgent, waiting: false });
    let outputs: CompactorOutputs | undefined;
    let machine: CompactionJob | undefined;
    try {
      const open = await this.#slots;
      if (this.#engine === undefined || open === undefined) {
        throw new VarveError('VARVE_INTERNAL', 'The compactor got a job before it was started.');
      }
      outputs = new CompactorOutputs(
        (slot) => (this.#halted ? Promise.reject(halted()) : open(slot)),
        (table) => this.#lend(job, table),
      );
      this.#outputs.add(outputs);
      machine = new CompactionJob(this.#engine, spec);
      await this.#drive(job, machine, outputs);
      const result = machine.result();
      this.#post({ type: 'done', job, result }, [result.buffer]);
    } catch (error) {
      if (!this.#halted) outputs?.closeAll();
      this.#post({ type: 'failed', job, error: toWire(error) }, []);
    } finally {
      machine?.free();
      if (outputs !== undefined) this.#outputs.delete(outputs);
      this.#jobs.delete(job);
    }
  }

  async #drive(job: number, machine: CompactionJob, outputs: CompactorOutputs): Promise<void> {
    await driveJob(machine, {
      input: (table, offset, length) => this.#input(job, table, offset, length),
      damaged: (table) => this.#post({ type: 'damaged', job, table }, []),
      write: (table, offset, bytes) => outputs.write(table, offset, bytes),
      finish: (table, size) => {
        outputs.finish(table);
        this.#post({ type: 'finished', job, table, size }, []);
      },
      rest: async () => {
        do await nextTurn();
        while (this.#mustYield(job));
      },
    });
  }

  /** A flush goes before compactions: writers may be waiting for it. */
  #mustYield(job: number): boolean {
    if (this.#jobs.get(job)?.urgent) return false;
    for (const [id, other] of this.#jobs) if (id !== job && other.urgent && !other.waiting) return true;
    return false;
  }

  async #input(job: number, table: number, offset: number, length: number): Promise<Uint8Array> {
    const answer = await this.#ask(job, { type: 'need', job, table, offset, length });
    if (typeof answer === 'number') throw new VarveError('VARVE_INTERNAL', 'A slot came where bytes were asked for.');
    return answer;
  }

  async #lend(job: number, table: number): Promise<number> {
    const answer = await this.#ask(job, { type: 'lend', job, table });
    if (typeof answer !== 'number') throw new VarveError('VARVE_INTERNAL', 'Bytes came where a slot was asked for.');
    return answer;
  }

  #ask(job: number, message: CompactorResponse): Promise<Uint8Array | number> {
    return new Promise((resolve, reject) => {
      const running = this.#jobs.get(job);
      if (running === undefined) return;
      running.waiting = true;
      running.resolve = (answer) => {
        running.waiting = false;
        resolve(answer);
      };
      running.reject = (error) => {
        running.waiting = false;
        reject(error);
      };
      this.#post(message, []);
    });
  }
}

function halted(): VarveError {
  return new VarveError('VARVE_CLOSED', 'The store was closed while a job was running.');
}
