//! The first page of a slot: which files of which store it contains, and where in the slot they lie.
//!
//! ```text
//! slot    page 4096 B | bytes of the files, each from a page boundary on
//! page    copies of one header at 0 and 1024, of the one before or after it at 2048 and 3072
//! copy    "VRVP" | u16 version | u16 0 | store id 16 B | u64 number of claims | u64 generation | u64 xxh3
//!         0        4             6       8               24                     32               40   .. 48
//!         claim * number | zeros to 1016 | u64 xxh3
//! claim   u8 kind | 7 B number of the file | u64 generation | u32 first page | u32 pages, 0: to the end of the slot
//! ```
//!
//! xxh3 is over the bytes of the copy before it, its seed the slot's number: a header that was written to the wrong slot is invalid. Every
//! other version has the first 48 bytes in common. A valid copy with something else than the above was written by newer code: the slot is
//! not free, its contents are unknown. Version 1 was never released.
//!
//! Invariant: a half of the page is two copies, written in one write. While a slot contains files, a new header goes to the half that does not
//! contain the durable one, so a torn write leaves the durable header intact. A claim is durable with the first flush of its file: until then
//! nothing that is durable names the file. The valid copy with the highest generation counts; a slot with none is free. Generations never
//! repeat within a pool: of two claims of one file, the one with the higher generation counts.

use crate::codec::hash::xxh3;
use crate::codec::reader::{Reader, Truncated};
use crate::error::{Error, Result};
use crate::types::{FileKind, FileName, PAGE_BYTES, StoreId};

/// Length of the page in bytes; the first file of a slot begins here.
pub const SLOT_HEADER_BYTES: u64 = 4096;

/// Most files that a slot contains.
pub(super) const CLAIMS_MAX: usize = 40;

/// Length of the part that all versions have in common, in bytes.
const HEAD_BYTES: usize = 48;
/// Length of a copy in bytes.
const COPY_BYTES: usize = 1024;
/// Length of a half of the page.
pub(super) const HALF_BYTES: usize = 2 * COPY_BYTES;

/// The format version that this code reads and writes.
const VERSION: u16 = 2;

const MAGIC: &[u8; 4] = b"VRVP";

/// A part of a slot that contains a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Claim {
    /// The file.
    pub file: FileName,
    /// The generation at which it was claimed.
    pub generation: u64,
    /// Where its bytes begin, from the start of the slot.
    pub start: u64,
    /// Bytes set aside for it, or `u64::MAX`: to the end of the slot.
    pub room: u64,
}

/// The contents of a slot's header.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SlotHeader {
    /// The store the slot belongs to.
    pub store: StoreId,
    /// When the header was written, as a generation of the pool: each header written gets a higher one.
    pub generation: u64,
    /// The files it contains; none when it was cleared.
    pub claims: Vec<Claim>,
}

/// The newest header of a page.
#[derive(Debug)]
pub(super) struct Found {
    pub(super) header: SlotHeader,
    /// Where its copy begins.
    pub(super) at: u64,
    /// Whether each copy in the page is valid: nothing of it is lost.
    pub(super) is_intact: bool,
}

impl SlotHeader {
    /// The header of a slot that contains one file, to its end.
    #[must_use]
    pub fn whole(store: StoreId, file: FileName, generation: u64) -> Self {
        let claim = Claim { file, generation, start: SLOT_HEADER_BYTES, room: u64::MAX };
        Self { store, generation, claims: vec![claim] }
    }

    /// Whether the slot contains a manifest.
    #[must_use]
    pub(crate) fn is_of_manifest(&self) -> bool {
        self.claims.iter().any(|claim| claim.file.kind == FileKind::Manifest)
    }

    /// The whole page of slot number `slot`, both halves.
    #[must_use]
    pub fn encode(&self, slot: u32) -> Vec<u8> {
        let mut page = self.encode_half(slot);
        page.extend_from_within(..);
        page
    }

    /// The first damaged byte of `page` in the other copies of this header, besides the copy that was read.
    #[must_use]
    pub(crate) fn damaged_at(&self, page: &[u8], slot: u32) -> Option<u64> {
        let copies = || {
            (0..page.len())
                .step_by(COPY_BYTES)
                .filter_map(|at| Some((at, decode_copy(page.get(at..)?, slot).ok()??)))
        };
        let (at, _) = copies().find(|(_, (_, found))| found == self)?;
        first_difference(&self.encode_half(slot), page, at / HALF_BYTES * HALF_BYTES)
    }

