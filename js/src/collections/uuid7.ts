/**
 * Keys that any client can make by itself, and that sort by the time when they were made: UUIDs of version 7 (RFC 9562).
 *
 * Invariant: within one realm, each key sorts after the one before it, also within a millisecond and when the clock goes back.
 *
 *   48 bits ms since 1970 | 4 bits version | 12 bits counter | 2 bits variant | 62 random bits
 */

let lastMs = 0;
let counter = 0;

/**
 * Makes a UUID of version 7. Later keys sort later. Keys of different tabs sort by the clocks of the tabs.
 *
 * @example
 * const notes = collection<Note>()(db, 'notes', { key: 'id', newKey: uuid7 });
 * const id = await notes.insert({ title: 'Silt' }); // '019ab1c2-...'
 */
export function uuid7(): string {
  const nowMs = Date.now();
  if (nowMs > lastMs) {
    lastMs = nowMs;
    counter = 0;
  } else if (++counter > 0xfff) {
    lastMs++;
    counter = 0;
  }
  const random = crypto.getRandomValues(new Uint8Array(8));
  random[0] = ((random[0] as number) & 0x3f) | 0x80;
  const tail = Array.from(random, (byte) => hex(byte, 2)).join('');
  const time = hex(lastMs, 12);
  return `${time.slice(0, 8)}-${time.slice(8)}-7${hex(counter, 3)}-${tail.slice(0, 4)}-${tail.slice(4)}`;
}

const hex = (number: number, digits: number): string => number.toString(16).padStart(digits, '0');
