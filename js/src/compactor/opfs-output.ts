/**
 * The compactor's access to the slots of a store in the origin private file system.
 *
 * Invariant: a slot is opened only after the engine worker has closed it, because handles exclude one another.
 */

import { VarveError } from '../errors.ts';
import type { OpenOutput, OutputSlot } from '../storage/compactor-port.ts';
import { withSlotErrors } from '../storage/device.ts';
import { slotError } from '../storage/opfs.ts';
import { openSlot, storeDirectory } from '../storage/opfs-directory.ts';

/** How long to wait for a lent slot: the engine worker closes it just before. */
const OPEN_MS = 5000;

/** The slots of a store, by its name. */
export async function opfsOutputs(store: string): Promise<OpenOutput> {
  const directory = await storeDirectory(store, { create: false });
  if (directory === undefined) throw new VarveError('VARVE_INTERNAL', 'The store that is compacted is not there.');
  return async (slot): Promise<OutputSlot> => {
    const handle = await openSlot(directory, slot, { create: false, waitMs: OPEN_MS });
    return {
      write: (bytes, at) => withSlotErrors(() => handle.write(bytes as Uint8Array<ArrayBuffer>, { at }), slotError),
      flush: () => withSlotErrors(() => handle.flush(), slotError),
      close: () => handle.close(),
    };
  };
}
