//! Opening: from the manifest to the last acknowledged write.
//!
//! 1. The manifest gives the version; every table it names must be there.
//! 2. From the newest WAL segment, the chain of `previous` leads back to the floor; a missing link is corruption.
//! 3. Each segment becomes a frozen memtable. All but the newest must be whole up to the end that the next segment
//!    names; the newest may be torn and is cut.
//! 4. Bytes that none of these files contains have no segment above the floor, or the page of a slot is damaged (`wal/stray.rs`).
//! 5. A file that nothing refers to is an orphan and is deleted, once the manifest was written anew.
//!
//! Invariant: nothing is appended to an old segment. The next one names the cut, and before its header is written the
//! old one is flushed; so a record that was read once will be read again, and a record that was cut stays cut. For the same reason an
//! opening that ended with `Pending` may simply be repeated: to the next one, it was a process that died.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;

use super::clients::Clients;
use super::clock::Clock;
use super::cursors::Cursors;
use super::files::Obsolete;
use super::history::History;
use super::jobs::Jobs;
use super::log::Log;
use super::snapshot::Snapshots;
use super::{Fresh, Frozen, Store};
use crate::cache::Cache;
use crate::codec::cipher::{Encryption, Keyring};
use crate::codec::hash::xxh3;
use crate::codec::room;
use crate::error::{Error, Result};
use crate::manifest::{Manifest, Version};
use crate::memtable::{IMAGE_BYTES_MAX, Memtable};
use crate::mutant::{self, Mutant};
use crate::options::{Host, Options};
use crate::storage::Storage;
use crate::types::{FileKind, FileName, Sequence};
use crate::view::{View, share};
use crate::wal::{
    Chain, LOST_SEGMENT, Record, SegmentHeader, Tail, decrypt_segment, header_was_lost, lost_segment,
    scan_segment,
};

/// An opening that finds at least this many segments first flushes them to a table.
const SEGMENTS_MAX: usize = 16;

/// The findings and the work of an opening.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct RecoveryReport {
    /// There was no store.
    pub new: bool,
    /// The store was closed properly, or nothing was written since. So no write was in doubt.
    pub clean: bool,
    /// WAL segments read.
    pub segments: u64,
    /// Records replayed from them.
    pub records: u64,
    /// Entries replayed.
    pub entries: u64,
    /// A torn tail was cut off.
    pub torn: bool,
    /// Readable records after the tear that were dropped, so that what remains is a prefix of history.
    pub records_dropped: u64,
    /// Tables of the store.
    pub tables: u64,
    /// Orphaned files that were deleted.
    pub orphans: u64,
    /// Sequence of the last write that survived.
    pub sequence: Sequence,
}

/// A WAL segment found at open.
struct Segment {
    header: SegmentHeader,
    bytes: Vec<u8>,
}

pub(super) fn open<S: Storage>(
    mut storage: S,
    mut options: Options,
    host: Host,
) -> Result<(Store<S>, RecoveryReport)> {
    let salt_seed = xxh3(b"manifest", host.entropy);
    let mut report = RecoveryReport::default();
    let encryption = core::mem::replace(&mut options.encryption, Encryption::none());
    // With memtables of 8 GiB, the write that passed 4 GiB panicked.
    options.memtable_bytes_max = options.memtable_bytes_max.min(IMAGE_BYTES_MAX as usize);
    let (manifest, version) = match Manifest::open(&mut storage, &encryption.keyring, salt_seed)? {
        Some((manifest, version, _)) => (manifest, version),
        None => {
            report.new = true;
            Manifest::create(&mut storage, host.store_id, encryption, salt_seed)?
        }
    };
    let files = storage.list();
    check_tables(&files, &version)?;
    let chain = find_chain(&storage, manifest.keyring(), &files, version.floors.log_floor)?;
    let replay = replay(chain, Clients::of_manifest(&version.clients), &mut report)?;
    if !report.new && !mutant::has(Mutant::StraysIgnored) {
        // Before anything is written or trimmed: that may overwrite what the repair needs.
        check_strays(&storage, manifest.keyring(), &version, &replay.chain)?;
    }
    let mut store = assemble(storage, options, host, manifest, version, replay);
    report.clean = report.new || !report.torn && report.clean;
    report.tables = store.version.tables().count() as u64;
    report.sequence = store.last_sequence;
    report.orphans = store.delete_orphans(&files)?;
    store.trim_tables();
    if report.torn {
        // The cut must hold even if nothing is written in this session.
        match store.ensure_segment(false, 0) {
            Err(Error::StorageFull) => {
                // There is no room for a segment that names the cut. The old segment is flushed, so that the same bytes
                // will be read and cut again.
                store.log.open_previous = true;
                store.sync_log()?;
            }
            named => named?,
        }
    } else if report.records > 0 && !report.clean {
        store.log.open_previous = true;
        store.sync_log()?;
    }
    store.refill_reserve()?;
    if store.segments.len() >= SEGMENTS_MAX {
        // Sessions that were killed before a job ended leave their segments. If there is no room or memory to fold them, they stay in the
        // log.
        let folded = store.fold().and_then(|()| store.release());
        if store.poisoned || folded == Err(Error::Pending) {
            folded?;
        }
    }
    Ok((store, report))
}

