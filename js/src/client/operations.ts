/**
 * The operations of one store: how each is written into a request frame, and how its answer is read.
 *
 * Invariant: made once for a store and without state, so that a call allocates only its promise.
 */

import type { Formats } from '../codec/formats.ts';
import type { KeyFormat } from '../codec/key-format.ts';
import type { ValueFormat } from '../codec/values.ts';
import type { BatchWriter } from '../protocol/batch-writer.ts';
import { ENTRY_HEAD_BYTES, Op, type OpCode, READ_POINT_BYTES, Status } from '../protocol/frame.ts';
import type { FrameReader, ReadPoint } from '../protocol/frame-reader.ts';
import { type Encoder, type Operation, rawBytes, word } from '../protocol/frame-writer.ts';
import { readScanBatch, type ScanBatch, type ScanRequest, writeScanOpen } from '../protocol/scan.ts';
import type { DeleteReceipt, Entry, Receipt } from '../types.ts';

/** The parts of entries in the batches of a scan, as requested when it is opened. */
interface ScanParts {
  readonly keys: boolean;
  readonly values: boolean;
}

/** The first batch of a scan, and the read point of the scan. */
export interface ScanOpened extends ScanBatch {
  readonly readPoint: ReadPoint;
}

/** Opens and continues scans whose batches contain the same parts. */
export interface ScanOperations {
  readonly parts: ScanParts;
  readonly open: Operation<number, ScanRequest, ScanOpened>;
  readonly next: Operation<number, number, ScanBatch>;
}

/** The value of a delete that asks whether its key was there: one byte, of no meaning. */
const ASKS: Encoder<undefined> = { write: (_, sink) => sink.byte(1) };
const SCAN_OPENING: Encoder<ScanRequest> = { write: writeScanOpen };

/** An operation whose answer a cache may have. */
export interface KeptOperation<A, B, T, K, V> extends Operation<A, B, T> {
  /** The formats of its keys and values. */
  readonly formats: Formats<K, V>;
}

/** The operations of a store, or a view, with keys `K` and values `V`. */
export class Operations<K, V> implements Formats<K, V> {
  readonly keys: KeyFormat<K>;
  readonly values: ValueFormat<V>;
  readonly owner: object;
  readonly get: KeptOperation<K, undefined, V | undefined, K, V>;
  readonly getMany: KeptOperation<undefined, readonly K[], (V | undefined)[], K, V>;
  readonly getEntry: Operation<K, undefined, Entry<V> | undefined>;
  readonly has: KeptOperation<K, undefined, boolean, K, V>;
  readonly set: Operation<K, V, Receipt>;
  readonly delete: Operation<K, undefined, Receipt>;
  /** A delete that reports whether its key was there. */
  readonly deleteAsking: Operation<K, undefined, DeleteReceipt>;

  constructor({ owner, keys: key, values: value }: Formats<K, V>) {
    this.owner = owner;
    this.keys = key;
    this.values = value;
    const read = (bytes: Uint8Array, start: number, end: number): V => value.read(bytes, start, end);
    this.get = {
      formats: this,
      code: Op.get,
      key,
      value: undefined,
      read: (answer) => (answer.status === Status.missing ? undefined : read(answer.bytes, answer.start, answer.end)),
    };
    this.getMany = {
      formats: this,
      code: Op.getMany,
      key: undefined,
      value: keyList(key),
      read: (answer) => answer.many(read),
    };
    this.getEntry = {
      code: Op.getEntry,
      key,
      value: undefined,
      read: (answer) => {
        if (answer.status === Status.missing) return undefined;
        const { sequence, expiresAt } = answer.entryHead();
        return { value: read(answer.bytes, answer.start + ENTRY_HEAD_BYTES, answer.end), sequence, expiresAt };
      },
    };
    this.has = { formats: this, code: Op.has, key, value: undefined, read: (answer) => answer.status === Status.ok };
    this.set = write(Op.set, key, value);
    this.delete = write(Op.delete, key, undefined);
    this.deleteAsking = {
      code: Op.delete,
      key,
      value: ASKS,
      read: (answer) => ({ ...answer.receipt(), existed: answer.status === Status.ok }),
    };
  }
}

