/**
 * Flushes and compactions over a deferred device. They run in slices in the engine's own realm, because only this device has the
 * bytes. But they run in an instance of their own, and their reads and writes wait.
 *
 * Invariant: a job's input is fetched before the engine is asked for it, and its output is committed by itself, piece by piece. A
 * piece that finds no room ends the job and nothing else.
 */

import { driveJob } from '../compactor/drive-job.ts';
import { toWire, VarveError } from '../errors.ts';
import { nextTurn } from '../runtime/turn.ts';
import { commitFailure } from '../storage/commit-failure.ts';
import { type DeferredDevice, SLOT_DATA_OFFSET } from '../storage/device.ts';
import type { Engine } from '../wasm/engine.ts';
import { instantiate } from '../wasm/instantiate.ts';
import { CompactionJob } from '../wasm/job.ts';
import type { JobTicket } from '../wasm/job-ticket.ts';
import type { JobServices, JobsBeside } from './compactor-link.ts';

/** Bytes that are written at once. On a full storage, a long commit finds no room beside the data that it replaces. */
const PIECE_BYTES = 256 * 1024;

/** The jobs of one store. */
export class DeferredJobs implements JobsBeside {
  readonly #module: WebAssembly.Module;
  readonly #device: DeferredDevice;
  #engine: Engine | undefined;
  #isStopped = false;

  constructor(module: WebAssembly.Module, device: DeferredDevice) {
    this.#module = module;
    this.#device = device;
  }

  async run(ticket: JobTicket, services: JobServices): Promise<Uint8Array> {
    const device = this.#device;
    const slots = new Map<number, number>();
    const check = (): void => {
      if (this.#isStopped) throw new VarveError('VARVE_CLOSED', 'The store was closed.');
    };
    let job: CompactionJob | undefined;
    try {
      if (this.#engine === undefined || this.#engine.fault.found !== undefined)
        this.#engine = instantiate(this.#module);
      job = new CompactionJob(this.#engine, ticket.spec);
      await driveJob(job, {
        input: async (table, offset, length) => {
          const bytes = await device.resident(() => services.read(table, offset, length));
          check();
          return bytes;
        },
        damaged: (table) => services.damaged(table),
        write: async (table, offset, bytes) => {
          let slot = slots.get(table);
          if (slot === undefined) {
            slot = await services.lend(table);
            slots.set(table, slot);
            // The slot was closed for this job; nobody else can open it.
            await device.retake(slot);
          }
          for (let at = 0; at < bytes.length; at += PIECE_BYTES) {
            check();
            const piece = bytes.subarray(at, at + PIECE_BYTES);
            await device.writeApart(slot, piece, SLOT_DATA_OFFSET + offset + at, ticket.givesRoom);
          }
        },
        finish: (table, size) => {
          device.flush(slots.get(table) ?? -1);
          // From here on the engine may put other files behind the table. They were lost when a later output found no room, and all slots
          // of the job were emptied.
          slots.delete(table);
          services.finished(table, size);
        },
        rest: async () => {
          await nextTurn();
          check();
        },
      });
      return job.result();
    } catch (error) {
      const known = commitFailure(error);
      // Unfinished outputs take room that others need. A device that failed in another way accepts no more calls.
      const isFull = (known as VarveError).code === 'VARVE_STORAGE_FULL';
      if (isFull && !this.#isStopped) await Promise.allSettled([...slots.values()].map((slot) => device.discard(slot)));
      throw known instanceof VarveError ? known : VarveError.fromWire(toWire(known));
    } finally {
      job?.free();
    }
  }

  warm(): void {}

  shutDown(): void {
    this.#isStopped = true;
  }
}
