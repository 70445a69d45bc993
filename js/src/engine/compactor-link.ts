/**
 * The engine worker's end of the compactor: starts the worker at the first job and pairs messages with jobs.
 *
 * Invariant: every job has exactly one outcome: its result, the error that the compactor reported, or the error that the worker
 * ended. Then the next job starts a new worker.
 */

import type { CompactorRequest, CompactorResponse } from '../compactor/messages.ts';
import { toWire, VarveError } from '../errors.ts';
import type { CompactorPort, SpawnCompactor } from '../storage/compactor-port.ts';
import type { JobTicket } from '../wasm/job-ticket.ts';

/** The services that a job needs from the engine worker while it runs. */
export interface JobServices {
  /** Bytes of an input table. */
  read(table: number, offset: number, length: number): Uint8Array;
  /** A closed slot for an output table. */
  lend(table: number): Promise<number>;
  /** An output table is complete and its slot closed again. */
  finished(table: number, size: number): void;
  /** The job fails, because an input table is damaged. */
  damaged(table: number): void;
}

/** Runs jobs beside the engine. */
export interface JobsBeside {
  /** Runs a job; resolves with its result. */
  run(ticket: JobTicket, services: JobServices): Promise<Uint8Array>;
  /** Gets ready ahead of the first job. */
  warm(): void;
  /** Ends what is running; resolves once it writes no more. */
  shutDown(): void | Promise<void>;
}

interface Running {
  readonly services: JobServices;
  readonly resolve: (result: Uint8Array) => void;
  readonly reject: (error: VarveError) => void;
}

/** The compactor of one store. */
export class CompactorLink implements JobsBeside {
  readonly #spawn: SpawnCompactor;
  readonly #module: WebAssembly.Module;
  readonly #store: string;
  readonly #jobs = new Map<number, Running>();
  #worker: CompactorPort | undefined;
  #ending: Promise<unknown> = Promise.resolve();

  constructor(spawn: SpawnCompactor, module: WebAssembly.Module, store: string) {
    this.#spawn = spawn;
    this.#module = module;
    this.#store = store;
  }

  /** Runs a job; resolves with its result. */
  run(ticket: JobTicket, services: JobServices): Promise<Uint8Array> {
    return new Promise((resolve, reject) => {
      this.#jobs.set(ticket.id, { services, resolve, reject });
      try {
        this.#worker ??= this.#start();
        this.#worker.ref?.();
        const { id: job, spec } = ticket;
        this.#post({ type: 'job', job, spec, urgent: ticket.kind === 'flush' }, [spec.buffer]);
      } catch (cause) {
        this.#end('The compactor worker could not be started.', cause);
      }
    });
  }

  /** Starts the worker ahead of its first job. If the start fails, the first job tries again and gets the error. */
  warm(): void {
    try {
      this.#worker ??= this.#start();
    } catch {
      this.#worker = undefined;
    }
  }

  /** Ends the worker and all its jobs; resolves once it writes no more. */
  async shutDown(): Promise<void> {
    this.#end('The store was closed while a job was running.', undefined);
    await this.#ending;
  }

  #start(): CompactorPort {
    const worker = this.#spawn();
    worker.addEventListener('message', (event: MessageEvent<CompactorResponse>) => {
      if (worker === this.#worker) this.#receive(event.data);
    });
    worker.addEventListener('error', (event) => {
      event.preventDefault();
      if (worker === this.#worker) this.#end(`The compactor worker failed: ${event.message}`, event.error);
    });
    const start: CompactorRequest = { type: 'start', module: this.#module, store: this.#store };
    worker.postMessage(start);
    return worker;
  }

  #post(message: CompactorRequest, transfer: object[]): void {
    this.#worker?.postMessage(message, transfer);
  }

  #receive(message: CompactorResponse): void {
    const { job } = message;
    const running = this.#jobs.get(job);
    if (running === undefined) return;
    switch (message.type) {
      case 'need':
        try {
          const bytes = running.services.read(message.table, message.offset, message.length);
          this.#post({ type: 'input', job, bytes }, [bytes.buffer]);
        } catch (error) {
          this.#refuse(job, error);
        }
        return;
      case 'lend':
        running.services.lend(message.table).then(
          (slot) => this.#post({ type: 'slot', job, slot }, []),
          (error: unknown) => this.#refuse(job, error),
        );
        return;
      case 'finished':
        running.services.finished(message.table, message.size);
        return;
      case 'damaged':
        running.services.damaged(message.table);
        return;
      case 'done':
        this.#remove(job);
        running.resolve(message.result);
        return;
      case 'failed':
        this.#remove(job);
        running.reject(VarveError.fromWire(message.error));
        // Its engine stopped in the middle of a call and must not be trusted with another job.
        if (message.error.code === 'VARVE_INTERNAL') this.#end('The compactor worker failed.', undefined);
        return;
    }
  }

  #refuse(job: number, error: unknown): void {
    this.#post({ type: 'refused', job, error: toWire(error) }, []);
  }

  #remove(job: number): void {
    this.#jobs.delete(job);
    if (this.#jobs.size === 0) this.#worker?.unref?.();
  }

  /** Callers take back the slots of a rejected job. So jobs are rejected only once the worker writes no more. */
  #end(message: string, cause: unknown): void {
    const ended = this.#worker?.terminate();
    this.#worker = undefined;
    const running = [...this.#jobs.values()];
    this.#jobs.clear();
    const reject = (): void => {
      for (const job of running) job.reject(new VarveError('VARVE_UNAVAILABLE', message, { cause }));
    };
    if (ended === undefined) reject();
    else this.#ending = Promise.all([this.#ending, ended.then(reject, reject)]);
  }
}
