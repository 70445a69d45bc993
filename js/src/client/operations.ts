/**
 * The operations of one store: how each is written into a request frame, and how its answer is read.
 *
 * Invariant: made once for a store and without state, so that a call allocates only its promise.
 */

import { type KeyFormat, keyFormatOf } from '../codec/key-format.ts';
import { formatOf, structured, type ValueFormat } from '../codec/values.ts';
import { ENTRY_HEAD_BYTES, Op, type OpCode, READ_POINT_BYTES, Status } from '../protocol/frame.ts';
import type { FrameReader, ReadPoint } from '../protocol/frame-reader.ts';
import { type Encoder, type Operation, rawBytes, word } from '../protocol/frame-writer.ts';
import { readScanBatch, type ScanBatch, type ScanRequest, writeScanOpen } from '../protocol/scan.ts';
import type { DeleteReceipt, Entry, KeyCodec, Receipt, ValueCodec } from '../types.ts';

/** The parts of entries in the batches of a scan, as requested when it is opened. */
export interface ScanParts {
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

/** The operations of a store with keys `K` and values `V`. */
export class Operations<K, V> {
  readonly codec: KeyCodec<K> | undefined;
  readonly keys: KeyFormat<K>;
  readonly values: ValueFormat<V>;
  readonly get: Operation<K, undefined, V | undefined>;
  readonly getMany: Operation<undefined, readonly K[], (V | undefined)[]>;
  readonly getEntry: Operation<K, undefined, Entry<V> | undefined>;
  readonly has: Operation<K, undefined, boolean>;
  readonly set: Operation<K, V, Receipt>;
  readonly delete: Operation<K, undefined, Receipt>;
  /** A delete that reports whether its key was there. */
  readonly deleteAsking: Operation<K, undefined, DeleteReceipt>;

  constructor(keys: KeyCodec<K> | undefined, values: ValueCodec<V> | undefined) {
    this.codec = keys;
    this.keys = keyFormatOf(keys);
    // Without a codec the caller chooses `V`, as with `structured.as<V>()`.
    this.values = formatOf(values ?? (structured as unknown as ValueCodec<V>));
    const { keys: key, values: value } = this;
    const read = (bytes: Uint8Array, start: number, end: number): V => value.read(bytes, start, end);
    this.get = {
      code: Op.get,
      key,
      value: undefined,
      read: (answer) => (answer.status === Status.missing ? undefined : read(answer.bytes, answer.start, answer.end)),
    };
    this.getMany = {
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
        const { sequence, expires } = answer.entryHead();
        return { value: read(answer.bytes, answer.start + ENTRY_HEAD_BYTES, answer.end), sequence, expires };
      },
    };
    this.has = { code: Op.has, key, value: undefined, read: (answer) => answer.status === Status.ok };
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

/** Carries the bytes of a `BatchWriter`. */
export const batchOperation: Operation<undefined, Uint8Array, Receipt> = write(Op.batch, undefined, rawBytes);
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
