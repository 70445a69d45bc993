//! Files that are in no slot's page, or where an older page has them: the page of their slot, or its newest half, is damaged.
//!
//! Only segments above the floor and tables of the manifest count, so the newest manifest must be whole. The segments
//! because of which an opening is refused (`wal/stray.rs`) are found here, in all bytes of all slots.
//!
//! Invariant: a place that a page gives is replaced only by one that has more of what was promised to be durable.

use super::files::{Files, Place, read};
use crate::check::Survey;
use crate::error::Result;
use crate::manifest::Version;
use crate::storage::{SLOT_HEADER_BYTES, Slots};
use crate::table::{FOOTER_BYTES, Footer, TableMeta, find_footers};
use crate::types::FileName;
use crate::wal::{SEGMENT_HEADER_BYTES, SegmentHeader, end_of_segment, is_longer, strays};

/// Slots are searched in pieces of so many bytes.
const PIECE_BYTES: u64 = 1 << 20;

/// Adds the files of `version` that no page has, or has at another place.
pub(super) fn adopt_strays<D: Slots>(
    device: &D,
    found: &Survey,
    version: &Version,
    files: &mut Files,
) -> Result<()> {
    let mut missing = Vec::new();
    for (_, table) in version.tables() {
        let place = files.tables.get(&table.id).map(|(place, _)| Place { bytes: table.size, ..*place });
        if let Some(place) = place {
            // The page may give it less room than it has.
            files.tables.insert(table.id, (place, Some(table.clone())));
        }
        if !place.map_or(Ok(false), |place| has_footer(device, files, place, table))? {
            missing.push(table.clone());
        }
    }
    for (slot, size) in found.of_data() {
        if !missing.is_empty() {
            let place =
                Place { slot, start: SLOT_HEADER_BYTES, bytes: size.saturating_sub(SLOT_HEADER_BYTES) };
            let image = read(device, place, 0, place.bytes)?;
            for found in find_footers(&image, files.keyring.store()) {
                let (at, footer) = found?;
                let is_this = |table: &&std::rc::Rc<TableMeta>| {
                    (table.id, table.footer_hash) == (footer.id, footer.footer_hash)
                };
                if let Some(table) = missing.iter().find(is_this) {
                    let place = Place { slot, start: SLOT_HEADER_BYTES + at, bytes: table.size };
                    files.tables.insert(table.id, (place, Some(table.clone())));
                }
            }
        }
        for at in (SLOT_HEADER_BYTES..size).step_by(PIECE_BYTES as usize) {
            let piece =
                read(device, Place { slot, start: at, bytes: PIECE_BYTES }, 0, PIECE_BYTES.min(size - at))?;
            let (store, log_floor) = (*files.keyring.store(), files.floors.log_floor);
            for (inside, header) in strays(&piece, &store).filter(|(_, header)| header.segment > log_floor) {
                adopt_segment(device, (slot, at + inside as u64, size), &header, files)?;
            }
        }
    }
    Ok(())
}

/// Takes this place of a segment if there is no other, or if it promises more than the other has.
fn adopt_segment<D: Slots>(
    device: &D,
    (slot, start, size): (u32, u64, u64),
    header: &SegmentHeader,
    files: &mut Files,
) -> Result<()> {
    let place = Place { slot, start, bytes: size - start };
    let is_more = match files.segments.get(&header.segment) {
        None => true,
        Some(known) => {
            let known = read(device, *known, 0, known.bytes)?;
            let (end, found) = (end_of_segment(&known, header), SegmentHeader::decode(&known));
            let is_empty = found.is_err() && end == SEGMENT_HEADER_BYTES;
            let is_same = found.is_ok_and(|found| found.salt == header.salt) || found.is_err();
            is_empty || is_same && is_longer(&read(device, place, 0, place.bytes)?, header, end)
        }
    };
    if is_more {
        files.segments.insert(header.segment, place);
    }
    Ok(())
}

/// Whether a table lies at this place.
fn has_footer<D: Slots>(device: &D, files: &Files, place: Place, table: &TableMeta) -> Result<bool> {
    let at = table.size.saturating_sub(FOOTER_BYTES as u64);
    let stored = read(device, place, at, FOOTER_BYTES as u64)?;
    let found = Footer::decode(&stored, files.keyring.store(), FileName::table(table.id), at);
    Ok(found.is_ok_and(|(_, hash)| hash == table.footer_hash))
}
