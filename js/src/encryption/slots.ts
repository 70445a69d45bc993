/**
 * The key slots of a store or an export: each has the same data keys, for another user's key. FORMAT.md has the same picture.
 *
 *   slots   "VRVK" | u16 version 1 | u16 number of slots | check 8 B | slot*
 *   check   the first 8 B of the SHA-256 of the 8 B before
 *
 * Invariant: nothing here changes bytes that it was given. Every change returns the slots as they are to be stored, with the data keys
 * that they have; a caller that gets data keys erases them. A change that is made already returns the slots that it was given: it may be
 * asked for twice, because the answer to the first time got lost.
 */

import { invalid, VarveError } from '../errors.ts';
import { DATA_KEYS_MAX, erase, withNext } from './data-keys.ts';
import { isIntact, isUnknown, openSlot, SLOT_BYTES, sealSlot } from './slot.ts';
import { subtle, type UserKey } from './user-key.ts';

const VERSION = 1;
/** The magic and the version: every slot is bound to them. */
const CONTEXT: Uint8Array = Uint8Array.of(0x56, 0x52, 0x56, 0x4b, VERSION, 0);
const HEAD_BYTES = 16;
const CHECK_BYTES = 8;
/** How many slots there may be. */
const SLOTS_MAX = 16;

/** Slots, and the data keys in them. */
export interface Locked {
  readonly keys: Uint8Array<ArrayBuffer>;
  readonly slots: Uint8Array<ArrayBuffer>;
}

/** Makes a new data key, and the slots with it for one user's key. */
export async function createSlots(user: UserKey): Promise<Locked> {
  const keys = withNext(new Uint8Array(0), []) as Uint8Array<ArrayBuffer>;
  return { keys, slots: await joined([await sealSlot(user, keys, CONTEXT)]) };
}

/** The data keys, by the first of these keys that opens a slot. Throws `VARVE_KEY` if none does, or `VARVE_VERSION`: see `refuse`. */
export async function unlock(slots: Uint8Array, ...users: readonly UserKey[]): Promise<Uint8Array<ArrayBuffer>> {
  const all = await split(slots);
  for (const user of users) {
    const found = await search(all, user, 1);
    if (found !== undefined) return found.keys;
  }
  return refuse(all);
}

/** Adds a key, unless it opens a slot already. */
export async function addKey(slots: Uint8Array<ArrayBuffer>, user: UserKey, added: UserKey): Promise<Locked> {
  const all = await split(slots);
  const { keys } = await find(all, user, 1);
  const there = await search(all, added, 1);
  if (there !== undefined) {
    erase(there.keys);
    return { keys, slots };
  }
  if (all.length < SLOTS_MAX) return withSlot(all, added, keys);
  erase(keys);
  throw invalid(`There are at most ${SLOTS_MAX} keys. Remove one first.`);
}

/** Removes a key. Throws `VARVE_KEY` if it opens no slot. */
export async function removeKey(slots: Uint8Array, user: UserKey): Promise<Locked> {
  const all = await split(slots);
  const { keys, own } = await find(all, user);
  const others = all.filter((slot) => !own.includes(slot));
  if (others.length > 0) return { keys, slots: await joined(others) };
  erase(keys);
  throw invalid('This is the last key: without it nobody can read the data. Use changeEncryptionKey() to replace it.');
}

/** Puts a key into the place of another. If `from` opens no slot and `to` does, that is done already. */
export async function changeKey(slots: Uint8Array<ArrayBuffer>, from: UserKey, to: UserKey): Promise<Locked> {
  const all = await split(slots);
  const found = await search(all, from);
  if (found === undefined) return { keys: (await find(all, to, 1)).keys, slots };
  const others = all.filter((slot) => !found.own.includes(slot));
  return withSlot(others, to, found.keys);
}

/** What a rotation takes into account. */
interface Rotation {
  /** Removes the keys that are not given, instead of refusing. */
  readonly removeOthers: boolean;
  /** The numbers of data keys that files have. */
  readonly inUse: readonly number[];
}

/** Adds a new data key, and leaves out data keys that no file has any more. Every slot is made anew, so its key must be given. */
export async function rotate(
  slots: Uint8Array,
  users: readonly UserKey[],
  { removeOthers, inUse }: Rotation,
): Promise<Locked> {
  const all = await split(slots);
  const found = await Promise.all(users.map((user) => find(all, user)));
  const [first] = found;
  if (first === undefined) throw invalid('rotateKey() needs a key at least.');
  try {
    const others = all.filter((slot) => !found.some(({ own }) => own.includes(slot))).length;
    if (others > 0 && !removeOthers) throw othersLeft(others);
    const keys = withNext(first.keys, inUse);
    if (keys === undefined) {
      throw invalid(`Files of ${DATA_KEYS_MAX} data keys are left. Call compact(), and then rotateKey() again.`);
    }
    return { keys, slots: await joined(await Promise.all(users.map((user) => sealSlot(user, keys, CONTEXT)))) };
  } finally {
    erase(...found.map(({ keys }) => keys));
  }
}

