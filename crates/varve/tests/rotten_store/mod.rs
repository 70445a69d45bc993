//! A small store to damage, with every part that a store has: tables on several levels, several blocks in each, range
//! tombstones, entries that expire, a manifest with edits behind its snapshot, and two WAL segments. It also records what
//! the store contained at every read point.

use std::collections::BTreeMap;

use varve::check::{Check, CheckReport, CheckStep, SlotPage};
use varve::codec::frame::decrypt_records;
use varve::manifest::inspect_manifest;
use varve::storage::{MemorySlots, SLOT_HEADER_BYTES, SlotHeader, SlotPool, Slots};
use varve::types::FileName;
use varve::wal::{SEGMENT_HEADER_BYTES, SegmentHeader, scan_segment};
use varve::{Durability, Encryption, Host, Keyring, Op, Options, Store};

pub type Keys = BTreeMap<Vec<u8>, Vec<u8>>;
pub type SimpleStore = Store<SlotPool<MemorySlots>>;

pub const SLOTS: u32 = 24;

/// Small enough for many blocks and tables within some kilobytes.
pub fn options() -> Options {
    Options {
        memory_bytes: 64 << 10,
        memtable_bytes_min: 2500,
        memtable_bytes_max: 2500,
        block_bytes: 256,
        restart_interval: 4,
        table_bytes: 1500,
        l0_trigger: 3,
        ..Options::default()
    }
}

pub fn open(slots: MemorySlots) -> varve::Result<SimpleStore> {
    open_under(slots, &Encryption::none())
}

pub fn open_under(slots: MemorySlots, encryption: &Encryption) -> varve::Result<SimpleStore> {
    let host = Host { now_ms: 1000, entropy: 5, store_id: [9; 16] };
    let options = Options { encryption: encryption.clone(), ..options() };
    Store::open(SlotPool::open(slots)?, options, host).map(|(store, _)| store)
}

/// A store as it lies on the disk.
pub struct Rotten {
    pub slots: MemorySlots,
    #[allow(dead_code, reason = "a test that repairs nothing does not ask")]
    pub encryption: Encryption,
    /// Its contents.
    pub now: Keys,
    /// The sequence of the value of each key.
    #[allow(dead_code, reason = "a test that repairs nothing does not ask")]
    pub sequences: BTreeMap<Vec<u8>, u64>,
    /// Every value that a key ever had.
    #[allow(dead_code, reason = "a test that repairs nothing does not ask")]
    pub ever: BTreeMap<Vec<u8>, Vec<Vec<u8>>>,
}

pub fn build() -> Rotten {
    build_under(Encryption::none())
}

pub fn build_under(encryption: Encryption) -> Rotten {
    let mut store = open_under(MemorySlots::new(SLOTS), &encryption).expect("opens");
    let (mut now, mut ever) = (Keys::new(), BTreeMap::<_, Vec<_>>::new());
    for round in 0..4u32 {
        for number in (0..80u32).filter(|number| number % (round + 1) == 0) {
            let key = format!("key {number:03}").into_bytes();
            let dots = ".".repeat((number % 17) as usize);
            let value = format!("value {number:03} of round {round}, {dots}").into_bytes();
            if (number + round) % 9 == 3 {
                store.delete(&key).expect("staged");
                now.remove(&key);
            } else {
                let expires = (number % 10 == 0).then_some(u64::from(1 << 30 | number));
                store.stage(&[Op::Set { key: &key, value: &value, expires }]).expect("staged");
                ever.entry(key.clone()).or_default().push(value.clone());
                now.insert(key, value);
            }
            store.commit(Durability::Relaxed).expect("committed");
            while store.run_slice(1000).expect("a job") {}
        }
        let (start, end) = (format!("key {:03}", 10 + round).into_bytes(), b"key 016".to_vec());
        store.delete_range(&start, &end).expect("staged");
        now.retain(|key, _| *key < start || *key >= end);
        store.commit(Durability::Relaxed).expect("committed");
        if round == 1 {
            store.close().expect("closed");
            store = open_under(store.into_storage().into_device(), &encryption).expect("opens");
        }
    }
    store.delete_range(b"key 050", b"key 053").expect("staged");
    now.retain(|key, _| key.as_slice() < &b"key 050"[..] || key.as_slice() >= &b"key 053"[..]);
    store.commit(Durability::Relaxed).expect("committed");
    store.flush().expect("flushed");
    for number in [3u32, 7, 51, 70] {
        let (key, value) =
            (format!("key {number:03}").into_bytes(), format!("late value {number}").into_bytes());
        store.set(&key, &value).expect("staged");
        ever.entry(key.clone()).or_default().push(value.clone());
        now.insert(key, value);
    }
    store.commit(Durability::Relaxed).expect("committed");
    store.freeze_active().expect("frozen");
    for number in 30..36u32 {
        let (key, value) =
            (format!("key {number:03}").into_bytes(), format!("last value {number}").into_bytes());
        store.set(&key, &value).expect("staged");
        ever.entry(key.clone()).or_default().push(value.clone());
        now.insert(key, value);
        store.commit(Durability::Strict).expect("committed");
    }
    let stats = store.stats();
    assert!(
        stats.levels[0].tables > 0 && stats.levels.last().is_some_and(|level| level.tables > 1),
        "{stats:?}"
    );
    assert!(stats.wal_segments > 1, "{stats:?}");
    let sequence =
        |key: &Vec<u8>| store.find(key, |entry| entry.map_or(0, |entry| entry.sequence)).expect("read");
    let sequences = now.keys().map(|key| (key.clone(), sequence(key))).collect();
    store.close().expect("closed");
    Rotten { sequences, encryption, slots: store.into_storage().into_device(), now, ever }
}