fn check_tables(files: &[(FileName, u64)], version: &Version) -> Result<()> {
    for (_, table) in version.tables() {
        let file = FileName::table(table.id);
        match files.iter().find(|(name, _)| *name == file) {
            Some((_, bytes)) if *bytes >= table.size => {}
            Some(_) => {
                return Err(Error::corrupt(file, table.size, "a table is shorter than the manifest says"));
            }
            None => return Err(Error::corrupt(file, 0, "a table of the manifest is missing")),
        }
    }
    Ok(())
}

/// Looks for segments that are in no slot's page.
fn check_strays<S: Storage>(
    storage: &S,
    keyring: &Keyring,
    version: &Version,
    chain: &[(SegmentHeader, u64)],
) -> Result<()> {
    let mut needed = version.files();
    for (header, end) in chain {
        needed.push((FileName::wal(header.segment), *end));
    }
    storage.visit_strays(&needed, &mut |behind, bytes| match lost_segment(
        bytes,
        behind,
        keyring.store(),
        version.floors.log_floor,
        chain,
    ) {
        Some(segment) => Err(Error::corrupt(FileName::wal(segment), 0, LOST_SEGMENT)),
        None => Ok(()),
    })
}

/// The segments that must be replayed, oldest first.
fn find_chain<S: Storage>(
    storage: &S,
    keyring: &Keyring,
    files: &[(FileName, u64)],
    log_floor: u64,
) -> Result<Vec<Segment>> {
    let mut found: Vec<Segment> = Vec::new();
    for (file, bytes) in files.iter().filter(|(file, _)| file.kind == FileKind::Wal && file.id > log_floor) {
        let mut bytes = read_whole(storage, *file, *bytes)?;
        match SegmentHeader::read(&bytes)? {
            Some(header) if header.segment == file.id => {
                decrypt_segment(keyring, &header, &mut bytes)?;
                found.push(Segment { header, bytes });
            }
            _ if header_was_lost(&bytes, file.id, keyring.store()) => {
                return Err(Error::corrupt(*file, 0, "the header of a WAL segment is damaged"));
            }
            // It was claimed and not begun.
            _ => {}
        }
    }
    let mut chain = Vec::new();
    let newest = found.iter().map(|segment| segment.header.segment).max();
    let Some(mut at) = newest else { return Ok(chain) };
    while at > log_floor {
        let Some(index) = found.iter().position(|segment| segment.header.segment == at) else {
            return Err(Error::corrupt(FileName::wal(at), 0, "a WAL segment is missing"));
        };
        let segment = found.swap_remove(index);
        let previous = segment.header.previous;
        if previous >= at {
            return Err(Error::corrupt(
                FileName::wal(at),
                24,
                "a WAL segment names a later one as its previous",
            ));
        }
        chain.push(segment);
        at = previous;
    }
    chain.reverse();
    Ok(chain)
}

fn read_whole<S: Storage>(storage: &S, file: FileName, bytes: u64) -> Result<Vec<u8>> {
    let length =
        usize::try_from(bytes).map_err(|_| Error::corrupt(file, 0, "a file is too large to read"))?;
    let mut image = room::zeros(length)?;
    storage.read(file, 0, &mut image)?;
    Ok(image)
}

/// The result of replay: memtables, and where the next segment continues.
#[derive(Default)]
struct Replay {
    frozen: VecDeque<Frozen>,
    segments: Vec<u64>,
    /// Their headers, and where they end.
    chain: Chain,
    previous: u64,
    previous_end: u64,
    last_sequence: Sequence,
    clients: Clients,
}

fn replay(chain: Vec<Segment>, clients: Clients, report: &mut RecoveryReport) -> Result<Replay> {
    let mut replay = Replay { clients, ..Replay::default() };
    report.clean = true;
    let ends: Vec<u64> = chain.iter().skip(1).map(|next| next.header.previous_end).collect();
    for (at, segment) in chain.into_iter().enumerate() {
        let file = FileName::wal(segment.header.segment);
        let named_end = ends.get(at).copied();
        let scan = scan_segment(&segment.bytes, &segment.header, named_end, file)?;
        if named_end.is_none() {
            report.clean = scan.sealed || scan.records == 0;
            if let Tail::Torn { valid_records_after } = scan.tail {
                report.torn = true;
                report.records_dropped = u64::from(valid_records_after);
            }
        }
        report.segments += 1;
        report.records += u64::from(scan.records);
        if let Some(last) = scan.last_sequence {
            if last <= replay.last_sequence {
                return Err(Error::corrupt(file, 0, "a WAL segment repeats earlier sequences"));
            }
            replay.last_sequence = last;
        }
        replay.segments.push(segment.header.segment);
        replay.previous = segment.header.segment;
        replay.previous_end = scan.end as u64;
        let mut note = |record: &Record<'_>| {
            replay.clients.replay(record.client, record.request, record.first_sequence, record.count);
        };
        replay.chain.push((segment.header, scan.end as u64));
        let memtable = Memtable::replayed(segment.bytes, segment.header, scan.end, file, &mut note)?;
        report.entries += memtable.entries() as u64;
        if !memtable.is_empty() {
            replay.frozen.push_back(Frozen { memtable: share(memtable), segment: segment.header.segment });
        }
    }
    Ok(replay)
}

