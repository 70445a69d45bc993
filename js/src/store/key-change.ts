/**
 * Changes of the keys of a store, as its methods are called, checked and in the form that is sent to the engine's thread.
 *
 * Loaded at the first use of encryption.
 *
 * Invariant: a change may be asked for again, because the leader that made it ended before it answered. So it is asked for in a form that
 * has the same outcome twice; the changes of one store are asked for one after another; and its opener gets the key that a change is to
 * put into the place of its own before the change is asked for.
 */

import type { EncryptionKey, EncryptionOptions, RotateKeyOptions } from '../encryption/types.ts';
import { type UserKey, userKey, userKeyOf } from '../encryption/user-key.ts';
import { hasCode, invalid, VarveError } from '../errors.ts';
import { checkOptions, type Known, several, shown } from '../options.ts';
import type { KeyChange, OpeningKeys } from '../protocol/messages.ts';

/** A call of a method of a store. That to encrypt it has the function that then overwrites its old files. */
export type KeyCall =
  | readonly ['encrypt', EncryptionOptions | undefined, () => Promise<void>]
  | readonly ['add' | 'remove', EncryptionKey]
  | readonly ['change', EncryptionKey, EncryptionKey]
  | readonly ['rotate', RotateKeyOptions];

const ROTATE: Known<RotateKeyOptions> = { keys: 1, removeOthers: 1 };

/** What a store with keys needs besides its engine. */
export interface KeyHolder {
  /** Its `key` is the key with which the store is open. */
  readonly engine: OpeningKeys;
  /** Called when the store has other keys, or may get them. Without it, no other engine can take the place of the store's. */
  readonly onKeys?: ((keys: OpeningKeys) => void) | undefined;
}

/** Asks the engine for a change. Resolves with whether the key of the holder does not open the store any more. */
type AskChange = (change: KeyChange) => Promise<boolean>;

/** The last change of each store. */
const last = new WeakMap<OpeningKeys, Promise<void>>();

/** Makes the change of a call. */
export async function changeKeys(holder: KeyHolder, call: KeyCall, ask: AskChange): Promise<void> {
  const { engine } = holder;
  const made = (last.get(engine) ?? Promise.resolve()).then(() => changed(holder, call, ask));
  last.set(
    engine,
    made.catch(() => undefined),
  );
  await made;
  if (call[0] !== 'encrypt') return;
  try {
    await call[2]();
  } catch (cause) {
    if (!hasCode(cause, 'VARVE_STORAGE_FULL', 'VARVE_CORRUPT', 'VARVE_IO')) throw cause;
    const rest =
      cause.code === 'VARVE_STORAGE_FULL' ? 'are overwritten when there is room.' : `are left: ${cause.message}`;
    const message = `The store is encrypted and opens with this key only. Its old files ${rest}`;
    throw new VarveError(cause.code, message, { cause });
  }
}

async function changed({ engine, onKeys }: KeyHolder, call: KeyCall, ask: AskChange): Promise<void> {
  const { nextKeys = [] } = engine;
  const keep = (keys: OpeningKeys): void => {
    Object.assign(engine, keys);
    onKeys?.(keys);
  };
  const change = await keyChangeOf(engine.key, call);
  if (change.kind === 'remove' && onKeys !== undefined) return removed(change.key, ask);
  const next = change.kind === 'encrypt' ? change.key : change.kind === 'change' ? change.to : undefined;
  if (next === undefined) return void (await ask(change));
  const { key } = engine;
  keep({ key, nextKeys: [...nextKeys, next] });
  let isOwnGone: boolean;
  try {
    isOwnGone = await ask(change);
  } catch (error) {
    // After another error the change may be made all the same.
    if (hasCode(error, 'VARVE_KEY', 'VARVE_INVALID_ARGUMENT')) keep({ key, nextKeys });
    throw error;
  }
  keep({ key: change.kind === 'encrypt' || isOwnGone ? next : key, nextKeys: [] });
}

/** Removes a key. A key that opens nothing is refused; but a key that opened the store may be removed twice. */
async function removed(key: UserKey, ask: AskChange): Promise<void> {
  // To add it by itself changes nothing: it is refused, or there.
  await ask({ kind: 'add', own: key, key });
  try {
    await ask({ kind: 'remove', key, wasThere: true });
  } catch (cause) {
    if (!hasCode(cause, 'VARVE_KEY')) throw cause;
    const message =
      'It is not known whether the key was removed: the tab that led the store ended before it answered, and the key of this tab opens the store no more. Open the store with another key.';
    throw new VarveError('VARVE_KEY', message, { cause });
  }
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
