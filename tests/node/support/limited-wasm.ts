/** The engine's module with a memory that cannot grow beyond a maximum. */

const MEMORY_SECTION = 5;
const PAGE_BYTES = 65_536;

/** The compiled engine whose memory has at most `bytesMax` bytes. */
export function limitedEngine(wasm: Uint8Array, bytesMax: number): WebAssembly.Module {
  let at = 8;
  while (at < wasm.length) {
    const id = wasm[at];
    const [length, start] = leb(wasm, at + 1);
    if (id === MEMORY_SECTION) {
      const [pagesMin] = leb(wasm, start + 2);
      // One memory, with a maximum.
      const body = [1, 1, ...toLeb(pagesMin), ...toLeb(bytesMax / PAGE_BYTES)];
      const section = [MEMORY_SECTION, ...toLeb(body.length), ...body];
      return new WebAssembly.Module(
        Buffer.concat([wasm.subarray(0, at), Buffer.from(section), wasm.subarray(start + length)]),
      );
    }
    at = start + length;
  }
  throw new Error('The module has no memory.');
}

/** A number, and where it ends. */
function leb(bytes: Uint8Array, at: number): [number, number] {
  let value = 0;
  for (let shift = 0; ; shift += 7, at++) {
    const byte = bytes[at] ?? 0;
    value |= (byte & 0x7f) << shift;
    if (byte < 0x80) return [value, at + 1];
  }
}

function toLeb(value: number): number[] {
  return value < 0x80 ? [value] : [(value & 0x7f) | 0x80, ...toLeb(value >>> 7)];
}
