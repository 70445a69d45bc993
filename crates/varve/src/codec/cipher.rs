//! Encryption of parts of files: XChaCha20-Poly1305 under the data keys of a store.
//!
//! ```text
//! plain       bytes                | 40 B of room
//! encrypted   ciphertext, as long  | nonce 24 B | tag 16 B
//! ```
//!
//! A part is a block of a table, or the payload of a record. Its associated data give its place: store, file, offset, and
//! what it is. So a part that was moved, or taken from another store, does not decrypt. The nonce lies beside the part and
//! does not follow from the place, because a refused append writes to the same place again.
//!
//! The engine has no randomness of its own: the host gives 16 random bytes with the keys. A nonce is these bytes and a count.
//! A job encrypts in another context, so it gets a [`Keyring::fork`], whose 16 bytes follow from the next count.
//!
//! Invariant: no two parts that one data key encrypts have the same nonce. A file names the number of its key; 0 means that
//! the file is not encrypted.
//!
//! The construction: Bernstein, "Extending the Salsa20 nonce" (2011), and draft-irtf-cfrg-xchacha-03.

use core::fmt;
use core::sync::atomic::{AtomicU64, Ordering};
use std::sync::Arc;

use varve_cipher::{COUNT_BYTES, Subkey, TAG_BYTES};
pub use varve_cipher::{KEY_BYTES, SEED_BYTES};
use zeroize::{Zeroize, Zeroizing};

use super::reader::{Reader, Truncated};
use super::varint::put_u64;
use crate::error::Error;
use crate::mutant::{self, Mutant};
use crate::types::{FileName, StoreId};

/// Bytes that an encrypted part is longer than a plain one: its nonce and its tag.
pub const CIPHER_BYTES: usize = NONCE_BYTES + TAG_BYTES;

const NONCE_BYTES: usize = SEED_BYTES + COUNT_BYTES;
const PLACE_BYTES: usize = 33;

/// The number of a data key within its store, from 1; the highest encrypts new files. 0: not encrypted.
pub type KeyNumber = u16;

/// The identity of a store and its data keys. Clones share the keys and the count of nonces. All keys are overwritten with zeros
/// when the last clone is dropped.
#[derive(Clone)]
pub struct Keyring {
    store: StoreId,
    secrets: Option<Arc<Secrets>>,
}

/// A host opens an encrypted store with this: the data keys of the store, and the bytes that wrap them for the keys of its users.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Encryption {
    /// The data keys. The identity of the store in it does not count.
    pub keyring: Keyring,
    /// For a new store: the data keys, wrapped for each user's key. The engine keeps these bytes in the manifest, as they are. They
    /// must tell nothing without a user's key: see [`key_slots`](crate::key_slots).
    pub slots: Vec<u8>,
}

impl Encryption {
    /// No encryption.
    #[must_use]
    pub fn none() -> Self {
        Self { keyring: Keyring::plain([0; 16]), slots: Vec::new() }
    }

    /// Reads the bytes that a host in another language gives: `varint count | { u16 number | key 32 B } * count | seed 16 B | slots`. No
    /// bytes mean no encryption.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] for other bytes.
    pub fn decode(bytes: &[u8]) -> Result<Self, Error> {
        if bytes.is_empty() {
            return Ok(Self::none());
        }
        let mut reader = Reader::new(bytes);
        let mut read = || -> Result<Self, Truncated> {
            let keyring = Keyring::read(&mut reader, [0; 16])?;
            Ok(Self { keyring, slots: reader.bytes(reader.remaining())?.to_vec() })
        };
        read().map_err(|Truncated| Error::InvalidArgument("These bytes are not data keys."))
    }
}

/// Where an encrypted part lies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    /// The file.
    pub file: FileName,
    /// Where the part begins in the file, in bytes.
    pub offset: u64,
    /// The kind of the block, or [`Place::RECORD`].
    pub part: u8,
}

impl Place {
    /// The payload of a record in a WAL segment or a manifest. No kind of block has this number.
    pub const RECORD: u8 = 0xff;
}

/// A part does not decrypt: its key is not here or is another one, or its bytes are not those that were encrypted for this place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Undecipherable;

struct Secrets {
    /// In ascending order of their numbers.
    keys: Zeroizing<Vec<(KeyNumber, [u8; KEY_BYTES])>>,
    seed: [u8; SEED_BYTES],
    count: AtomicU64,
    /// Of the highest key and the seed: what nearly everything is encrypted under.
    subkey: Subkey,
}

impl Secrets {
    /// `None` without keys.
    fn new(keys: Zeroizing<Vec<(KeyNumber, [u8; KEY_BYTES])>>, seed: [u8; SEED_BYTES]) -> Option<Arc<Self>> {
        let subkey = Subkey::new(&keys.last()?.1, &seed);
        Some(Arc::new(Self { keys, seed, count: AtomicU64::new(0), subkey }))
    }

