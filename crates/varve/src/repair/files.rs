//! Which files to salvage from.
//!
//! ```text
//! newest manifest reads to its end     its tables with their bounds, segments above its floor
//! it is damaged, or an older one left  every table that is found, with the bounds that are known; segments likewise
//! none                                 every table and segment that is found
//! ```
//!
//! If the page of a slot is damaged, its contents identify the files: the header of a manifest or segment, the footer of a table. They are
//! also looked for where a page may be older than it should be (`strays.rs`).
//!
//! Invariant: keys that a manifest excludes by a table's bounds are not read, however old that manifest is: bounds only get narrower.

use std::collections::BTreeMap;
use std::rc::Rc;

use super::strays::adopt_strays;
use super::{Lost, RepairReport};
use crate::check::{Found, SlotPage, Survey, survey};
use crate::codec::cipher::Keyring;
use crate::error::{Error, Result};
use crate::manifest::{Floors, Inspection, ManifestHeader, Version, inspect_manifest, newest_key_slots};
use crate::storage::{SLOT_HEADER_BYTES, SlotError, Slots};
use crate::table::{TableMeta, find_footers};
use crate::types::{FileKind, FileName, PAGE_BYTES};
use crate::wal::{SegmentHeader, may_have_salt};

/// A file to read.
#[derive(Debug, Clone, Copy)]
pub(super) struct Place {
    pub(super) slot: u32,
    /// Its first byte, from the start of the slot.
    pub(super) start: u64,
    /// Its bytes, at most.
    pub(super) bytes: u64,
}

/// The files to read.
#[derive(Debug)]
pub(super) struct Files {
    pub(super) keyring: Keyring,
    /// The wrapped data keys, as far as a manifest has them.
    pub(super) slots: Vec<u8>,
    pub(super) floors: Floors,
    /// By number; with the entry of the manifest, if there is one.
    pub(super) tables: BTreeMap<u64, (Place, Option<Rc<TableMeta>>)>,
    pub(super) segments: BTreeMap<u64, Place>,
}

/// Reads from a file. Returns fewer bytes than `len` if its slot ends early or fails.
pub(super) fn read<D: Slots>(device: &D, place: Place, offset: u64, len: u64) -> Result<Vec<u8>> {
    let len = usize::try_from(len).map_err(|_| Error::Io("a file is too large to read"))?;
    let mut bytes = vec![0; len];
    let read = match device.read(place.slot, place.start + offset, &mut bytes) {
        Ok(read) => read,
        Err(SlotError::Closed) => return Err(Error::Io("a slot of the damaged store is not open")),
        Err(SlotError::Pending) => return Err(Error::Pending),
        Err(_) => 0,
    };
    bytes.truncate(read);
    Ok(bytes)
}

/// The wrapped data keys of a damaged store, found as a repair finds its manifests. `None` if it is not encrypted, or no manifest is left.
///
/// # Errors
/// [`Error::Version`] when the store has a newer format; `Pending` when bytes are missing.
pub fn key_slots<D: Slots>(device: &D) -> Result<Option<Vec<u8>>> {
    let mut found = survey(&pages(device)?)?;
    adopt_headless(device, &mut found)?;
    let manifests = all(&found).filter(|(file, _)| file.kind == FileKind::Manifest);
    newest_key_slots(manifests.map(|(_, place)| read(device, place, 0, place.bytes)))
}

/// Looks for all files.
///
/// # Errors
/// `Error::Key` when a manifest is encrypted under a key that is not here, `Error::Version` when a newer format wrote a file.
pub(super) fn find<D: Slots>(device: &D, keyring: &Keyring, report: &mut RepairReport) -> Result<Files> {
    let mut found = survey(&pages(device)?)?;
    let headless = adopt_headless(device, &mut found)?;
    let mut files = Files {
        keyring: keyring.of_store(found.store.unwrap_or_default()),
        slots: Vec::new(),
        floors: Floors::default(),
        tables: BTreeMap::new(),
        segments: BTreeMap::new(),
    };
    let (version, is_complete) = judge_manifests(device, &found, &mut files, report)?;
    if let Some(version) = &version {
        files.floors = version.floors;
    }
    for (file, place) in all(&found).chain(headless) {
        match file.kind {
            FileKind::Manifest => {}
            FileKind::Wal if file.id > files.floors.log_floor => {
                files.segments.insert(file.id, place);
            }
            FileKind::Wal => {}
            FileKind::Table => {
                let meta = version.as_ref().and_then(|version| version.table(file.id));
                if meta.is_some() || !is_complete {
                    files.tables.insert(file.id, (place, meta.map(|(_, meta)| meta.clone())));
                }
            }
        }
    }
    if let Some(version) = version.as_ref().filter(|_| is_complete) {
        adopt_strays(device, &found, version, &mut files)?;
    }
    for (_, table) in version.iter().flat_map(Version::tables) {
        if !files.tables.contains_key(&table.id) {
            let what = if is_complete {
                "a table is missing"
            } else {
                "a table is missing; it may have been replaced by others"
            };
            report.lost.push(Lost { offset: 0, bytes: Some(table.size), ..lost_range(table, what) });
        }
    }
    report.may_resurrect = !is_complete;
    Ok(files)
}

