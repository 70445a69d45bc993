//! XChaCha20-Poly1305 by RustCrypto, for many messages whose nonces begin with the same 16 bytes.
//!
//! XChaCha20 is ChaCha20 under a subkey, which follows from the key and the first 16 bytes of the nonce. So a [`Subkey`] is
//! computed once, and a message is encrypted with the last 8 bytes.
//!
//! This is a crate of its own because the engine is compiled for size in wasm. RustCrypto's code is generic, so it is compiled
//! with the crate that calls it: three times slower for size than for speed. No function here is generic. In wasm, where RustCrypto has no
//! vectors, the stream of ChaCha20 is that of `chacha.rs`.
//!
//! The construction: draft-irtf-cfrg-xchacha-03, section 2.3.

#[cfg(any(test, target_arch = "wasm32"))]
mod chacha;

#[cfg(target_arch = "wasm32")]
use chacha::ChaCha;
#[cfg(not(target_arch = "wasm32"))]
use chacha20::ChaCha20 as ChaCha;
use chacha20::{R20, hchacha};
use chacha20poly1305::{AeadInOut, ChaChaPoly1305, Key, KeyInit, Nonce};
use zeroize::Zeroizing;

/// Bytes of a key.
pub const KEY_BYTES: usize = 32;
/// Bytes that the nonces of a [`Subkey`] begin with.
pub const SEED_BYTES: usize = 16;
/// Bytes that the nonces of a [`Subkey`] end with.
pub const COUNT_BYTES: usize = 8;
/// Bytes of a tag.
pub const TAG_BYTES: usize = 16;

/// A key for all nonces that begin with the same bytes. It is overwritten with zeros when it is dropped.
pub struct Subkey(Zeroizing<[u8; KEY_BYTES]>);

impl Subkey {
    /// HChaCha20.
    #[must_use]
    #[inline(never)]
    pub fn new(key: &[u8; KEY_BYTES], seed: &[u8; SEED_BYTES]) -> Self {
        Self(Zeroizing::new(hchacha::<R20>(key.into(), seed.into()).into()))
    }

    /// Encrypts `bytes` in place and returns their tag.
    ///
    /// # Panics
    /// From 256 GiB.
    #[must_use]
    #[inline(never)]
    pub fn encrypt(&self, count: [u8; COUNT_BYTES], associated: &[u8], bytes: &mut [u8]) -> [u8; TAG_BYTES] {
        let tag = self.cipher().encrypt_inout_detached(&nonce(count), associated, bytes.into());
        tag.expect("fewer than 256 GiB").into()
    }

    /// Decrypts `bytes` in place, or leaves them as they are and returns false: they are not those that were encrypted.
    #[must_use]
    #[inline(never)]
    pub fn decrypt(
        &self,
        count: [u8; COUNT_BYTES],
        associated: &[u8],
        bytes: &mut [u8],
        tag: &[u8; TAG_BYTES],
    ) -> bool {
        self.cipher().decrypt_inout_detached(&nonce(count), associated, bytes.into(), tag.into()).is_ok()
    }

    fn cipher(&self) -> ChaChaPoly1305<ChaCha> {
        ChaChaPoly1305::<ChaCha>::new(<&Key>::from(&*self.0))
    }
}

fn nonce(count: [u8; COUNT_BYTES]) -> Nonce {
    let mut nonce = [0; 12];
    nonce[4..].copy_from_slice(&count);
    nonce.into()
}