    /// The end of a nonce that was never used.
    fn count(&self) -> [u8; COUNT_BYTES] {
        let count = self.count.fetch_add(1, Ordering::Relaxed).to_le_bytes();
        #[cfg(feature = "nonces")]
        crate::nonces::given_out((self.seed, count));
        count
    }
}

impl Keyring {
    /// For a store that is not encrypted.
    #[must_use]
    pub fn plain(store: StoreId) -> Self {
        Self { store, secrets: None }
    }

    /// With data keys and 16 random bytes that no other keyring was made with. `None` unless the numbers ascend from 1 or more.
    /// Without keys, as [`Keyring::plain`].
    #[must_use]
    pub fn new(
        store: StoreId,
        keys: Vec<(KeyNumber, [u8; KEY_BYTES])>,
        seed: [u8; SEED_BYTES],
    ) -> Option<Self> {
        let keys = Zeroizing::new(keys);
        let ascends =
            keys.is_sorted_by(|one, next| one.0 < next.0) && keys.first().is_none_or(|key| key.0 > 0);
        ascends.then(|| Self { store, secrets: Secrets::new(keys, seed) })
    }

    /// The same keys for the store with this identity.
    #[must_use]
    pub fn of_store(&self, store: StoreId) -> Self {
        Self { store, secrets: self.secrets.clone() }
    }

    /// The identity of the store.
    #[must_use]
    pub fn store(&self) -> &StoreId {
        &self.store
    }

    /// The number of the key that encrypts new files, 0 without keys.
    #[must_use]
    pub fn current(&self) -> KeyNumber {
        self.secrets.as_ref().and_then(|secrets| secrets.keys.last()).map_or(0, |key| key.0)
    }

    /// The numbers of the keys.
    pub fn numbers(&self) -> impl Iterator<Item = KeyNumber> {
        self.secrets.iter().flat_map(|secrets| secrets.keys.iter().map(|key| key.0))
    }

    /// Whether files under this number can be read. Files that are not encrypted always can.
    #[must_use]
    pub fn has(&self, number: KeyNumber) -> bool {
        number == 0 || self.key(number).is_some()
    }

    /// Bytes of room that each part of a file needs whose key has this number.
    #[must_use]
    pub fn room(number: KeyNumber) -> usize {
        if number == 0 { 0 } else { CIPHER_BYTES }
    }

    fn key(&self, number: KeyNumber) -> Option<&[u8; KEY_BYTES]> {
        let keys = &self.secrets.as_ref()?.keys;
        keys.iter().find(|key| key.0 == number).map(|key| &key.1)
    }

    /// Encrypts a part in place: `bytes` ends with [`CIPHER_BYTES`] of room. Does nothing under number 0.
    ///
    /// # Panics
    /// When the key is not here, or there is no room.
    pub fn encrypt(&self, number: KeyNumber, place: Place, bytes: &mut [u8]) {
        if number == 0 {
            return;
        }
        let key = self.key(number).expect("a file is written under a key that is here");
        let secrets = self.secrets.as_ref().expect("they have the key");
        let end = bytes.len() - CIPHER_BYTES;
        let (part, room) = bytes.split_at_mut(end);
        let (count, associated) = (secrets.count(), self.associated(place));
        let tag = if number == self.current() {
            secrets.subkey.encrypt(count, &associated, part)
        } else {
            Subkey::new(key, &secrets.seed).encrypt(count, &associated, part)
        };
        room[..SEED_BYTES].copy_from_slice(&secrets.seed);
        room[SEED_BYTES..NONCE_BYTES].copy_from_slice(&count);
        room[NONCE_BYTES..].copy_from_slice(&tag);
    }

    /// Decrypts a part in place and returns its length without nonce and tag; these stay. Does nothing under number 0.
    ///
    /// # Errors
    /// [`Undecipherable`]. Then the bytes are as they were.
    pub fn decrypt(
        &self,
        number: KeyNumber,
        place: Place,
        bytes: &mut [u8],
    ) -> Result<usize, Undecipherable> {
        if number == 0 {
            return Ok(bytes.len());
        }
        let key = self.key(number).ok_or(Undecipherable)?;
        let end = bytes.len().checked_sub(CIPHER_BYTES).ok_or(Undecipherable)?;
        let (part, room) = bytes.split_at_mut(end);
        let (seed, rest) = room.split_first_chunk().ok_or(Undecipherable)?;
        let (count, tag) = rest.split_first_chunk().ok_or(Undecipherable)?;
        let tag = tag.first_chunk().ok_or(Undecipherable)?;
        if Subkey::new(key, seed).decrypt(*count, &self.associated(place), part, tag) {
            Ok(end)
        } else {
            Err(Undecipherable)
        }
    }

