/**
 * Changes of the keys of a store, as its methods are called, checked and in the form that is sent to the engine's thread.
 *
 * Loaded at the first use of encryption.
 */

import type { EncryptionKey, EncryptionOptions, RotateKeyOptions } from '../encryption/types.ts';
import { type UserKey, userKey, userKeyOf } from '../encryption/user-key.ts';
import { invalid, VarveError } from '../errors.ts';
import { checkOptions, type Known, several, shown } from '../options.ts';
import type { EngineOptions, KeyChange } from '../protocol/messages.ts';

/** A call of a method of a store. */
export type KeyCall =
  | readonly ['encrypt', EncryptionOptions | undefined]
  | readonly ['add' | 'remove', EncryptionKey]
  | readonly ['change', EncryptionKey, EncryptionKey]
  | readonly ['rotate', RotateKeyOptions];

const ROTATE: Known<RotateKeyOptions> = { keys: 1, removeOthers: 1 };

/** What a store with keys needs besides its engine. */
export interface KeyHolder {
  /** Its `key` is the key with which the store is open. */
  readonly engine: Pick<EngineOptions, 'key'>;
  /** Called when the store has another key. */
  readonly onKey?: ((key: UserKey) => void) | undefined;
}

/** Makes the change of a call with `change`, which resolves with whether the holder's own key does not open the store any more. */
export async function changeKeys(
  { engine, onKey }: KeyHolder,
  call: KeyCall,
  change: (change: KeyChange) => Promise<boolean>,
): Promise<void> {
  const made = await keyChangeOf(engine.key, call);
  const isOwnGone = await change(made);
  const key = made.kind === 'encrypt' ? made.key : made.kind === 'change' && isOwnGone ? made.to : undefined;
  if (key === undefined) return;
  engine.key = key;
  onKey?.(key);
}

async function keyChangeOf(own: UserKey | undefined, call: KeyCall): Promise<KeyChange> {
  const [kind, given] = call;
  if (kind === 'encrypt') return { kind, key: await userKeyOf(given as EncryptionOptions) };
  if (kind === 'rotate') {
    checkOptions(given, ROTATE);
    const { keys, removeOthers = false } = given;
    if (typeof removeOthers !== 'boolean') throw invalid(`removeOthers is true or false, not ${shown(removeOthers)}.`);
    const users = keys === undefined ? [needed(own)] : await Promise.all(Array.from(several(keys), userKey));
    return { kind, keys: users, removeOthers };
  }
  const key = await userKey(given);
  if (kind === 'change') return { kind, own: needed(own), from: key, to: await userKey(call[2]) };
  return kind === 'add' ? { kind, own: needed(own), key } : { kind, key };
}

function needed(own: UserKey | undefined): UserKey {
  if (own !== undefined) return own;
  throw new VarveError(
    'VARVE_KEY',
    'The store was opened without a key. If it is not encrypted, call encrypt({ key }).',
  );
}

export { deriveKey, userKeyOf } from '../encryption/user-key.ts';
