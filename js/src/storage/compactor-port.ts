/**
 * The worker that flushes and compacts, and the slots that it writes, as a storage sees them: a device may bring a compactor of its own.
 * Types only.
 */

/** The worker: a `Worker` of the web, or one like it. */
export interface CompactorPort {
  postMessage(message: object, transfer?: object[]): void;
  addEventListener(type: 'message', listener: (event: MessageEvent) => void): void;
  addEventListener(type: 'error', listener: (event: ErrorEvent) => void): void;
  /** Ends it. If the storage cannot guarantee by itself that the worker stops writing, resolves once it writes no more. */
  terminate(): void | Promise<void>;
  /** On a server: the process waits for the worker after `ref`, and does not wait after `unref`. */
  ref?(): void;
  unref?(): void;
}

/** Makes the worker. */
export type SpawnCompactor = () => CompactorPort;

/** A lent slot, open in the compactor. Its methods throw a `SlotError` on failure. */
export interface OutputSlot {
  /** Writes at an offset of the slot; returns how many bytes were written. */
  write(bytes: Uint8Array, at: number): number;
  flush(): void;
  close(): void;
}

/** Opens a lent slot. The engine worker has just closed it. */
export type OpenOutput = (slot: number) => Promise<OutputSlot>;

/** Finds the slots of a store, named as the engine worker names it to the compactor. */
export type OutputPlace = (store: string) => Promise<OpenOutput>;