/** Slots that a key opens, and the data keys in them. */
interface Found {
  readonly keys: Uint8Array<ArrayBuffer>;
  readonly own: readonly Uint8Array[];
}

/** The slots that a key opens, `most` at most. Throws `VARVE_KEY` if it opens none. */
async function find(all: readonly Uint8Array<ArrayBuffer>[], user: UserKey, most?: number): Promise<Found> {
  return (await search(all, user, most)) ?? refuse(all);
}

/** The same; undefined if the key opens none. */
async function search(
  all: readonly Uint8Array<ArrayBuffer>[],
  user: UserKey,
  most = SLOTS_MAX,
): Promise<Found | undefined> {
  const own: Uint8Array[] = [];
  let found: Uint8Array<ArrayBuffer> | undefined;
  for (const slot of all) {
    if (own.length >= most) break;
    if (!(await isIntact(slot))) continue;
    const keys = await openSlot(user, slot, CONTEXT);
    if (keys === undefined) continue;
    own.push(slot);
    if (found !== undefined) erase(found);
    found = keys;
  }
  return found && { keys: found, own };
}

/** Throws the reason why a key opens none of these slots. */
async function refuse(all: readonly Uint8Array<ArrayBuffer>[]): Promise<never> {
  const intact = await Promise.all(all.map(isIntact));
  const damaged = intact.filter((isIntact) => !isIntact).length;
  if (all.some((slot, i) => intact[i] && isUnknown(slot))) {
    throw new VarveError(
      'VARVE_VERSION',
      'The key opens no key slot that this code knows, and a newer version of varve has added others. Reload, or try another key.',
    );
  }
  if (damaged > 0) throw new VarveError('VARVE_KEY', damagedSlots(damaged));
  throw new VarveError('VARVE_KEY', 'The key is wrong: it opens no key slot. Nothing was changed.');
}

/** These slots, and one more for a key. */
async function withSlot(others: readonly Uint8Array[], user: UserKey, keys: Uint8Array<ArrayBuffer>): Promise<Locked> {
  try {
    return { keys, slots: await joined([...others, await sealSlot(user, keys, CONTEXT)]) };
  } catch (error) {
    erase(keys);
    throw error;
  }
}

async function joined(slots: readonly Uint8Array[]): Promise<Uint8Array<ArrayBuffer>> {
  const head = Uint8Array.of(...CONTEXT, slots.length, 0);
  const bytes = new Uint8Array(HEAD_BYTES + slots.length * SLOT_BYTES);
  bytes.set(head);
  bytes.set(await checkOf(head), head.length);
  slots.forEach((slot, i) => {
    bytes.set(slot, HEAD_BYTES + i * SLOT_BYTES);
  });
  return bytes;
}

/** The single slots, which may be damaged. Throws `VARVE_KEY` if the bytes before them are. */
async function split(slots: Uint8Array): Promise<Uint8Array<ArrayBuffer>[]> {
  const bytes = slots.slice();
  const head = bytes.subarray(0, HEAD_BYTES - CHECK_BYTES);
  const check = await checkOf(head);
  const isMagic = CONTEXT.subarray(0, 4).every((byte, i) => byte === head[i]);
  if (!isMagic || !check.every((byte, i) => byte === bytes[head.length + i])) throw unreadable();
  const view = new DataView(bytes.buffer);
  const version = view.getUint16(4, true);
  if (version !== VERSION) {
    throw new VarveError('VARVE_VERSION', `The key slots have version ${version}; this code reads up to ${VERSION}.`);
  }
  const count = view.getUint16(6, true);
  if (bytes.length !== HEAD_BYTES + count * SLOT_BYTES) throw unreadable();
  return Array.from({ length: count }, (_, i) => bytes.subarray(HEAD_BYTES + i * SLOT_BYTES).subarray(0, SLOT_BYTES));
}

async function checkOf(head: Uint8Array<ArrayBuffer>): Promise<Uint8Array> {
  return new Uint8Array(await subtle().digest('SHA-256', head), 0, CHECK_BYTES);
}

function unreadable(): VarveError {
  return new VarveError('VARVE_KEY', 'The key slots are damaged, so no key can open them. Nothing was changed.');
}

function damagedSlots(count: number): string {
  const slots = count === 1 ? 'A key slot is damaged' : `${count} key slots are damaged`;
  return `${slots}, and the key opens no other one. Try another key. Nothing was changed.`;
}

function othersLeft(count: number): VarveError {
  const slots = count === 1 ? 'one key slot' : `${count} key slots`;
  return new VarveError(
    'VARVE_KEY',
    `The keys of ${slots} are missing. Pass every key of the store, or removeOthers: true to remove those keys. Nothing was changed.`,
  );
}
