/** Frames: how they are written and read, and how malformed ones are handled. */

import { describe, expect, test } from 'vitest';
import { ByteSink } from '../../js/src/codec/sink.ts';
import { BatchWriter } from '../../js/src/protocol/batch-writer.ts';
import { Op } from '../../js/src/protocol/frame.ts';
import { FrameReader } from '../../js/src/protocol/frame-reader.ts';
import { FrameWriter, type Operation, rawBytes } from '../../js/src/protocol/frame-writer.ts';
import { readScanBatch, writeScanOpen } from '../../js/src/protocol/scan.ts';
import { Random } from './support/random.ts';

const hex = (bytes: Uint8Array | ArrayBuffer): string => Buffer.from(bytes as Uint8Array).toString('hex');
const unhex = (digits: string): ArrayBuffer => new Uint8Array(Buffer.from(digits.replaceAll(/\s/g, ''), 'hex')).buffer;
const internal = expect.objectContaining({ code: 'VARVE_INTERNAL' });

const set: Operation<Uint8Array, Uint8Array, void> = {
  code: Op.set,
  key: rawBytes,
  value: rawBytes,
  read: () => undefined,
};
const get: Operation<Uint8Array, undefined, void> = {
  code: Op.get,
  key: rawBytes,
  value: undefined,
  read: () => undefined,
};

describe('a request frame', () => {
  test('is laid out as written', () => {
    const writer = new FrameWriter(7 * 2 ** 32 + 5);
    writer.add(7, set, 3, new Uint8Array([1, 2, 3]), new Uint8Array([4, 5]));
    writer.add(8, get, 0, new Uint8Array([9]), undefined);
    expect(writer.count).toBe(2);
    const expected =
      '56524632 02000000 0500000007000000 09000000 00000000  07000000 04 03 0000 03000000 02000000 010203 0405 000000  08000000 01 00 0000 01000000 00000000 09 000000';
    expect(hex(writer.take(9))).toBe(expected.replaceAll(' ', ''));
    expect(writer.count).toBe(0);
    expect(hex(writer.take())).toBe('56524632 00000000 0500000007000000 00000000 00000000'.replaceAll(' ', ''));
  });

  test('an operation can be taken out again, wherever it stands', () => {
    const fill = (skipped: number): FrameWriter => {
      const writer = new FrameWriter();
      for (let i = 0; i < 5; i++)
        if (i !== skipped) writer.add(i, set, 1, new Uint8Array(i), new Uint8Array(2 * i).fill(i));
      return writer;
    };
    for (let i = 0; i < 5; i++) {
      const writer = fill(-1);
      expect(writer.remove(i)).toBe(true);
      expect(writer.remove(i)).toBe(false);
      expect(hex(writer.take())).toBe(hex(fill(i).take()));
    }
  });

  test('an operation that is refused midway leaves no trace', () => {
    const refusing = {
      write(_: unknown, sink: ByteSink) {
        sink.append(new Uint8Array(5000));
        throw new Error('no');
      },
    };
    const writer = new FrameWriter();
    writer.add(1, get, 0, new Uint8Array([1]), undefined);
    expect(() => writer.add(2, { ...set, value: refusing }, 1, new Uint8Array([2]), new Uint8Array())).toThrow('no');
    writer.add(3, get, 0, new Uint8Array([3]), undefined);
    const clean = new FrameWriter();
    clean.add(1, get, 0, new Uint8Array([1]), undefined);
    clean.add(3, get, 0, new Uint8Array([3]), undefined);
    expect(hex(writer.take())).toBe(hex(clean.take()));
  });

  test('an encoder that writes another operation meanwhile is refused', () => {
    const writer = new FrameWriter();
    const nested = { write: () => writer.add(2, get, 0, new Uint8Array(), undefined) };
    expect(() => writer.add(1, { ...set, value: nested }, 1, new Uint8Array(), new Uint8Array())).toThrow(
      expect.objectContaining({ code: 'VARVE_INVALID_ARGUMENT' }),
    );
    expect(writer.count).toBe(0);
  });
});

