//! The bytes of slots that no needed file contains. A segment of the log in them shows that a slot's page is damaged (see `wal/stray.rs`).
//!
//! Invariant: an opening searches only slots whose page is not intact: it was lost, wholly or in part, or a crash tore it. Other openings
//! read nothing for this. Only the bytes that a file needs are its own: a page that is older than it should be may give it more room.

use super::StrayVisitor;
use super::name_map::Place;
use super::placement::SHARED_BYTES;
use super::pool::{SlotPool, Use};
use super::slot_header::SLOT_HEADER_BYTES;
use super::slots::{SlotError, Slots};
use super::space::{gaps, pages};
use crate::codec::room;
use crate::error::{Error, Result};
use crate::types::FileName;

/// If all parts together are longer than this, each slot is read only up to where segments usually begin.
const ALL_BYTES_MAX: u64 = 4 << 20;

/// A file that is needed.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Needed {
    pub(crate) file: FileName,
    pub(crate) slot: u32,
    /// Its first byte, from the start of the slot.
    pub(crate) start: u64,
    /// How many bytes of it are needed.
    pub(crate) bytes: u64,
}

/// A part of a slot that no needed file contains. It begins at a page.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Part {
    pub(crate) slot: u32,
    pub(crate) start: u64,
    pub(crate) bytes: u64,
    /// The file before it, and the number of the byte of that file that would be here.
    pub(crate) behind: Option<(FileName, u64)>,
}

/// The parts of these slots, given with their lengths, that are worth reading at each opening. A segment begins before byte `SHARED_BYTES`
/// of a slot, unless there was no other room.
pub(crate) fn parts(slots: &[(u32, u64)], needed: &[Needed]) -> Vec<Part> {
    let (mut parts, mut all) = (Vec::new(), 0);
    for &(slot, size) in slots {
        let mut spans = Vec::new();
        for file in needed {
            if file.slot == slot {
                spans.push((file.start, file.start + file.bytes));
            }
        }
        for gap in gaps(spans, size) {
            let mut part = Part { slot, start: gap.start, bytes: gap.written, behind: None };
            for file in needed {
                if file.slot == slot && pages(file.start + file.bytes) == gap.start {
                    part.behind = Some((file.file, gap.start - file.start));
                }
            }
            all += part.bytes;
            parts.push(part);
        }
    }
    for part in &mut parts {
        if all > ALL_BYTES_MAX {
            part.bytes = part.bytes.min(SHARED_BYTES.saturating_sub(part.start));
        }
    }
    parts.retain(|part| part.bytes > 0);
    parts
}

impl<D: Slots> SlotPool<D> {
    pub(super) fn read_strays(&self, files: &[(FileName, u64)], visit: &mut StrayVisitor<'_>) -> Result<()> {
        let (mut needed, mut slots) = (Vec::new(), Vec::new());
        for &(file, bytes) in files {
            let Place { slot, start, .. } = self.place(file)?;
            needed.push(Needed { file, slot, start, bytes });
        }
        for (slot, known) in self.slots.iter().enumerate() {
            let is_searched = known.state == Use::Open && !known.is_intact && !known.is_of_manifest();
            if is_searched
                && known.size > SLOT_HEADER_BYTES
                && (known.kind.is_some() || self.was_used(slot as u32))
            {
                slots.push((slot as u32, known.size));
            }
        }
        for part in parts(&slots, &needed) {
            let mut bytes = room::zeros(part.bytes as usize)?;
            match self.device.read(part.slot, part.start, &mut bytes) {
                Ok(read) => visit(part.behind, &bytes[..read])?,
                Err(SlotError::Pending) => return Err(Error::Pending),
                // Bytes that nobody needs keep no store from opening.
                Err(_) => {}
            }
        }
        Ok(())
    }

    /// Whether a slot without a page has contained a file: the first one begins behind the page. Spare slots contain zeros.
    fn was_used(&self, slot: u32) -> bool {
        let mut begin = [0; 8];
        // If this cannot be read, the slot is not searched.
        let _ = self.device.read(slot, SLOT_HEADER_BYTES, &mut begin);
        begin != [0; 8]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn needed(slot: u32, start: u64, bytes: u64) -> Needed {
        Needed { file: FileName::wal(start), slot, start, bytes }
    }

    #[test]
    fn parts_lie_behind_needed_bytes_and_long_ones_are_read_at_their_start() {
        let found = |size: u64| {
            let files = [needed(0, 4096, 5000), needed(0, 20_480, 4096), needed(1, 4096, size)];
            let parts = parts(&[(0, size), (1, 8192), (2, 4096), (3, 0)], &files);
            parts.iter().map(|part| (part.slot, part.start, part.bytes, part.behind)).collect::<Vec<_>>()
        };
        let behind = |start, offset| Some((FileName::wal(start), offset));
        let first = (0, 12_288, 8192, behind(4096, 8192));
        assert_eq!(found(100_000), [first, (0, 24_576, 75_424, behind(20_480, 4096))]);
        let near = SHARED_BYTES - 24_576;
        assert_eq!(found(ALL_BYTES_MAX + 50_000), [first, (0, 24_576, near, behind(20_480, 4096))]);
    }
}