/// All of a table's keys.
pub(super) fn lost_range(table: &TableMeta, what: &'static str) -> Lost {
    Lost {
        from: Some(table.min_key.clone()),
        to: Some(table.max_key.clone()),
        sequences: Some((table.min_sequence, table.max_sequence)),
        ..Lost::of(FileName::table(table.id), what)
    }
}

fn pages<D: Slots>(device: &D) -> Result<Vec<SlotPage>> {
    let open = (0..device.count()).filter(|&slot| device.is_open(slot));
    let page = |slot| {
        let mut page = vec![0; SLOT_HEADER_BYTES as usize];
        let read = match device.read(slot, 0, &mut page) {
            Err(SlotError::Pending) => return Err(Error::Pending),
            read => read.unwrap_or(0),
        };
        page.truncate(read);
        Ok(SlotPage { slot, bytes: device.size(slot), page })
    };
    open.map(page).collect()
}

fn all(survey: &Survey) -> impl Iterator<Item = (FileName, Place)> + '_ {
    survey
        .files
        .iter()
        .map(|(file, found)| (*file, Place { slot: found.slot, start: found.start, bytes: found.bytes }))
}

/// Adds the files in slots whose page is damaged, if no other slot has them.
fn adopt_headless<D: Slots>(device: &D, found: &mut Survey) -> Result<Vec<(FileName, Place)>> {
    let mut adopted = Vec::new();
    let mut unknown = Vec::new();
    for &(slot, bytes) in &found.headless {
        let place = Place { slot, start: SLOT_HEADER_BYTES, bytes };
        let image = read(device, place, 0, bytes)?;
        let Some(manifest) = ManifestHeader::read(&image)? else {
            unknown.push((place, image));
            continue;
        };
        found.store.get_or_insert(manifest.store);
        // It does not matter which of the two it was: rotations distinguish them.
        let id = u64::from(found.files.contains_key(&FileName::manifest(0)));
        let is_new = adopted.iter().all(|(file, _)| *file != FileName::manifest(id));
        adopted.push((FileName::manifest(if is_new { id } else { 1 - id }), place));
    }
    let store = found.store.unwrap_or_default();
    for (Place { slot, start, bytes }, image) in unknown {
        let inside = |at: u64, bytes| Place { slot, start: start + at, bytes };
        for at in (0..image.len()).step_by(PAGE_BYTES as usize) {
            if let Some(header) = SegmentHeader::read(&image[at..])?
                && may_have_salt(&store, header.segment, header.salt)
            {
                adopted.push((FileName::wal(header.segment), inside(at as u64, bytes - at as u64)));
            }
        }
        for found in find_footers(&image, &store) {
            let (at, table) = found?;
            adopted.push((FileName::table(table.id), inside(at, table.size)));
        }
    }
    adopted.retain(|(file, _)| !found.files.contains_key(file));
    for &(file, place) in adopted.iter().filter(|(file, _)| file.kind == FileKind::Manifest) {
        let Place { slot, start, bytes } = place;
        found.files.insert(file, Found { slot, start, bytes, generation: 0, damaged_at: None });
    }
    Ok(adopted)
}

/// The version to use, and whether it contains everything that was ever acknowledged.
fn judge_manifests<D: Slots>(
    device: &D,
    found: &Survey,
    files: &mut Files,
    report: &mut RepairReport,
) -> Result<(Option<Version>, bool)> {
    let mut manifests: Vec<(FileName, Inspection)> = Vec::new();
    let mut unreadable = Ok(());
    for (file, place) in all(found).filter(|(file, _)| file.kind == FileKind::Manifest) {
        let mut image = read(device, place, 0, place.bytes)?;
        match inspect_manifest(&files.keyring, &mut image) {
            Ok(inspection) => manifests.extend(inspection.map(|inspection| (file, inspection))),
            Err(Error::Key(what)) => unreadable = Err(Error::Key(what)),
            Err(error) => return Err(error),
        }
    }
    if manifests.is_empty() {
        unreadable?;
    }
    let newest = manifests.iter().max_by_key(|(_, found)| found.header.rotation);
    if let Some((_, newest)) = newest {
        if newest.header.key == 0 && files.keyring.current() > 0 {
            return Err(Error::NOT_ENCRYPTED);
        }
        files.slots.clone_from(&newest.slots);
    }
    let newest_rotation = manifests.iter().map(|(_, found)| found.header.rotation).max();
    let damaged_above = |rotation: u64| {
        let above = manifests.iter().filter(|(_, found)| found.header.rotation > rotation);
        above.filter(|(_, found)| found.damage.is_some()).count() > 0
    };
    let readable = manifests.iter().filter(|(_, found)| found.version.is_some());
    let Some((file, best)) = readable.max_by_key(|(_, found)| found.header.rotation) else {
        let lost =
            Lost::of(FileName::manifest(0), "no manifest can be read: every table that was found was read");
        report.lost.push(Lost { is_data: false, ..lost });
        return Ok((None, false));
    };
    let is_newest = newest_rotation == Some(best.header.rotation) || !damaged_above(best.header.rotation);
    let is_complete = best.damage.is_none() && best.successor.is_none() && is_newest;
    if !is_complete {
        let (file, offset) = match best.damage {
            Some((offset, _)) => (*file, offset),
            None => (FileName::manifest(1 - file.id), 0),
        };
        let what = "the newest manifest is damaged: every table that was found was read";
        report.lost.push(Lost { offset, is_data: false, ..Lost::of(file, what) });
    }
    Ok((best.version.clone(), is_complete))
}
