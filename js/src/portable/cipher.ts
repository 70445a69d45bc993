/**
 * Encrypts the blocks of an export.
 *
 *   key     a data key that is made for this export alone, in key slots behind its header
 *   body    AES-256-GCM; iv: u64 number of the block | 4 B 0; authenticated with it: the header's digest, the iv, u32 entries
 *
 * Invariant: a number is used once with a key. So a body that opens is of this export, and in its place. (WebCrypto has no XChaCha20, and an
 * export is read and written by asynchronous code anyway.)
 */

import { currentOf, erase } from '../encryption/data-keys.ts';
import { createSlots, unlock } from '../encryption/slots.ts';
import { subtle, type UserKey } from '../encryption/user-key.ts';
import type { BodyCipher } from './block.ts';

const IV_BYTES = 12;

/** The cipher of a new export, which needs the digest of the header, and the key slots for its first block. */
export async function newCipher(user: UserKey): Promise<{ slots: Uint8Array; of: (digest: Uint8Array) => BodyCipher }> {
  const { keys, slots } = await createSlots(user);
  const key = await importedKey(keys);
  return { slots, of: (digest) => cipherOf(key, digest) };
}

/** The cipher of an export that is read. Throws `VARVE_KEY` if its key slots do not open. */
export async function cipherFor(slots: Uint8Array, user: UserKey, digest: Uint8Array): Promise<BodyCipher> {
  return cipherOf(await importedKey(await unlock(slots, user)), digest);
}

async function importedKey(keys: Uint8Array): Promise<CryptoKey> {
  const key = currentOf(keys);
  try {
    return await subtle().importKey('raw', key, 'AES-GCM', false, ['encrypt', 'decrypt']);
  } finally {
    erase(keys, key);
  }
}

function cipherOf(key: CryptoKey, digest: Uint8Array): BodyCipher {
  const wayOf = (number: number, entries: number): AesGcmParams => {
    const iv = new Uint8Array(IV_BYTES);
    new DataView(iv.buffer).setBigUint64(0, BigInt(number), true);
    const counted = new Uint8Array(new Uint32Array([entries]).buffer);
    return { name: 'AES-GCM', iv, additionalData: Uint8Array.of(...digest, ...iv, ...counted) };
  };
  const bytesOf = (body: Uint8Array): Uint8Array<ArrayBuffer> => body as Uint8Array<ArrayBuffer>;
  return {
    seal: async (number, entries, body) =>
      new Uint8Array(await subtle().encrypt(wayOf(number, entries), key, bytesOf(body))),
    open: async (number, entries, body) =>
      new Uint8Array(await subtle().decrypt(wayOf(number, entries), key, bytesOf(body))),
  };
}
