/**
 * Writes an export: a snapshot of a store, block after block, without the keys that are derived from others
 * (transaction/derived.ts).
 *
 * Invariant: a block is read only after the stream has taken the one before, so that memory contains no more than one. The
 * snapshot is closed when the export ends or fails, or when its reader cancels.
 */

import { type ByteRange, compareBytes, successor } from '../codec/range.ts';
import { userKeyOf } from '../encryption/user-key.ts';
import type { ScanBatch } from '../protocol/scan.ts';
import { readVersion, VERSION_KEY } from '../protocol/version.ts';
import { DERIVED_KEY, type Derivation, readDerivations } from '../transaction/derived.ts';
import type { Eventual } from '../types.ts';
import { BlockWriter, digestOf, encodeHeader, ID_BYTES } from './block.ts';
import { newCipher } from './cipher.ts';
import type { RawRange, RawScan, RawStore } from './raw-store.ts';
import type { ExportOptions } from './types.ts';

/** The options of an export as they were at its call, with the range in bytes. */
interface ExportRequest extends Pick<ExportOptions<never>, 'signal' | 'onProgress' | 'encryption'> {
  readonly range: ByteRange;
}

/** A snapshot that the export closes. */
interface ExportedSnapshot {
  readonly number: number;
  readonly sequence: Eventual<number>;
  close(): unknown;
}

/** Writes the entries of a range in a snapshot. A failure aborts the stream; the returned promise does not reject. */
export async function exportTo(
  raw: RawStore,
  snapshot: ExportedSnapshot,
  writable: WritableStream<Uint8Array>,
  { range, signal, onProgress, encryption }: ExportRequest,
): Promise<void> {
  const writer = writable.getWriter();
  const abort = (): void => void writer.abort(signal?.reason).catch(ignore);
  // A failure also rejects the pending write, where it is handled.
  writer.closed.catch(ignore);
  let scan: RawScan | undefined;
  try {
    signal?.throwIfAborted();
    signal?.addEventListener('abort', abort, { once: true });
    const encrypted = encryption && (await newCipher(await userKeyOf(encryption)));
    const sequence = await snapshot.sequence;
    const version = readVersion((await raw.get(VERSION_KEY, snapshot.number))?.value);
    const stated = readDerivations((await raw.get(DERIVED_KEY, snapshot.number))?.value);
    const id = crypto.getRandomValues(new Uint8Array(ID_BYTES));
    const header = await encodeHeader({ id, sequence, version, isEncrypted: encrypted !== undefined });
    let [entries, blocks, bytes, previous] = [0, 0, header.length, digestOf(header)];
    await writer.write(header);
    const block = new BlockWriter();
    const cipher = encrypted?.of(previous);
    if (encrypted !== undefined) {
      block.begin(previous);
      block.slots(encrypted.slots);
      const sent = await block.finish();
      previous = digestOf(sent);
      bytes += sent.length;
      await writer.write(sent);
    }
    const send = async (number: number): Promise<void> => {
      const sent = await block.finish(cipher, number);
      previous = digestOf(sent);
      bytes += sent.length;
      await writer.write(sent);
      onProgress?.({ entries, bytes });
    };
    for (const part of range.empty ? [] : partsWithout(range, stated)) {
      scan = raw.scan(part, snapshot.number);
      for (let batch = await scan.take(); batch !== undefined; batch = await scan.take()) {
        if (batch.count === 0) continue;
        block.begin(previous);
        addAll(block, batch);
        entries += batch.count;
        await send(blocks++);
      }
      scan.close();
    }
    block.begin(previous);
    block.end(entries, blocks);
    await send(blocks);
    await writer.close();
  } catch (error) {
    await writer.abort(error).catch(ignore);
  } finally {
    signal?.removeEventListener('abort', abort);
    scan?.close();
    snapshot.close();
  }
}

/** The parts of a range without derived keys, in order. */
function* partsWithout(
  { lower, upper }: RawRange,
  stated: readonly Derivation[],
): Generator<RawRange, void, undefined> {
  let from = lower;
  for (const prefix of stated.flatMap(({ derived }) => derived).sort(compareBytes)) {
    const end = successor(prefix);
    if (upper !== undefined && compareBytes(upper.key, prefix) < 0) break;
    if (from !== undefined && compareBytes(from.key, end) >= 0) continue;
    if (from === undefined || compareBytes(from.key, prefix) < 0)
      yield { lower: from, upper: { key: prefix, exclusive: true } };
    from = { key: end, exclusive: false };
  }
  if (from === undefined || upper === undefined || compareBytes(from.key, upper.key) <= 0) yield { lower: from, upper };
}

function addAll(block: BlockWriter, { keys, keyEnds, values, valueEnds, count }: ScanBatch): void {
  let [keyAt, valueAt] = [0, 0];
  for (let i = 0; i < count; i++) {
    const [keyEnd, valueEnd] = [keyEnds[i] as number, valueEnds[i] as number];
    block.entry(keys.subarray(keyAt, keyEnd), values.subarray(valueAt, valueEnd));
    [keyAt, valueAt] = [keyEnd, valueEnd];
  }
}

function ignore(): void {}