/** Carries a batch. */
export const batchOperation: Operation<undefined, BatchWriter | Uint8Array, Receipt> = write(Op.batch, undefined, {
  write(batch, sink) {
    if (batch instanceof Uint8Array) sink.append(batch);
    else batch.appendTo(sink);
  },
});
/** Deletes from the key bytes to before the value bytes. */
export const deleteRange: Operation<Uint8Array, Uint8Array, Receipt> = write(Op.deleteRange, rawBytes, rawBytes);
/** Flushes the log. */
export const syncOperation: Operation<undefined, undefined, void> = {
  code: Op.sync,
  key: undefined,
  value: undefined,
  read: () => undefined,
};
/** Closes a cursor. */
export const scanClose: Operation<number, undefined, void> = {
  code: Op.scanClose,
  key: word,
  value: undefined,
  read: () => undefined,
};

/** Takes the snapshot whose number is in the level field. */
export const snapshotOpen: Operation<undefined, undefined, ReadPoint> = {
  code: Op.snapshotOpen,
  key: undefined,
  value: undefined,
  read: (answer) => answer.readPoint(),
};
/** Opens the snapshot whose number is in the level field again, with another leader. */
export const snapshotRestore: Operation<undefined, ReadPoint, ReadPoint> = {
  code: Op.snapshotRestore,
  key: undefined,
  value: {
    write({ sequence, nowMs }, sink) {
      for (const number of [sequence, nowMs]) {
        sink.u32(number >>> 0);
        sink.u32(Math.floor(number / 0x1_0000_0000));
      }
    },
  },
  read: (answer) => answer.readPoint(),
};
/** Releases the snapshot whose number is in the level field. */
export const snapshotClose: Operation<undefined, undefined, void> = {
  code: Op.snapshotClose,
  key: undefined,
  value: undefined,
  read: () => undefined,
};

/** Scans that only count. */
export const scanCount: ScanOperations = scan({ keys: false, values: false });
/** Scans for keys, for values, or for both. */
export const scanKeys: ScanOperations = scan({ keys: true, values: false });
export const scanValues: ScanOperations = scan({ keys: false, values: true });
export const scanEntries: ScanOperations = scan({ keys: true, values: true });

function scan(parts: ScanParts): ScanOperations {
  const { keys, values } = parts;
  const read = (answer: FrameReader): ScanBatch => readScanBatch(answer.bytes, answer.start, answer.end, keys, values);
  const opened = (answer: FrameReader): ScanOpened => {
    const readPoint = answer.readPoint();
    return { ...readScanBatch(answer.bytes, answer.start + READ_POINT_BYTES, answer.end, keys, values), readPoint };
  };
  return {
    parts,
    open: { code: Op.scanOpen, key: word, value: SCAN_OPENING, read: opened },
    next: { code: Op.scanNext, key: word, value: word, read },
  };
}

function write<K, V>(
  code: OpCode,
  key: Encoder<K> | undefined,
  value: Encoder<V> | undefined,
): Operation<K, V, Receipt> {
  return { code, key, value, read: (answer) => answer.receipt() };
}

/** The keys of getMany: u32 count, then { u32 length, key, pad to 4 }. */
export function keyList<K>(format: Encoder<K>): Encoder<readonly K[]> {
  return {
    write(keys, sink) {
      const origin = sink.at;
      sink.u32(keys.length);
      for (const key of keys) {
        const at = sink.at;
        sink.u32(0);
        format.write(key, sink);
        sink.setU32(at, sink.at - at - 4);
        sink.pad4(origin);
      }
    },
  };
}