    /// The associated data of a part.
    fn associated(&self, place: Place) -> [u8; PLACE_BYTES] {
        let mut bytes = [0; PLACE_BYTES];
        bytes[..16].copy_from_slice(&self.store);
        // Numbers of files are below 2^56: see `FORMAT.md`.
        let file = place.file.id | u64::from(place.file.kind as u8) << 56;
        bytes[16..24].copy_from_slice(&file.to_le_bytes());
        bytes[24..32].copy_from_slice(&place.offset.to_le_bytes());
        bytes[32] = place.part;
        bytes
    }

    /// The same keys with nonces of its own, for a job that encrypts beside this one. Its seed is a tag under the current key: a
    /// pseudorandom function of a nonce that was never used.
    #[must_use]
    pub fn fork(&self) -> Self {
        let Some(secrets) = &self.secrets else { return self.clone() };
        let tag = secrets.subkey.encrypt(secrets.count(), b"fork", &mut []);
        let seed = if mutant::has(Mutant::ForksKeepSeeds) { secrets.seed } else { tag };
        Self { store: self.store, secrets: Secrets::new(secrets.keys.clone(), seed) }
    }

    /// Bytes of [`Keyring::encode`], at most.
    #[must_use]
    pub fn encoded_len(&self) -> usize {
        let keys = self.secrets.as_ref().map_or(0, |secrets| secrets.keys.len());
        size_of::<StoreId>() + 10 + keys * (size_of::<KeyNumber>() + KEY_BYTES) + SEED_BYTES
    }

    /// Appends identity, keys and seed. The reader of the bytes may encrypt, so they come from a [`Keyring::fork`].
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.store);
        let keys = self.secrets.as_ref().map_or(&[][..], |secrets| &secrets.keys);
        put_u64(out, keys.len() as u64);
        for (number, key) in keys {
            out.extend_from_slice(&number.to_le_bytes());
            out.extend_from_slice(key);
        }
        if let Some(secrets) = &self.secrets {
            out.extend_from_slice(&secrets.seed);
        }
    }

    /// Reads the bytes of [`Keyring::encode`].
    pub fn decode(reader: &mut Reader<'_>) -> Result<Self, Truncated> {
        let store = reader.array()?;
        Self::read(reader, store)
    }

    /// Reads the keys and the seed of a keyring.
    fn read(reader: &mut Reader<'_>, store: StoreId) -> Result<Self, Truncated> {
        let mut keys = Vec::new();
        for _ in 0..reader.varint()? {
            keys.push((reader.u16()?, reader.array()?));
        }
        if keys.is_empty() {
            return Ok(Self::plain(store));
        }
        Self::new(store, keys, reader.array()?).ok_or(Truncated)
    }
}

impl PartialEq for Keyring {
    fn eq(&self, other: &Self) -> bool {
        let keys = |ring: &Self| ring.secrets.as_ref().map(|secrets| secrets.keys.clone());
        self.store == other.store && keys(self) == keys(other)
    }
}

impl Eq for Keyring {}

/// Without the keys.
impl fmt::Debug for Keyring {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Keyring").field("store", &self.store).field("current", &self.current()).finish()
    }
}

