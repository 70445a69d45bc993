/**
 * Keys as programs give them, checked, and in the form in which they go to the engine's thread.
 *
 *     32 bytes            -> HKDF key        kind 1   so an HKDF key of the same bytes opens the same slots
 *     HKDF CryptoKey      -> as it is        kind 1
 *     deriveKey()         -> PBKDF2 key      kind 2
 *     AES-GCM CryptoKey   -> as it is        kind 3
 *     AES-KW CryptoKey    -> as it is        kind 4
 *
 * Invariant: bytes are copied at the call and overwritten when they are imported. The key that is kept can be sent to a worker, and
 * nobody can read its bytes unless the caller's own CryptoKey is extractable.
 */

import { invalid, VarveError } from '../errors.ts';
import { checkOptions, type Known, shown } from '../options.ts';
import type { DeriveKeyOptions, EncryptionKey, EncryptionOptions, PassphraseKey } from './types.ts';

/** The kinds of key slots, by what opens them. */
export const SlotKind = { secret: 1, passphrase: 2, gcm: 3, kw: 4 } as const;
export type SlotKind = (typeof SlotKind)[keyof typeof SlotKind];

/** A key that opens slots of its kind. */
export interface UserKey {
  readonly kind: SlotKind;
  readonly key: CryptoKey;
  /** Iterations of PBKDF2 for slots that are made with it; 0 for other kinds. */
  readonly iterations: number;
}

/** The cost of guesses that OWASP's Password Storage Cheat Sheet asks for PBKDF2 with SHA-256. */
const ITERATIONS_DEFAULT = 600_000;
const ITERATIONS_MIN = 100_000;
/** Some seconds on a fast machine. */
const ITERATIONS_MAX = 10_000_000;

const KEY_BYTES = 32;

const ENCRYPTION: Known<EncryptionOptions> = { key: 1 };
const DERIVE: Known<DeriveKeyOptions> = { iterations: 1 };

/** WebCrypto. Throws `VARVE_UNSUPPORTED` if it is unavailable, which is so on pages that are not served securely. */
export function subtle(): SubtleCrypto {
  const { subtle } = globalThis.crypto ?? {};
  if (subtle !== undefined) return subtle;
  throw new VarveError(
    'VARVE_UNSUPPORTED',
    'Encryption needs crypto.subtle, which a page has over HTTPS and on localhost.',
  );
}

/** Makes a key of a passphrase: see `deriveKey` of `varve`. */
export async function deriveKey(passphrase: string, options: DeriveKeyOptions = {}): Promise<PassphraseKey> {
  checkOptions(options, DERIVE);
  const { iterations = ITERATIONS_DEFAULT } = options;
  if (typeof passphrase !== 'string' || passphrase === '') {
    throw invalid('A passphrase is a string that is not empty.');
  }
  if (!isIterations(iterations)) {
    throw invalid(`iterations is an integer from ${ITERATIONS_MIN} to ${ITERATIONS_MAX}, not ${shown(iterations)}.`);
  }
  const bytes = new TextEncoder().encode(passphrase.normalize('NFC'));
  return { passphrase: await imported(bytes, 'PBKDF2'), iterations };
}

/** Whether it is a number of iterations that `deriveKey` accepts. */
export function isIterations(iterations: number): boolean {
  return Number.isInteger(iterations) && iterations >= ITERATIONS_MIN && iterations <= ITERATIONS_MAX;
}

/** The key of options, checked. It is read at the call: bytes may be overwritten while the promise is pending. */
export async function userKeyOf(options: EncryptionOptions): Promise<UserKey> {
  checkOptions(options, ENCRYPTION);
  return userKey(options?.key);
}

/** A key, checked. It is read at the call. */
export async function userKey(given: EncryptionKey): Promise<UserKey> {
  if (given instanceof ArrayBuffer || given instanceof Uint8Array) {
    if (given.byteLength !== KEY_BYTES) throw wrongForm(`${given.byteLength} bytes`);
    return { kind: SlotKind.secret, key: await imported(new Uint8Array(given).slice(), 'HKDF'), iterations: 0 };
  }
  const { passphrase, iterations = 0 } = (given ?? {}) as Partial<PassphraseKey>;
  if (algorithmOf(passphrase) === 'PBKDF2' && isIterations(iterations)) {
    return { kind: SlotKind.passphrase, key: passphrase as CryptoKey, iterations };
  }
  const name = algorithmOf(given);
  const key = given as CryptoKey;
  if (name === 'HKDF' && canDo(key, 'deriveKey', 'deriveBits')) return { kind: SlotKind.secret, key, iterations: 0 };
  if (name === 'AES-GCM' && canDo(key, 'decrypt', 'unwrapKey')) return { kind: SlotKind.gcm, key, iterations: 0 };
  if (name === 'AES-KW' && canDo(key, 'unwrapKey')) return { kind: SlotKind.kw, key, iterations: 0 };
  if (typeof given === 'string') throw wrongForm('a string: use deriveKey(passphrase)');
  throw wrongForm(
    name === undefined ? typeof given : `a CryptoKey for ${name} with the usages ${key.usages.join(', ') || 'none'}`,
  );
}

/** Whether a key may be used in one of these ways. */
export function canDo(key: CryptoKey, ...usages: string[]): boolean {
  return key.usages.some((usage) => usages.includes(usage));
}

/** The algorithm of a `CryptoKey`; undefined for anything else. */
function algorithmOf(key: unknown): string | undefined {
  return typeof CryptoKey === 'function' && key instanceof CryptoKey ? key.algorithm.name : undefined;
}

/** Makes a key of bytes, and overwrites them. */
async function imported(bytes: Uint8Array<ArrayBuffer>, algorithm: 'HKDF' | 'PBKDF2'): Promise<CryptoKey> {
  try {
    return await subtle().importKey('raw', bytes, algorithm, false, ['deriveKey', 'deriveBits']);
  } finally {
    bytes.fill(0);
  }
}

function wrongForm(what: string): VarveError {
  return invalid(
    `A key is 32 bytes, a CryptoKey for HKDF, AES-GCM or AES-KW, or the result of deriveKey(); this is ${what}.`,
  );
}