/// Verifies slots: every record of the log was written.
pub fn check(slots: &MemorySlots, encryption: &Encryption) -> CheckReport {
    check_to(slots, encryption, None)
}

/// Verifies slots. `log_end` is that of [`Check::new`].
pub fn check_to(slots: &MemorySlots, encryption: &Encryption, log_end: Option<u64>) -> CheckReport {
    try_check(slots, encryption, log_end).expect("of this format")
}

/// The same for slots that may have files of a newer format.
pub fn try_check(
    slots: &MemorySlots,
    encryption: &Encryption,
    log_end: Option<u64>,
) -> varve::Result<CheckReport> {
    let page = |slot| SlotPage {
        slot,
        bytes: slots.size(slot),
        page: slots.slot(slot).iter().take(SLOT_HEADER_BYTES as usize).copied().collect(),
    };
    let pages: Vec<_> = (0..slots.count()).map(page).collect();
    let mut check = Check::new(&pages, log_end, &encryption.keyring)?.of_closed_store();
    let mut last = 0;
    loop {
        let (done, total) = check.progress();
        assert!(last <= done && done <= total, "{last} {done} {total}");
        last = done;
        match check.step()? {
            CheckStep::Working => {}
            CheckStep::Need { slot, offset, len } => {
                let bytes = slots.slot(slot).get(offset as usize..).unwrap_or_default();
                check.feed(bytes[..bytes.len().min(len as usize)].to_vec());
            }
            CheckStep::Done => break,
        }
    }
    let (done, total) = check.progress();
    assert_eq!(done, total);
    Ok(check.report().clone())
}

/// Which slot contains which file, and from which offset on, as far as its page shows.
pub fn holder(slots: &MemorySlots, file: FileName) -> Option<(u32, u64)> {
    let claims = (0..slots.count()).flat_map(|slot| {
        let header = SlotHeader::decode(slots.slot(slot), slot).ok().flatten();
        header.into_iter().flat_map(|header| header.claims).map(move |claim| (slot, claim))
    });
    let newest = claims.filter(|(_, claim)| claim.file == file).max_by_key(|(_, claim)| claim.generation);
    newest.map(|(slot, claim)| (slot, claim.start))
}

/// A file that is in use.
#[derive(Debug, Clone, Copy)]
pub struct Live {
    /// The slot that contains it.
    pub slot: u32,
    /// Its first byte, from the start of the slot.
    pub start: u64,
    /// How many of its bytes are in use.
    pub bytes: u64,
}

/// The files that are in use.
pub fn live(slots: &MemorySlots, keyring: &Keyring) -> BTreeMap<FileName, Live> {
    let mut live = BTreeMap::new();
    let file_of = |(slot, start): (u32, u64)| slots.slot(slot).get(start as usize..).unwrap_or_default();
    let mut add = |file, (slot, start), bytes| {
        live.insert(file, Live { slot, start, bytes });
    };
    let manifests = [0, 1].map(FileName::manifest).into_iter().filter_map(|file| {
        let place = holder(slots, file)?;
        Some((file, place, inspect_manifest(keyring, &mut file_of(place).to_vec()).ok()??))
    });
    let newest = manifests.max_by_key(|(_, _, found)| found.header.rotation).expect("a manifest");
    add(newest.0, newest.1, newest.2.end);
    let version = newest.2.version.expect("a version");
    for (_, table) in version.tables() {
        let file = FileName::table(table.id);
        add(file, holder(slots, file).expect("a slot"), table.size);
    }
    for id in version.floors.log_floor + 1..version.floors.next_segment + 9 {
        let file = FileName::wal(id);
        let Some(place) = holder(slots, file) else { continue };
        let mut bytes = file_of(place).to_vec();
        let Ok(header) = SegmentHeader::decode(&bytes) else { continue };
        let (at, keyring) = (SEGMENT_HEADER_BYTES, keyring.of_store([9; 16]));
        decrypt_records(&keyring, header.key, file, at as u64, header.salt, &mut bytes[at..]).expect("sound");
        let scan = scan_segment(&bytes, &header, None, file).expect("sound");
        add(file, place, scan.end as u64);
    }
    live
}
