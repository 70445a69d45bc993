/** The keys of encryption, as programs give them. Types only. */

/** A passphrase as `deriveKey` returns it. It can be sent to a worker, and kept in IndexedDB; its characters cannot be read from it. */
export interface PassphraseKey {
  readonly passphrase: CryptoKey;
  /** Iterations of PBKDF2 for the key slots that are made with it. Each slot has its own number, and is opened with that. */
  readonly iterations: number;
}

/**
 * A key of yours. It opens a key slot, and the slot has the keys that encrypt the data.
 *
 * - 32 bytes that nobody can guess: the output of a passkey's PRF extension, of Argon2 in your program, a key from your server. They are
 *   copied at the call, so you can overwrite them afterwards.
 * - A `CryptoKey`, which may be non-extractable: HKDF (`deriveKey` or `deriveBits`), AES-GCM (`encrypt` and `decrypt`, or `wrapKey` and
 *   `unwrapKey`) or AES-KW (`wrapKey` and `unwrapKey`). Opening needs `decrypt` or `unwrapKey` only.
 * - A passphrase, as `deriveKey` returns it.
 */
export type EncryptionKey = Uint8Array | ArrayBuffer | CryptoKey | PassphraseKey;

/** How something is encrypted. */
export interface EncryptionOptions {
  /** The key. See `EncryptionKey`. */
  key: EncryptionKey;
}

/** Options of `rotateKey`. */
export interface RotateKeyOptions {
  /** All keys of the store. Default: the one that it was opened with. */
  keys?: Iterable<EncryptionKey> | undefined;
  /** Removes the keys that are not given; otherwise the call is refused with `VARVE_KEY` while there are any. Default false. */
  removeOthers?: boolean | undefined;
}

/** Options of `deriveKey`. */
export interface DeriveKeyOptions {
  /**
   * Iterations of PBKDF2 with SHA-256: an integer from 100,000 to 10,000,000. More of them make guesses more expensive, and each opening
   * of the store too. Default 600,000, after OWASP's Password Storage Cheat Sheet.
   */
  iterations?: number | undefined;
}