describe('a response frame', () => {
  const frame = `56524632 03000000
    01000000 00 000000 02000000 00000000 aabb 0000
    02000000 01 000000 00000000 00000000
    03000000 02 000000 06000000 00000000 08000000 6e6f 0000`;

  test('is read as written', () => {
    const reader = new FrameReader(unhex(frame));
    expect(reader.next()).toBe(true);
    expect([reader.request, reader.status, hex(reader.bytes.subarray(reader.start, reader.end))]).toEqual([
      1,
      0,
      'aabb',
    ]);
    expect(reader.next()).toBe(true);
    expect([reader.request, reader.status, reader.end - reader.start]).toEqual([2, 1, 0]);
    expect(reader.next()).toBe(true);
    expect([reader.request, reader.status]).toEqual([3, 2]);
    expect(reader.error()).toMatchObject({ code: 'VARVE_POISONED', message: 'no' });
    expect(reader.next()).toBe(false);
  });

  test.each([
    ['nothing', ''],
    ['another magic', '56524631 00000000'],
    ['answers missing', '56524632 01000000'],
    ['an answer cut short', '56524632 01000000 01000000 00000000 00000000'],
    ['a payload cut short', '56524632 01000000 01000000 00000000 08000000 00000000 00000000'],
    ['a payload of 4 GiB', '56524632 01000000 01000000 00000000 ffffffff 00000000 00000000'],
    ['padding missing', '56524632 01000000 01000000 00000000 01000000 00000000 00'],
    ['an unknown status', '56524632 01000000 01000000 03000000 00000000 00000000'],
    ['bytes left over', '56524632 00000000 00000000'],
  ])('%s is reported', (_, digits) => {
    const walk = (): void => {
      const reader = new FrameReader(unhex(digits));
      while (reader.next());
    };
    expect(walk).toThrow(internal);
  });

  test('payloads too short for their content are reported', () => {
    const reader = new FrameReader(unhex('56524632 01000000 01000000 00000000 02000000 00000000 0100 0000'));
    reader.next();
    expect(() => reader.receipt()).toThrow(internal);
    expect(() => reader.entryHead()).toThrow(internal);
    expect(() => reader.error()).toThrow(internal);
    expect(() => reader.many(() => 1)).toThrow(internal);
  });

  test('a sequence beyond 32 bits is read', () => {
    const reader = new FrameReader(
      unhex('56524632 01000000 01000000 00000000 0c000000 00000000 05000000 01000000 03000000'),
    );
    reader.next();
    expect(reader.receipt()).toEqual({ sequence: 5 + 2 ** 32, durability: 'strict' });
  });

  test('a level that does not exist is reported', () => {
    const reader = new FrameReader(
      unhex('56524632 01000000 01000000 00000000 0c000000 00000000 05000000 01000000 09000000'),
    );
    reader.next();
    expect(() => reader.receipt()).toThrow(internal);
  });

  test.each([
    ['a count beyond the bytes', '04000000', 'ffffffff'],
    ['a length beyond the bytes', '08000000', '01000000 05000000'],
    ['an entry missing', '08000000', '02000000 ffffffff'],
  ])('many values: %s is reported', (_, length, payload) => {
    const reader = new FrameReader(unhex(`56524632 01000000 01000000 00000000 ${length} 00000000 ${payload}`));
    reader.next();
    expect(() => reader.many(() => 1)).toThrow(internal);
  });
});

describe('scans', () => {
  test('an opening is laid out as written', () => {
    const sink = new ByteSink(4);
    const bound = (byte: number, exclusive: boolean) => ({ key: new Uint8Array([byte]), exclusive });
    const range = { lower: bound(1, true), upper: bound(2, false), empty: false };
    writeScanOpen({ range, reverse: true, keys: true, values: false, limit: 5, snapshot: 0, batchBytes: 16 }, sink);
    expect(hex(sink.copy())).toBe('3b000000' + '05000000' + '10000000' + '01000000' + '01000000' + '0102');
    sink.at = 0;
    writeScanOpen(
      {
        range: { lower: undefined, upper: undefined, empty: false },
        reverse: false,
        keys: false,
        values: true,
        limit: undefined,
        snapshot: 0,
        batchBytes: 1,
      },
      sink,
    );
    expect(hex(sink.copy())).toBe('04000000' + 'ffffffff' + '01000000' + '00000000' + '00000000');
  });

  const batch = '03000000 02000000 03000000 05000000 01000000 03000000 02000000 05000000 aabbbb 00 ccccdddddd 000000';

  test('a batch is read as written, wherever it lies', () => {
    for (const shift of [0, 1, 4]) {
      const bytes = new Uint8Array([...new Uint8Array(shift), ...new Uint8Array(unhex(batch))]);
      const read = readScanBatch(bytes, shift, bytes.length, true, true);
      expect([read.cursor, read.count, [...read.keyEnds], [...read.valueEnds]]).toEqual([3, 2, [1, 3], [2, 5]]);
      expect([hex(read.keys), hex(read.values)]).toEqual(['aabbbb', 'ccccdddddd']);
    }
  });

  test('ends that go backwards are reported', () => {
    const bytes = new Uint8Array(unhex(batch));
    bytes.set([9, 0, 0, 0], 16);
    expect(() => readScanBatch(bytes, 0, bytes.length, true, true)).toThrow(internal);
  });

  test('a batch that is cut or changed is reported, or reads within its bytes', () => {
    const whole = new Uint8Array(unhex(batch));
    for (let length = 0; length < whole.length - 3; length++) {
      expect(() => readScanBatch(whole, 0, length, true, true)).toThrow(internal);
    }
    const random = new Random(31);
    for (let i = 0; i < 5000; i++) {
      const changed = whole.slice();
      changed[random.below(32)] = random.below(256);
      try {
        const read = readScanBatch(changed, 0, changed.length, true, true);
        expect(read.keyEnds.at(-1) ?? 0).toBe(read.keys.length);
        expect(read.valueEnds.at(-1) ?? 0).toBe(read.values.length);
      } catch (error) {
        expect(error).toMatchObject({ code: 'VARVE_INTERNAL' });
      }
    }
  });
});

describe('a batch of writes', () => {
  test('is laid out as written, without refused operations', () => {
    const batch = new BatchWriter();
    batch.set(rawBytes, new Uint8Array([1]), rawBytes, new Uint8Array([2, 3]));
    batch.delete(rawBytes, new Uint8Array([4]));
    const refusing = {
      write() {
        throw new Error('no');
      },
    };
    expect(() => batch.set(rawBytes, new Uint8Array([5]), refusing, 0)).toThrow('no');
    batch.deleteRange(new Uint8Array([6]), new Uint8Array());
    const expected =
      '03000000 01000000 01000000 02000000 010203 00 00000000 01000000 00000000 04 000000 02000000 01000000 00000000 06 000000';
    expect(hex(batch.view())).toBe(expected.replaceAll(' ', ''));
    expect(batch.count).toBe(3);
  });
});
