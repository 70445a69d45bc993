/** Data keys as the compiled engine and the tools take them. */

/** Data keys, and the key slots that have them. */
export interface DataKeys {
  /** `{ u16 number | key 32 B }*`, ascending: new files are encrypted under the last one. */
  readonly keys: Uint8Array;
  /** The key slots, for the manifest. */
  readonly slots: Uint8Array;
}

const KEY_ENTRY_BYTES = 34;
const NONCE_SEED_BYTES = 16;

/** `u8 count | keys | 16 random bytes for nonces, fresh each time | key slots`. The caller overwrites them once they are passed on. */
export function encodeKeys({ keys, slots }: DataKeys): Uint8Array<ArrayBuffer> {
  const seed = crypto.getRandomValues(new Uint8Array(NONCE_SEED_BYTES));
  const bytes = new Uint8Array(1 + keys.length + seed.length + slots.length);
  bytes[0] = keys.length / KEY_ENTRY_BYTES;
  bytes.set(keys, 1);
  bytes.set(seed, 1 + keys.length);
  bytes.set(slots, 1 + keys.length + seed.length);
  return bytes;
}
