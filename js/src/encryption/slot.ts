/**
 * One key slot: the data keys, encrypted by a key that follows from a user's key. FORMAT.md has the same picture.
 *
 *   slot 432 B   u8 kind | 3 B 0 | u32 iterations | salt 32 B | wrapped 64 B | iv 12 B | data keys 288 B | check 28 B
 *   kind         1 HKDF-SHA-256 of 32 bytes | 2 PBKDF2-SHA-256 of a passphrase | 3 AES-GCM | 4 AES-KW
 *   wrapped      kinds 3 and 4: iv 12 B and the slot's key, encrypted by the user's AES key; zeros behind
 *   data keys    AES-256-GCM by the slot's key; authenticated with it: the magic and version, and all of the slot before them
 *   check        the first 28 B of the SHA-256 of all before it
 *
 * Invariant: a slot's key is made for this slot alone and encrypts once, because every slot has a salt or a random key of its own. So
 * slots do not depend on one another, and nothing of one can be moved to another.
 */

import { invalid } from '../errors.ts';
import { DATA_KEYS_BYTES_MAX, erase, padded, unpadded } from './data-keys.ts';
import { canDo, isIterations, SlotKind, subtle, type UserKey } from './user-key.ts';

const SALT_AT = 8;
const SALT_BYTES = 32;
const WRAPPED_AT: number = SALT_AT + SALT_BYTES;
const WRAPPED_BYTES = 64;
const IV_AT: number = WRAPPED_AT + WRAPPED_BYTES;
const IV_BYTES = 12;
const SEALED_AT: number = IV_AT + IV_BYTES;
const SEALED_BYTES: number = DATA_KEYS_BYTES_MAX + 16;
const CHECK_AT: number = SEALED_AT + SEALED_BYTES;
const CHECK_BYTES = 28;
/** The length of a slot. */
export const SLOT_BYTES: number = CHECK_AT + CHECK_BYTES;

/** The lengths of a slot's key that was encrypted by AES-GCM, and by AES-KW. */
const GCM_BYTES = 48;
const KW_BYTES = 40;

const AES = { name: 'AES-GCM', length: 256 } as const;
/** Distinguishes the keys of slots from other keys that a program derives from the same bytes. */
const INFO = new TextEncoder().encode('varve key slot');

/** Makes a slot for a user's key. */
export async function sealSlot(user: UserKey, keys: Uint8Array, context: Uint8Array): Promise<Uint8Array<ArrayBuffer>> {
  const slot = new Uint8Array(SLOT_BYTES);
  slot[0] = user.kind;
  new DataView(slot.buffer).setUint32(4, user.iterations, true);
  crypto.getRandomValues(slot.subarray(SALT_AT, SALT_AT + SALT_BYTES));
  crypto.getRandomValues(slot.subarray(IV_AT, SEALED_AT));
  const isWrapped = user.kind === SlotKind.gcm || user.kind === SlotKind.kw;
  const key = isWrapped ? await wrapNew(user.key, slot) : await derived(user.key, slot);
  const plain = padded(keys);
  try {
    slot.set(new Uint8Array(await subtle().encrypt(boxOf(slot, context), key, plain)), SEALED_AT);
  } finally {
    erase(plain);
  }
  slot.set(await checkOf(slot), CHECK_AT);
  return slot;
}

/** The data keys of an intact slot; undefined if the key is not the one that it was made with. */
export async function openSlot(
  user: UserKey,
  slot: Uint8Array<ArrayBuffer>,
  context: Uint8Array,
): Promise<Uint8Array<ArrayBuffer> | undefined> {
  if (kindOf(slot) !== user.kind) return undefined;
  const isWrapped = user.kind === SlotKind.gcm || user.kind === SlotKind.kw;
  let plain: Uint8Array<ArrayBuffer>;
  try {
    const key = isWrapped ? await unwrapped(user.key, slot) : await derived(user.key, slot);
    plain = new Uint8Array(await subtle().decrypt(boxOf(slot, context), key, slot.subarray(SEALED_AT, CHECK_AT)));
  } catch {
    // The engines of browsers report a wrong key in different ways.
    return undefined;
  }
  try {
    return unpadded(plain);
  } finally {
    erase(plain);
  }
}

/** Whether a later version made an intact slot. */
export function isUnknown(slot: Uint8Array): boolean {
  return !Object.values<number>(SlotKind).includes(kindOf(slot));
}

