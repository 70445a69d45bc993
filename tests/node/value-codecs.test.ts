/** The built-in value codecs and the user's own: which bytes each stores, and that no codec reads another's bytes. */

import { describe, expect, test } from 'vitest';
import { ByteSink } from '../../js/src/codec/sink.ts';
import { bytes, formatOf, json, structured, utf8 } from '../../js/src/codec/values.ts';
import type { ValueCodec } from '../../js/src/types.ts';

const hex = (encoded: Uint8Array): string => Buffer.from(encoded).toString('hex');

describe('codecs', () => {
  test('bytes stores Uint8Array only', () => {
    expect(hex(bytes.encode(new Uint8Array([5])))).toBe('0005');
    expect(bytes.decode(bytes.encode(new Uint8Array([5])))).toEqual(new Uint8Array([5]));
    expect(() => bytes.encode('x' as never)).toThrow(expect.objectContaining({ code: 'VARVE_INVALID_VALUE' }));
  });

  test('utf8 stores strings only', () => {
    expect(utf8.decode(utf8.encode('é😀'))).toBe('é😀');
    expect(() => utf8.encode(1 as never)).toThrow(expect.objectContaining({ code: 'VARVE_INVALID_VALUE' }));
    expect(() => utf8.encode('\ud800')).toThrow(expect.objectContaining({ code: 'VARVE_INVALID_VALUE' }));
  });

  test('json stores what JSON expresses', () => {
    expect(json.decode(json.encode({ a: [1, null, 'é'] }))).toEqual({ a: [1, null, 'é'] });
    for (const value of [undefined, () => 1, 1n]) {
      expect(() => json.encode(value)).toThrow(expect.objectContaining({ code: 'VARVE_INVALID_VALUE' }));
    }
  });

  test('the default reads what bytes and utf8 wrote; the errors of others name the codec', () => {
    expect(structured.decode(utf8.encode('a'))).toBe('a');
    expect(structured.decode(bytes.encode(new Uint8Array([1])))).toEqual(new Uint8Array([1]));
    const mine: ValueCodec<string> = {
      name: 'mine',
      encode: (v) => new TextEncoder().encode(v),
      decode: (b) => new TextDecoder().decode(b),
    };
    const pairs = [
      [bytes, 'a'],
      [utf8, 1],
      [json, 'a'],
      [formatOf(mine), 'a'],
    ] as const;
    for (const [codec, value] of pairs) {
      const stored = structured.encode(value);
      expect(() => formatOf(codec as ValueCodec<unknown>).read(stored, 0, stored.length)).toThrow(
        expect.objectContaining({ code: 'VARVE_INVALID_VALUE', message: expect.stringContaining(codec.name) }),
      );
      const later = Uint8Array.of(5, 1);
      expect(() => formatOf(codec as ValueCodec<unknown>).read(later, 0, 2)).toThrow(
        expect.objectContaining({ code: 'VARVE_VERSION' }),
      );
    }
  });

  test('a codec of the user gets its bytes back, and its errors reject the call', () => {
    const format = formatOf<number>({
      name: 'little',
      encode: (value) => {
        if (value > 255) throw new RangeError('too big');
        return new Uint8Array([value]);
      },
      decode: (stored) => {
        if (stored.length !== 1) throw new RangeError('not mine');
        return stored[0] as number;
      },
    });
    const sink = new ByteSink();
    format.write(200, sink);
    expect(format.read(sink.bytes, 0, sink.at)).toBe(200);
    const at = sink.at;
    expect(() => format.write(256, sink)).toThrow(
      expect.objectContaining({ code: 'VARVE_INVALID_VALUE', cause: new RangeError('too big') }),
    );
    expect(sink.at).toBe(at);
    expect(() => format.read(new Uint8Array([4, 1, 2]), 0, 3)).toThrow(
      expect.objectContaining({ code: 'VARVE_INVALID_VALUE' }),
    );
    const wrong = formatOf<number>({ name: 'wrong', encode: () => 'text' as never, decode: () => 1 });
    expect(() => wrong.write(1, sink)).toThrow(expect.objectContaining({ code: 'VARVE_INVALID_VALUE' }));
  });
});