    /// A half of the page, both copies.
    pub(super) fn encode_half(&self, slot: u32) -> Vec<u8> {
        let seed = u64::from(slot);
        let mut copy = Vec::with_capacity(HALF_BYTES);
        copy.extend_from_slice(MAGIC);
        copy.extend_from_slice(&VERSION.to_le_bytes());
        copy.extend_from_slice(&[0, 0]);
        copy.extend_from_slice(&self.store);
        copy.extend_from_slice(&(self.claims.len() as u64).to_le_bytes());
        copy.extend_from_slice(&self.generation.to_le_bytes());
        copy.extend_from_slice(&xxh3(&copy, seed).to_le_bytes());
        for Claim { file, generation, start, room } in &self.claims {
            copy.extend_from_slice(&((file.kind as u64) << 56 | file.id).to_le_bytes());
            copy.extend_from_slice(&generation.to_le_bytes());
            let pages = if *room == u64::MAX { 0 } else { room / PAGE_BYTES };
            copy.extend_from_slice(&((start / PAGE_BYTES) as u32).to_le_bytes());
            copy.extend_from_slice(&(pages as u32).to_le_bytes());
        }
        copy.resize(COPY_BYTES - 8, 0);
        copy.extend_from_slice(&xxh3(&copy, seed).to_le_bytes());
        copy.extend_from_within(..);
        copy
    }

    /// The newest of the valid copies in the `page` of slot number `slot`, which may be cut short; `None` when none is valid.
    ///
    /// # Errors
    /// [`Error::Version`] when the newest intact copy has a newer format: then the slot is not free, its contents are
    /// unknown.
    pub fn decode(page: &[u8], slot: u32) -> Result<Option<Self>> {
        Ok(Self::find(page, slot)?.map(|found| found.header))
    }

    /// As [`SlotHeader::decode`], with what else the page shows.
    pub(super) fn find(page: &[u8], slot: u32) -> Result<Option<Found>> {
        let (mut newest, mut valid) = (None::<(u16, usize, Self)>, 0);
        for offset in (0..page.len().min(2 * HALF_BYTES)).step_by(COPY_BYTES) {
            if let Some((version, found)) = decode_copy(&page[offset..], slot).ok().flatten() {
                valid += 1;
                if newest.as_ref().is_none_or(|(_, _, newest)| found.generation > newest.generation) {
                    newest = Some((version, offset, found));
                }
            }
        }
        let is_intact = valid == 2 * HALF_BYTES / COPY_BYTES;
        match newest {
            Some((version, ..)) if version != VERSION => {
                Err(Error::Version { found: version, supported: VERSION })
            }
            newest => Ok(newest.map(|(_, at, header)| Found { header, at: at as u64, is_intact })),
        }
    }
}

/// The first byte of `found`, from `at` on, that differs from what was written.
fn first_difference(written: &[u8], found: &[u8], at: usize) -> Option<u64> {
    let differs = |offset: &usize| written.get(*offset) != found.get(at + *offset);
    (0..written.len()).find(differs).map(|offset| (at + offset) as u64)
}