/** The kind of a slot, and no kind at all if the three bytes behind it are not 0. */
function kindOf(slot: Uint8Array): number {
  return new DataView(slot.buffer, slot.byteOffset).getUint32(0, true);
}

/** Whether a slot is as it was written. */
export async function isIntact(slot: Uint8Array<ArrayBuffer>): Promise<boolean> {
  const check = await checkOf(slot);
  return check.every((byte, i) => byte === slot[CHECK_AT + i]);
}

async function checkOf(slot: Uint8Array<ArrayBuffer>): Promise<Uint8Array> {
  return new Uint8Array(await subtle().digest('SHA-256', slot.subarray(0, CHECK_AT)), 0, CHECK_BYTES);
}

/** How the data keys of a slot are encrypted. */
function boxOf(slot: Uint8Array<ArrayBuffer>, context: Uint8Array): AesGcmParams {
  const additionalData = Uint8Array.of(...context, ...slot.subarray(0, SEALED_AT));
  return { name: 'AES-GCM', iv: slot.subarray(IV_AT, SEALED_AT), additionalData };
}

/** The slot's key, if it follows from the user's key and the salt. */
async function derived(key: CryptoKey, slot: Uint8Array<ArrayBuffer>): Promise<CryptoKey> {
  const { name } = key.algorithm;
  const salt = slot.subarray(SALT_AT, SALT_AT + SALT_BYTES);
  const iterations = new DataView(slot.buffer, slot.byteOffset).getUint32(4, true);
  // Nobody has to wait for years because of a number in a file.
  if (name === 'PBKDF2' && !isIterations(iterations)) throw new RangeError('iterations');
  const way = { name, hash: 'SHA-256', salt, info: INFO, iterations };
  if (canDo(key, 'deriveKey')) return subtle().deriveKey(way, key, AES, false, ['encrypt', 'decrypt']);
  return importedKey(new Uint8Array(await subtle().deriveBits(way, key, AES.length)), false);
}

/** Makes a slot's key, and puts it into the slot, encrypted by the user's key. */
async function wrapNew(user: CryptoKey, slot: Uint8Array<ArrayBuffer>): Promise<CryptoKey> {
  if (!canDo(user, 'wrapKey', 'encrypt'))
    throw invalid('This key can open a key slot, and not make one: it lacks wrapKey or encrypt.');
  crypto.getRandomValues(slot.subarray(WRAPPED_AT, WRAPPED_AT + IV_BYTES));
  const way = wayOf(user, slot);
  const bytes = crypto.getRandomValues(new Uint8Array(32));
  try {
    const wrapped = canDo(user, 'wrapKey')
      ? await subtle().wrapKey('raw', await importedKey(bytes.slice(), true), user, way)
      : await subtle().encrypt(way, user, bytes);
    slot.set(new Uint8Array(wrapped), WRAPPED_AT + IV_BYTES);
    return await importedKey(bytes, false);
  } finally {
    erase(bytes);
  }
}

/** The slot's key that `wrapNew` put into the slot. */
async function unwrapped(user: CryptoKey, slot: Uint8Array<ArrayBuffer>): Promise<CryptoKey> {
  const way = wayOf(user, slot);
  const start = WRAPPED_AT + IV_BYTES;
  const bytes = slot.subarray(start, start + (way.name === 'AES-KW' ? KW_BYTES : GCM_BYTES));
  if (canDo(user, 'unwrapKey')) return subtle().unwrapKey('raw', bytes, user, way, AES, false, ['decrypt']);
  return importedKey(new Uint8Array(await subtle().decrypt(way, user, bytes)), false);
}

/** The parameters with which a user's AES key encrypts a slot's key. AES-KW has no iv. */
function wayOf({ algorithm: { name } }: CryptoKey, slot: Uint8Array<ArrayBuffer>): AesGcmParams {
  return { name, iv: slot.subarray(WRAPPED_AT, WRAPPED_AT + IV_BYTES) };
}

/** Makes an AES key of bytes, and overwrites them. */
async function importedKey(bytes: Uint8Array<ArrayBuffer>, isExtractable: boolean): Promise<CryptoKey> {
  try {
    return await subtle().importKey('raw', bytes, AES, isExtractable, ['encrypt', 'decrypt']);
  } finally {
    erase(bytes);
  }
}
