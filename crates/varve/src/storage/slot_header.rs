//! The first page of a slot: which file of which store it holds.
//!
//! ```text
//! slot    page 4096 B | bytes of the file, offset 0 of the file at 4096
//! page    copy at 0 | zeros | copy at 2048 | zeros
//! copy    "VRVP" | u16 version | u8 role | u8 0 | store id 16 B | u64 file id | u64 generation | u64 xxh3
//!         0        4             6         7      8               24            32               40   .. 48
//! ```
//!
//! role is a [`FileKind`], 0 for a slot that holds nothing. xxh3 is over the 40 bytes before it, its seed the slot's number: a header
//! that was written to the wrong slot is none.
//!
//! Invariant: both copies are written in one write, and are durable with the first flush of the slot's file: until then
//! nothing that is durable names the file. Sectors may tear between the copies, so the valid copy with the highest generation counts; a slot with none is free.
//! Generations never repeat within a pool: of two slots that claim one file, the higher generation holds it.

use crate::codec::hash::xxh3;
use crate::codec::reader::{Reader, Truncated};
use crate::error::{Error, Result};
use crate::types::{FileKind, FileName, StoreId};

/// Length of the page in bytes; a file's offset 0 lies here in its slot.
pub const SLOT_HEADER_BYTES: u64 = 4096;

/// Length of one copy in bytes.
const COPY_BYTES: usize = 48;

/// Where the copies lie.
const COPY_OFFSETS: [usize; 2] = [0, 2048];

/// The format version this code reads and writes.
const VERSION: u16 = 1;

const MAGIC: &[u8; 4] = b"VRVP";

/// What a slot says of itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SlotHeader {
    /// The store the slot belongs to.
    pub store: StoreId,
    /// The file it holds; `None` when it was cleared.
    pub file: Option<FileName>,
    /// When the header was written, counted in headers written to the pool.
    pub generation: u64,
}

impl SlotHeader {
    /// The whole page of slot number `slot`, both copies.
    #[must_use]
    pub fn encode(&self, slot: u32) -> Vec<u8> {
        let mut copy = Vec::with_capacity(COPY_BYTES);
        copy.extend_from_slice(MAGIC);
        copy.extend_from_slice(&VERSION.to_le_bytes());
        copy.push(self.file.map_or(0, |file| file.kind as u8));
        copy.push(0);
        copy.extend_from_slice(&self.store);
        copy.extend_from_slice(&self.file.map_or(0, |file| file.id).to_le_bytes());
        copy.extend_from_slice(&self.generation.to_le_bytes());
        copy.extend_from_slice(&xxh3(&copy, u64::from(slot)).to_le_bytes());
        let mut page = vec![0; SLOT_HEADER_BYTES as usize];
        for offset in COPY_OFFSETS {
            page[offset..offset + COPY_BYTES].copy_from_slice(&copy);
        }
        page
    }

    /// The newer of the valid copies in the `page` of slot number `slot`, which may be cut short; `None` when neither is valid.
    ///
    /// # Errors
    /// [`Error::Version`] when the newest intact copy is of a newer format: the slot is not free, it is unknown.
    pub fn decode(page: &[u8], slot: u32) -> Result<Option<Self>> {
        let mut newest: Option<(u16, Self)> = None;
        for offset in COPY_OFFSETS {
            let copy = page.get(offset..).and_then(|rest| decode_copy(rest, slot).ok().flatten());
            if let Some(found) = copy
                && newest.is_none_or(|(_, newest)| found.1.generation > newest.generation)
            {
                newest = Some(found);
            }
        }
        match newest {
            Some((version, _)) if version != VERSION => {
                Err(Error::Version { found: version, supported: VERSION })
            }
            newest => Ok(newest.map(|(_, header)| header)),
        }
    }
}

/// One copy with its version; `Ok(None)` when its hash or magic is wrong.
fn decode_copy(bytes: &[u8], slot: u32) -> Result<Option<(u16, SlotHeader)>, Truncated> {
    let mut reader = Reader::new(bytes);
    let hashed = reader.bytes(COPY_BYTES - 8)?;
    if xxh3(hashed, u64::from(slot)) != reader.u64()? || !hashed.starts_with(MAGIC) {
        return Ok(None);
    }
    let mut reader = Reader::new(&hashed[MAGIC.len()..]);
    let version = reader.u16()?;
    let role = reader.u8()?;
    reader.u8()?;
    let store = reader.array()?;
    let id = reader.u64()?;
    let generation = reader.u64()?;
    let file = FileKind::from_byte(role).map(|kind| FileName { kind, id });
    Ok(Some((version, SlotHeader { store, file, generation })))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SLOT: u32 = 3;

    #[test]
    fn a_header_of_another_slot_is_none() {
        assert_eq!(SlotHeader::decode(&header(3).encode(SLOT), SLOT + 1), Ok(None));
    }

    fn header(generation: u64) -> SlotHeader {
        SlotHeader { store: [0x5a; 16], file: Some(FileName::table(17)), generation }
    }

    #[test]
    fn any_flipped_bit_leaves_the_other_copy() {
        let page = header(3).encode(SLOT);
        assert_eq!(page.len() as u64, SLOT_HEADER_BYTES);
        for bit in 0..page.len() * 8 {
            let mut flipped = page.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(SlotHeader::decode(&flipped, SLOT), Ok(Some(header(3))), "bit {bit}");
        }
    }

    #[test]
    fn damage_to_both_copies_frees_the_slot() {
        let page = header(3).encode(SLOT);
        for byte in 0..COPY_BYTES {
            let mut flipped = page.clone();
            for offset in COPY_OFFSETS {
                flipped[offset + byte] ^= 0x10;
            }
            assert_eq!(SlotHeader::decode(&flipped, SLOT), Ok(None), "byte {byte}");
        }
    }

    #[test]
    fn the_higher_generation_wins_when_the_page_is_torn_between_the_copies() {
        for (old, new) in [(4, 9), (9, 4)] {
            let mut page = header(old).encode(SLOT);
            page[..2048].copy_from_slice(&header(new).encode(SLOT)[..2048]);
            assert_eq!(SlotHeader::decode(&page, SLOT), Ok(Some(header(9))));
        }
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
    fn a_newer_format_is_told_instead_of_taken_for_free() {
        let mut page = header(3).encode(SLOT);
        for offset in COPY_OFFSETS {
            page[offset + 4] = 7;
            let hash = xxh3(&page[offset..offset + 40], u64::from(SLOT));
            page[offset + 40..offset + 48].copy_from_slice(&hash.to_le_bytes());
        }
        assert_eq!(SlotHeader::decode(&page, SLOT), Err(Error::Version { found: 7, supported: 1 }));
    }

    #[test]
    fn a_cleared_slot_says_so() {
        let cleared = SlotHeader { file: None, ..header(5) };
        assert_eq!(SlotHeader::decode(&cleared.encode(SLOT), SLOT), Ok(Some(cleared)));
    }
}
