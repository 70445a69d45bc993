/**
 * Writing an export: a snapshot of a store, block after block.
 *
 * Invariant: a block is read only when the stream has taken the one before, so that no more than one is held. The snapshot is
 * let go when the export ends, fails, or its reader leaves.
 */

import { encodeRange } from '../codec/range.ts';
import { abortError } from '../errors.ts';
import type { ScanBatch } from '../protocol/scan.ts';
import { readVersion, VERSION_KEY } from '../transaction/version.ts';
import type { KeyCodec } from '../types.ts';
import { BlockWriter, digestOf, encodeHeader, ID_BYTES } from './block.ts';
import type { RawScan, RawStore } from './raw-store.ts';
import type { ExportOptions } from './types.ts';

/** A snapshot that the export lets go of. */
export interface Moment {
  readonly number: number;
  readonly sequence: number;
  close(): unknown;
}

/** Writes what a snapshot holds of a range. What fails aborts the stream; this itself does not reject. */
export async function exportTo<K>(
  raw: RawStore,
  moment: Moment,
  writable: WritableStream<Uint8Array>,
  { signal, onProgress, ...range }: ExportOptions<K>,
  keys: KeyCodec<K> | undefined,
): Promise<void> {
  const writer = writable.getWriter();
  const abort = (): void => void writer.abort(signal && abortError(signal)).catch(ignore);
  // Whoever waits for a write hears of it there.
  writer.closed.catch(ignore);
  let scan: RawScan | undefined;
  try {
    if (signal?.aborted) throw abortError(signal);
    signal?.addEventListener('abort', abort, { once: true });
    const { lower, upper, empty } = encodeRange(range, keys);
    if (!empty) scan = raw.scan({ lower, upper }, moment.number);
    const version = readVersion(await raw.get(VERSION_KEY, moment.number));
    const id = crypto.getRandomValues(new Uint8Array(ID_BYTES));
    const header = await encodeHeader({ id, sequence: moment.sequence, version });
    let [entries, blocks, bytes, previous] = [0, 0, header.length, digestOf(header)];
    await writer.write(header);
    const block = new BlockWriter();
    const send = async (): Promise<void> => {
      const sent = await block.finish();
      previous = digestOf(sent);
      bytes += sent.length;
      await writer.write(sent);
      onProgress?.({ entries, bytes });
    };
    for (let batch = await scan?.take(); batch !== undefined; batch = await scan?.take()) {
      if (batch.count === 0) continue;
      block.begin(previous);
      addAll(block, batch);
      entries += batch.count;
      blocks++;
      await send();
    }
    block.begin(previous);
    block.end(entries, blocks);
    await send();
    await writer.close();
  } catch (error) {
    await writer.abort(error).catch(ignore);
  } finally {
    signal?.removeEventListener('abort', abort);
    scan?.close();
    moment.close();
  }
}

function addAll(block: BlockWriter, { keys, key_ends, values, value_ends, count }: ScanBatch): void {
  let [key_at, value_at] = [0, 0];
  for (let i = 0; i < count; i++) {
    const [key_end, value_end] = [key_ends[i] as number, value_ends[i] as number];
    block.entry(keys.subarray(key_at, key_end), values.subarray(value_at, value_end));
    [key_at, value_at] = [key_end, value_end];
  }
}

function ignore(): void {}