impl Drop for Secrets {
    fn drop(&mut self) {
        self.seed.zeroize();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLACE: Place =
        Place { file: FileName { kind: crate::types::FileKind::Table, id: 7 }, offset: 4096, part: 1 };

    fn ring() -> Keyring {
        Keyring::new([9; 16], vec![(1, [1; KEY_BYTES]), (3, [3; KEY_BYTES])], [5; SEED_BYTES]).unwrap()
    }

    fn encrypted(ring: &Keyring, plain: &[u8]) -> Vec<u8> {
        let mut bytes = [plain, &[0; CIPHER_BYTES]].concat();
        ring.encrypt(3, PLACE, &mut bytes);
        bytes
    }

    /// The nonce of the next part.
    fn nonce(ring: &Keyring) -> [u8; NONCE_BYTES] {
        *encrypted(ring, b"").first_chunk().unwrap()
    }

    fn hex(text: &str) -> Vec<u8> {
        (0..text.len()).step_by(2).map(|at| u8::from_str_radix(&text[at..at + 2], 16).unwrap()).collect()
    }

    /// draft-irtf-cfrg-xchacha-03, A.3.1: the library is the cipher that the format names.
    #[test]
    fn known_answer_of_the_draft() {
        let key: [u8; 32] = core::array::from_fn(|index| 0x80 + index as u8);
        let nonce: [u8; 24] = core::array::from_fn(|index| 0x40 + index as u8);
        let aad = hex("50515253c0c1c2c3c4c5c6c7");
        let mut text =
            b"Ladies and Gentlemen of the class of '99: If I could offer you only one tip for the future, \
            sunscreen would be it."
                .to_vec();
        let (seed, count) = (nonce.first_chunk().unwrap(), *nonce.last_chunk().unwrap());
        let tag = Subkey::new(&key, seed).encrypt(count, &aad, &mut text);
        assert_eq!(text[..16], hex("bd6d179d3e83d43b9576579493c0e939"));
        assert_eq!(tag.to_vec(), hex("c0875924c1c7987947deafd8780acf49"));
    }

    #[test]
    fn a_part_comes_back_in_its_place_and_nowhere_else() {
        let ring = ring();
        let bytes = encrypted(&ring, b"silt");
        assert_ne!(bytes[..4], *b"silt");
        let open = |ring: &Keyring, number, place| {
            let mut copy = bytes.clone();
            let len = ring.decrypt(number, place, &mut copy);
            if len.is_err() {
                assert_eq!(copy, bytes, "a refused part is left as it is");
            }
            len.map(|len| copy[..len].to_vec())
        };
        assert_eq!(open(&ring, 3, PLACE), Ok(b"silt".to_vec()));
        let refused = Err(Undecipherable);
        assert_eq!(open(&ring, 1, PLACE), refused, "another key");
        assert_eq!(open(&ring, 2, PLACE), refused, "a key that is not here");
        assert_eq!(open(&ring, 3, Place { offset: 0, ..PLACE }), refused);
        assert_eq!(open(&ring, 3, Place { part: 2, ..PLACE }), refused);
        assert_eq!(open(&ring, 3, Place { file: FileName::table(8), ..PLACE }), refused);
        assert_eq!(open(&ring, 3, Place { file: FileName::wal(7), ..PLACE }), refused);
        assert_eq!(open(&ring.of_store([8; 16]), 3, PLACE), refused, "another store");
    }

    #[test]
    fn every_flipped_bit_is_refused() {
        let ring = ring();
        let bytes = encrypted(&ring, b"silt and clay");
        for bit in 0..bytes.len() * 8 {
            let mut flipped = bytes.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(ring.decrypt(3, PLACE, &mut flipped), Err(Undecipherable), "bit {bit}");
        }
        for len in 0..bytes.len() {
            assert_eq!(
                ring.decrypt(3, PLACE, &mut bytes[..len].to_vec()),
                Err(Undecipherable),
                "{len} bytes"
            );
        }
    }

    #[test]
    fn nonces_of_clones_forks_and_their_forks_differ() {
        let ring = ring();
        let mut seen = std::collections::HashSet::new();
        for _ in 0..20 {
            let fork = ring.fork();
            for ring in [&ring, &ring.clone(), &ring.of_store([8; 16]), &fork, &fork.fork()] {
                assert!(seen.insert(nonce(ring)));
            }
        }
    }

    #[test]
    fn a_host_gives_keys_seed_and_slots_as_bytes() {
        let mut bytes = vec![2, 1, 0];
        bytes.extend_from_slice(&[1; KEY_BYTES]);
        bytes.extend_from_slice(&[3, 0]);
        bytes.extend_from_slice(&[3; KEY_BYTES]);
        bytes.extend_from_slice(&[5; SEED_BYTES]);
        let keys = bytes.len();
        bytes.extend_from_slice(b"slots");
        let found = Encryption::decode(&bytes).unwrap();
        assert_eq!(found, Encryption { keyring: ring().of_store([0; 16]), slots: b"slots".to_vec() });
        assert_eq!(nonce(&found.keyring)[..SEED_BYTES], [5; SEED_BYTES]);
        assert_eq!(Encryption::decode(&[]), Ok(Encryption::none()));
        for len in 1..keys {
            assert!(Encryption::decode(&bytes[..len]).is_err(), "{len} bytes");
        }
    }

    #[test]
    fn keys_travel_and_do_not_show() {
        let mut bytes = Vec::new();
        for ring in [ring(), Keyring::plain([4; 16])] {
            bytes.clear();
            ring.encode(&mut bytes);
            assert_eq!(Keyring::decode(&mut Reader::new(&bytes)), Ok(ring.clone()));
        }
        assert_eq!(format!("{:?}", ring()), format!("Keyring {{ store: {:?}, current: 3 }}", [9; 16]));
        assert_eq!(Keyring::new([0; 16], vec![(0, [0; 32])], [0; 16]), None);
        assert_eq!(Keyring::new([0; 16], vec![(2, [0; 32]), (2, [0; 32])], [0; 16]), None);
        assert_eq!(Keyring::new([0; 16], vec![], [0; 16]), Some(Keyring::plain([0; 16])));
    }
}
