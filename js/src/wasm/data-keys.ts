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

/** `u32 count | keys | 16 random bytes for nonces, fresh each time | key slots`. Whoever passes them on overwrites them afterwards. */
export function encodeKeys({ keys, slots }: DataKeys): Uint8Array<ArrayBuffer> {
  const bytes = new Uint8Array(4 + keys.length + NONCE_SEED_BYTES + slots.length);
  new DataView(bytes.buffer).setUint32(0, keys.length / KEY_ENTRY_BYTES, true);
  bytes.set(keys, 4);
  crypto.getRandomValues(bytes.subarray(4 + keys.length, 4 + keys.length + NONCE_SEED_BYTES));
  bytes.set(slots, 4 + keys.length + NONCE_SEED_BYTES);
  return bytes;
}