fn assemble<S: Storage>(
    storage: S,
    options: Options,
    host: Host,
    manifest: Manifest,
    version: Version,
    replay: Replay,
) -> Store<S> {
    let highest = |kind| {
        let ids = storage.list().into_iter().filter(move |(file, _)| file.kind == kind);
        ids.map(|(file, _)| file.id).max().unwrap_or(0)
    };
    let floors = version.floors;
    let next_table = floors.next_table.max(highest(FileKind::Table) + 1);
    let next_segment = floors.next_segment.max(highest(FileKind::Wal) + 1).max(floors.log_floor + 1);
    let last_sequence = floors.last_sequence.max(replay.last_sequence);
    let history = match options.history_bytes {
        Some(0) => History::default(),
        _ => History::found(&storage.list(), floors.history_floor, floors.log_floor),
    };
    let unsynced = (replay.previous > 0).then(|| FileName::wal(replay.previous));
    let nothing = share(Memtable::new(SegmentHeader::default()));
    let mut store = Store {
        cache: RefCell::new(Cache::new(options.cache_bytes(0))),
        memtable_bytes: options.memtable_bytes_min.min(options.memtable_bytes_max),
        view: Rc::new(View { memtables: Vec::new(), levels: Vec::new() }),
        active: nothing,
        frozen: replay.frozen,
        log: Log::fresh(unsynced, false),
        segments: replay.segments,
        gaps: RefCell::default(),
        cursors: Cursors::default(),
        snapshots: Snapshots::default(),
        jobs: Jobs::default(),
        fresh: Fresh { next_table, next_segment, entropy: host.entropy, salts: 0 },
        last_sequence,
        acknowledged: last_sequence,
        recovered: last_sequence,
        clients: replay.clients,
        obsolete: Obsolete::default(),
        history,
        clock: Clock { now_ms: floors.clock_ms, ahead_ms: floors.ahead_ms }.at(host.now_ms),
        wipes: false,
        poisoned: false,
        closed: false,
        counters: super::stats::Counters::default(),
        storage,
        options,
        manifest,
        version,
    };
    store.active = store.new_memtable(replay.previous, replay.previous_end);
    store.wipes = store.has_plain_files();
    store.storage.set_wiping(store.wipes);
    for (header, end) in replay.chain {
        // Nothing is appended to them any more. Behind the end may be writes that were staged (seed 1795891650000689).
        store.storage.trim(FileName::wal(header.segment), end);
    }
    store.refresh_view();
    store
}

impl<S: Storage> Store<S> {
    /// Deletes files that neither the manifest nor the WAL chain refers to, and returns how many there are. If the last edit that was read
    /// is damaged later, recovery needs the files that it dropped (seed 2 of the test of flipped bytes). So the manifest is written anew
    /// before; without room for that, the files wait for the next edit. An edit here would count as one more opening in which the clients
    /// sent nothing, and writes that they repeat later would happen again (seed 1795744118000089 of the takeovers).
    fn delete_orphans(&mut self, files: &[(FileName, u64)]) -> Result<u64> {
        let mut orphans = 0;
        // Nothing will name them any more, and their numbers must not be used again.
        self.version.floors.next_table = self.fresh.next_table;
        self.version.floors.next_segment = self.fresh.next_segment;
        // They may be from before the store was encrypted.
        self.storage.set_wiping(self.manifest.keyring().current() > 0);
        for (file, _) in files {
            let needed = match file.kind {
                FileKind::Manifest => true,
                FileKind::Wal => self.segments.contains(&file.id) || self.history.contains(file.id),
                FileKind::Table => self.version.table(file.id).is_some(),
            };
            if needed {
                continue;
            }
            orphans += 1;
            match self.manifest.take_over(&mut self.storage, &self.version) {
                Err(Error::StorageFull) => self.obsolete.drop_file(*file),
                done => done.and_then(|()| self.storage.delete(*file))?,
            }
        }
        self.storage.set_wiping(self.wipes);
        Ok(orphans)
    }
}
