/**
 * Flushes and compactions over a settling device: in slices in the engine's own realm, because only this device has the
 * bytes, but with reads and writes that wait.
 *
 * Invariant: a job's input is fetched before the engine is asked for it, and its output waits while too much of it is
 * uncommitted; the engine is never called with a read that could fail.
 */

import { VarveError } from '../errors.ts';
import { type SettlingDevice, SLOT_DATA_OFFSET } from '../storage/device.ts';
import { controlError } from '../wasm/errors.ts';
import type { EngineControl, JobTicket } from '../wasm/exports.ts';
import type { JobServices, JobsBeside } from './compactor-link.ts';
import { driveJob } from './drive-job.ts';
import { settlingFailure } from './settling-failure.ts';
import { nextTurn } from './turn.ts';

/** The jobs of one store. */
export class SettlingJobs implements JobsBeside {
  readonly #control: EngineControl;
  readonly #device: SettlingDevice;
  #isStopped = false;

  constructor(control: EngineControl, device: SettlingDevice) {
    this.#control = control;
    this.#device = device;
  }

  async run(ticket: JobTicket, services: JobServices): Promise<Uint8Array> {
    const device = this.#device;
    const slots = new Map<number, number>();
    const check = (): void => {
      if (this.#isStopped) throw new VarveError('VARVE_CLOSED', 'The store was closed.');
    };
    let job: InstanceType<EngineControl['CompactionJob']> | undefined;
    try {
      job = new this.#control.CompactionJob(ticket.spec);
      await driveJob(job, {
        input: async (table, offset, length) => {
          const bytes = await device.resident(() => services.read(table, offset, length));
          check();
          return bytes;
        },
        write: async (table, offset, bytes) => {
          while (device.isPressed) await device.settle();
          let slot = slots.get(table);
          if (slot === undefined) {
            slot = await services.lend(table);
            slots.set(table, slot);
            // Nobody else can open it: it was closed for us.
            await device.retake(slot);
          }
          check();
          device.write(slot, bytes, SLOT_DATA_OFFSET + offset);
        },
        finish: (table, size) => {
          device.flush(slots.get(table) ?? -1);
          services.finished(table, size);
        },
        rest: async () => {
          await nextTurn();
          check();
        },
      });
      return job.result();
    } catch (error) {
      const known = settlingFailure(error);
      throw known instanceof VarveError ? known : controlError(known);
    } finally {
      job?.free();
    }
  }

  warm(): void {}

  stop(): void {
    this.#isStopped = true;
  }
}