/// One copy with its version, which is a higher one if it has something that this code does not know; `Ok(None)` when its hash or magic is
/// wrong.
fn decode_copy(bytes: &[u8], slot: u32) -> Result<Option<(u16, SlotHeader)>, Truncated> {
    let seed = u64::from(slot);
    let mut reader = Reader::new(bytes);
    let hashed = reader.bytes(HEAD_BYTES - 8)?;
    if xxh3(hashed, seed) != reader.u64()? || !hashed.starts_with(MAGIC) {
        return Ok(None);
    }
    let mut head = Reader::new(&hashed[MAGIC.len()..]);
    let (version, zero) = (head.u16()?, head.u16()?);
    let store = head.array()?;
    let (number, generation) = (head.u64()?, head.u64()?);
    let mut header = SlotHeader { store, generation, claims: Vec::new() };
    if version != VERSION {
        return Ok(Some((version, header)));
    }
    let mut whole = Reader::new(bytes);
    let hashed = whole.bytes(COPY_BYTES - 8)?;
    if xxh3(hashed, seed) != whole.u64()? {
        return Ok(None);
    }
    let newer = (VERSION + 1, header.clone());
    if zero != 0 || number > CLAIMS_MAX as u64 {
        return Ok(Some(newer));
    }
    for _ in 0..number {
        let name = reader.u64()?;
        let generation = reader.u64()?;
        let (first, pages) = (u64::from(reader.u32()?), u64::from(reader.u32()?));
        let Some(kind) = FileKind::from_byte((name >> 56) as u8) else { return Ok(Some(newer)) };
        let file = FileName { kind, id: name & ((1 << 56) - 1) };
        let room = if pages == 0 { u64::MAX } else { pages * PAGE_BYTES };
        header.claims.push(Claim { file, generation, start: first * PAGE_BYTES, room });
    }
    let is_known = hashed[reader.position()..].iter().all(|&byte| byte == 0);
    Ok(Some(if is_known { (version, header) } else { newer }))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SLOT: u32 = 3;
    const STORE: StoreId = [0x5a; 16];

    fn header(generation: u64) -> SlotHeader {
        let claim = |id, start, room| Claim { file: FileName::wal(id), generation: id, start, room };
        let claims = vec![claim(17, 4096, 1 << 20), claim(18, 3 << 20, 8192), claim(19, 4 << 20, u64::MAX)];
        SlotHeader { store: STORE, generation, claims }
    }

    /// `page` with this byte in each copy, and right hashes.
    fn changed(mut page: Vec<u8>, at: usize, byte: u8) -> Vec<u8> {
        for copy in page.chunks_mut(COPY_BYTES) {
            copy[at] = byte;
            for end in [HEAD_BYTES - 8, COPY_BYTES - 8] {
                let hash = xxh3(&copy[..end], u64::from(SLOT));
                copy[end..end + 8].copy_from_slice(&hash.to_le_bytes());
            }
        }
        page
    }

    #[test]
    fn a_header_of_another_slot_is_none() {
        assert_eq!(SlotHeader::decode(&header(3).encode(SLOT), SLOT + 1), Ok(None));
    }

    #[test]
    fn a_full_header_fits_its_copy() {
        let claim = header(3).claims[1];
        let full = SlotHeader { claims: vec![claim; CLAIMS_MAX], ..header(3) };
        let page = full.encode(SLOT);
        assert_eq!(page.len() as u64, SLOT_HEADER_BYTES);
        assert_eq!(SlotHeader::decode(&page, SLOT), Ok(Some(full)));
    }

    #[test]
    fn any_flipped_bit_leaves_the_other_copies() {
        let page = header(3).encode(SLOT);
        for bit in 0..page.len() * 8 {
            let mut flipped = page.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(SlotHeader::decode(&flipped, SLOT), Ok(Some(header(3))), "bit {bit}");
        }
    }

    #[test]
    fn damage_to_all_copies_frees_the_slot() {
        let page = header(3).encode(SLOT);
        for byte in 0..COPY_BYTES {
            let mut flipped = page.clone();
            for offset in (0..page.len()).step_by(COPY_BYTES) {
                flipped[offset + byte] ^= 0x10;
            }
            assert_eq!(SlotHeader::decode(&flipped, SLOT), Ok(None), "byte {byte}");
        }
    }

    #[test]
    fn the_higher_generation_wins_wherever_it_lies() {
        for (old, new) in [(4, 9), (9, 4)] {
            let mut page = header(old).encode(SLOT);
            page[..2048].copy_from_slice(&header(new).encode_half(SLOT));
            let found = SlotHeader::find(&page, SLOT).expect("known").expect("valid");
            assert_eq!((found.at, found.header), (if new == 9 { 0 } else { 2048 }, header(9)));
            assert!(found.is_intact);
            page[3072..].fill(0);
            assert!(!SlotHeader::find(&page, SLOT).expect("known").expect("valid").is_intact);
        }
        let mut page = header(2).encode(SLOT);
        page[..2048].copy_from_slice(&header(3).encode_half(SLOT));
        page[..2048].fill(7);
        assert_eq!(
            SlotHeader::decode(&page, SLOT),
            Ok(Some(header(2))),
            "a torn half leaves the one before it"
        );
    }

    #[test]
    fn a_short_page_is_read_as_far_as_it_goes() {
        let page = header(3).encode(SLOT);
        for len in 0..=page.len() {
            let expected = (len >= COPY_BYTES).then(|| header(3));
            assert_eq!(SlotHeader::decode(&page[..len], SLOT), Ok(expected), "{len} bytes");
        }
    }

    #[test]
    fn a_newer_format_is_reported_and_not_free() {
        let page = header(3).encode(SLOT);
        let found = |at, byte| SlotHeader::decode(&changed(page.clone(), at, byte), SLOT);
        let newer = |found| Err(Error::Version { found, supported: VERSION });
        assert_eq!((found(4, 7), found(4, 1)), (newer(7), newer(1)), "another version");
        for (at, byte) in
            [(6, 1), (7, 1), (24, 41), (30, 1), (48 + 7, 4), (48 + 24 + 7, 0), (120, 1), (1015, 1)]
        {
            assert_eq!(found(at, byte), newer(3), "byte {at}");
        }
        // An older copy counts for nothing.
        let mut page = changed(page.clone(), 24, 41);
        page[..2048].copy_from_slice(&header(4).encode_half(SLOT));
        assert_eq!(SlotHeader::decode(&page, SLOT), Ok(Some(header(4))));
    }
}
