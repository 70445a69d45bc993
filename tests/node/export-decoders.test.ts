/** Decoders of exports accept arbitrary bytes: the result is an error, or the decoded content, and nothing else. */

import fc from 'fast-check';
import { expect, test } from 'vitest';
import { KEY_BYTES_MAX } from '../../js/src/codec/plain-key.ts';
import { VALUE_BYTES_MAX } from '../../js/src/codec/values.ts';
import {
  BlockWriter,
  BODY_BYTES_MAX,
  decodeHead,
  digestOf,
  encodeHeader,
  readEnd,
  readEntries,
  sha256,
} from '../../js/src/portable/block.ts';
import { decodeRecord, encodeRecord } from '../../js/src/portable/import-record.ts';
import { EXPORT_BATCH } from '../../js/src/protocol/scan.ts';
import { chunks, newStore } from './support/exports.ts';

const corrupt = expect.objectContaining({ code: 'VARVE_CORRUPT' });

test('entries that were written are read; any others are read or refused', () => {
  const entry = fc.record({
    key: fc.uint8Array({ maxLength: 300 }),
    value: fc.uint8Array({ minLength: 8, maxLength: 300 }),
  });
  const noise = fc.oneof(fc.uint8Array({ maxLength: 50 }), fc.uint8Array({ max: 3, maxLength: 50 }));
  fc.assert(
    fc.property(noise, fc.nat(10), (body, count) => {
      let read = 0;
      let bytes = 0;
      const each = (key: Uint8Array, value: Uint8Array, expires: Uint8Array | undefined): void => {
        read++;
        bytes += key.length + value.length + (expires?.length ?? 0);
      };
      try {
        readEntries(body, count, 0, each);
        expect(read).toBe(count);
      } catch (error) {
        expect(error).toEqual(corrupt);
      }
      expect(bytes).toBeLessThanOrEqual(body.length);
    }),
    { numRuns: 20_000 },
  );
  return fc.assert(
    fc.asyncProperty(fc.array(entry, { maxLength: 20 }), async (entries) => {
      const block = new BlockWriter();
      block.begin(new Uint8Array(32));
      for (const { key, value } of entries) block.entry(key, value);
      const sent = await block.finish();
      const read: unknown[] = [];
      readEntries(sent.subarray(16, -32), entries.length, 0, (key, value, expires) => {
        read.push({ key: key.slice(), value: Uint8Array.of(...(expires ?? new Uint8Array(8)), ...value) });
      });
      expect(read).toStrictEqual(entries.map(({ key, value }) => ({ key: key.slice(), value: value.slice() })));
    }),
  );
});

test('a block with a batch of entries and the longest entry behind them is not too long', async () => {
  const previous = new Uint8Array(32);
  const head = async (length: number): Promise<Uint8Array> => {
    const words = new Uint8Array(new Uint32Array([length, 1]).buffer);
    return Uint8Array.of(...words, ...(await sha256(Uint8Array.of(...previous, ...words))).subarray(0, 8));
  };
  // The shortest entry is one byte that expires. With such entries, a block has 12 bytes and a batch 9.
  const before = (EXPORT_BATCH / 9) * 12;
  const length = Math.ceil(before) + 1 + 3 + 4 + 8 + KEY_BYTES_MAX + VALUE_BYTES_MAX;
  expect(await decodeHead(previous, await head(length), 0)).toStrictEqual({ length, entries: 1, isSealed: false });
  await expect(head(BODY_BYTES_MAX + 1).then((long) => decodeHead(previous, long, 0))).rejects.toEqual(corrupt);
});

test('ends and records of other lengths are refused', () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 120 }), (bytes) => {
      if (bytes.length === 16) {
        const [entries, blocks] = new BigUint64Array(bytes.slice().buffer);
        expect(readEnd(bytes, 0)).toStrictEqual({ entries: Number(entries), blocks: Number(blocks) });
      } else expect(() => readEnd(bytes, 0)).toThrow(corrupt);
      // With 8 bytes more, they are the sequence that it must have.
      const sequence = bytes.length === 88 ? Number(new DataView(bytes.buffer).getBigUint64(80, true)) : 0;
      expect(decodeRecord({ value: bytes, sequence }) === undefined).toBe(bytes.length !== 80 && bytes.length !== 88);
    }),
  );
  const record = {
    id: new Uint8Array(16).fill(1),
    offset: 2 ** 40,
    entries: 3,
    blocks: 4,
    version: 5,
    digest: new Uint8Array(32).fill(6),
  };
  expect(decodeRecord({ value: encodeRecord(record), sequence: 7 })).toStrictEqual(record);
  expect(decodeRecord({ value: encodeRecord(record, 7), sequence: 7 })).toStrictEqual(record);
  expect(decodeRecord({ value: encodeRecord(record, 7), sequence: 8 })).toBe(undefined);
});

// Story: a key with bytes that are no UTF-8 was imported. Scans showed it with replaced characters, and no call could get or delete it.
test('an export has no reserved keys and no invalid ones', async () => {
  const key = (...bytes: number[]): Uint8Array => Uint8Array.of(...bytes);
  const noText = [key(0x20, 0xff), key(0x20, 0xc0, 0x80), key(0x70, 0x20, 0xed, 0xa0, 0x80, 0, 1)];
  const corrupt = [key(), key(0xff, 1), key(0x30, 1), new Uint8Array(70_000).fill(0x20), ...noText].map(
    (wrong) => [wrong, 'VARVE_CORRUPT'] as const,
  );
  // A later version may know this type of keys.
  for (const [wrong, code] of [...corrupt, [key(0x05), 'VARVE_VERSION'] as const]) {
    const header = await encodeHeader({ id: new Uint8Array(16), sequence: 1, version: 0, isEncrypted: false });
    const block = new BlockWriter();
    block.begin(digestOf(header));
    block.entry(key(0x20, 97), new Uint8Array(9));
    block.entry(wrong, new Uint8Array(9));
    const body = await block.finish();
    const other = await newStore();
    const importing = other.import(chunks(new Uint8Array([...header, ...body]), 1000));
    await expect(importing).rejects.toMatchObject({ code });
    expect(await other.count()).toBe(0);
    await other.close();
  }
});
