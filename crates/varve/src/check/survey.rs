//! Which slot contains which files, and where, from the first page of every slot.
//!
//! Invariant: the same slots belong to the same files as in `SlotPool::open`: those of the store whose manifest slot was
//! claimed last, each file where the claim with the highest generation places it.

use std::collections::BTreeMap;

use crate::error::Result;
use crate::storage::{Claim, SLOT_HEADER_BYTES, SlotHeader};
use crate::types::{FileKind, FileName, StoreId};

/// The beginning of a slot, as a host read it.
#[derive(Debug, Clone)]
pub struct SlotPage {
    /// The slot.
    pub slot: u32,
    /// Bytes in the slot.
    pub bytes: u64,
    /// Its first page, shorter where the slot is.
    pub page: Vec<u8>,
}

/// A file that was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Found {
    /// The slot that contains it.
    pub slot: u32,
    /// Its first byte, from the start of the slot.
    pub start: u64,
    /// The largest number of its bytes that can be read.
    pub bytes: u64,
    /// When it was claimed.
    pub generation: u64,
    /// The first byte of the page that differs from what was written.
    pub damaged_at: Option<u64>,
}

/// All files of a store.
#[derive(Debug, Clone, Default)]
pub struct Survey {
    /// The store; `None` when no page is readable.
    pub store: Option<StoreId>,
    /// Where each file is.
    pub files: BTreeMap<FileName, Found>,
    /// Slots with bytes of an unknown file, and the number of bytes after their page.
    pub headless: Vec<(u32, u64)>,
    /// All slots, and the number of their bytes.
    pub slots: Vec<(u32, u64)>,
}

/// Reads the pages of all slots.
///
/// # Errors
/// [`Error::Version`](crate::error::Error::Version) when a newer format wrote one.
pub fn survey(pages: &[SlotPage]) -> Result<Survey> {
    let mut survey = Survey::default();
    let mut headers = Vec::new();
    for page in pages {
        let header = SlotHeader::decode(&page.page, page.slot)?;
        if header.is_none() && page.bytes > SLOT_HEADER_BYTES {
            survey.headless.push((page.slot, page.bytes - SLOT_HEADER_BYTES));
        }
        survey.slots.push((page.slot, page.bytes));
        headers.extend(header.map(|header| (page, header)));
    }
    let newest = headers.iter().max_by_key(|(_, header)| (header.is_of_manifest(), header.generation));
    survey.store = newest.map(|(_, header)| header.store);
    for (page, header) in headers.iter().filter(|(_, header)| Some(header.store) == survey.store) {
        let damaged_at = header.damaged_at(&page.page, page.slot);
        for claim in &header.claims {
            let bytes = claim.room.min(page.bytes.saturating_sub(claim.start));
            let Claim { start, generation, .. } = *claim;
            let found = Found { slot: page.slot, start, bytes, generation, damaged_at };
            let place = survey.files.entry(claim.file).or_insert(found);
            if found.generation > place.generation {
                *place = found;
            }
        }
    }
    Ok(survey)
}

impl Survey {
    /// The slots without a manifest, and the number of their bytes.
    pub(crate) fn of_data(&self) -> Vec<(u32, u64)> {
        let manifests = || self.files.iter().filter(|(file, _)| file.kind == FileKind::Manifest);
        let mut slots = self.slots.clone();
        slots.retain(|(slot, _)| manifests().all(|(_, found)| found.slot != *slot));
        slots
    }
}
