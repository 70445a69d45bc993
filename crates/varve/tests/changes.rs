//! The change feed: the changes that it returns, how far back it goes, and how it reports that history was cut.

use varve::storage::{MemorySlots, SlotPool, Storage};
use varve::store::{ChangesFound, ChangesWanted};
use varve::types::{FileKind, FileName, Kind, StoreId};
use varve::{Durability, Error, Host, Op, Options, Result, Store};

type MemoryStore = Store<SlotPool<MemorySlots>>;
type Reported = (u64, Kind, Vec<u8>, Vec<u8>, Option<u64>);

const EVERYTHING: ChangesWanted<'_> =
    ChangesWanted { since: 0, bytes_max: 1 << 20, start: b"", end: b"\xff" };

fn options(history_bytes: Option<u64>) -> Options {
    Options { memtable_bytes_min: 4 << 10, memtable_bytes_max: 4 << 10, history_bytes, ..Options::default() }
}

fn open<S: Storage>(storage: S, options: &Options) -> Store<S> {
    let host = Host { now_ms: 1000, entropy: 11, store_id: [5; 16] };
    Store::open(storage, options.clone(), host).unwrap().0
}

fn new_store(options: &Options) -> MemoryStore {
    open(SlotPool::open(MemorySlots::new(64)).unwrap(), options)
}

fn ask<S: Storage>(store: &mut Store<S>, wanted: ChangesWanted<'_>) -> Result<(ChangesFound, Vec<Reported>)> {
    let mut reported = Vec::new();
    let found = store.changes(&wanted, &mut |sequence, entry| {
        reported.push((sequence, entry.kind, entry.key.to_vec(), entry.value.to_vec(), entry.expires));
    })?;
    Ok((found, reported))
}

fn changes<S: Storage>(store: &mut Store<S>, wanted: ChangesWanted<'_>) -> (ChangesFound, Vec<Reported>) {
    ask(store, wanted).unwrap()
}

/// Everything behind `since`, in as many calls as it takes.
fn all_since<S: Storage>(store: &mut Store<S>, mut since: u64, bytes_max: usize) -> Vec<Reported> {
    let mut all = Vec::new();
    loop {
        let (found, reported) = changes(store, ChangesWanted { since, bytes_max, ..EVERYTHING });
        assert!(found.floor <= since, "history begins at {}, after {since}", found.floor);
        if found.through == since {
            return all;
        }
        assert!(reported.iter().all(|reported| reported.0 > since && reported.0 <= found.through));
        all.extend(reported);
        since = found.through;
    }
}

/// Writes numbered values, each committed by itself, and returns the changes that the feed has to return for them.
fn fill<S: Storage>(store: &mut Store<S>, numbers: std::ops::Range<u32>) -> Vec<Reported> {
    let write = |number: u32| {
        let key = format!("k{:03}", number % 50).into_bytes();
        let value = vec![number as u8; 100];
        let sequence = store.set(&key, &value).unwrap();
        store.commit(Durability::Relaxed).unwrap();
        (sequence, Kind::Set, key, value, None)
    };
    numbers.map(write).collect()
}

#[test]
fn every_kind_of_change_is_reported_in_order_and_a_batch_whole() {
    let mut store = new_store(&options(None));
    let batch = [
        Op::Set { key: b"a", value: b"1", expires: Some(77_000) },
        Op::Delete { key: b"b" },
        Op::DeleteRange { start: b"c", end: b"f" },
        Op::Set { key: b"\xffown", value: b"reserved", expires: None },
    ];
    store.stage(&batch).unwrap();
    store.commit(Durability::Relaxed).unwrap();
    store.set(b"z", b"2").unwrap();
    store.commit(Durability::Relaxed).unwrap();
    let first = vec![
        (1, Kind::Set, b"a".to_vec(), b"1".to_vec(), Some(77_000)),
        (2, Kind::Delete, b"b".to_vec(), Vec::new(), None),
        (3, Kind::RangeDelete, b"c".to_vec(), b"f".to_vec(), None),
    ];
    let (found, reported) = changes(&mut store, ChangesWanted { bytes_max: 1, ..EVERYTHING });
    assert_eq!((found, reported), (ChangesFound { through: 4, floor: 0 }, first.clone()));
    let z = vec![(5, Kind::Set, b"z".to_vec(), b"2".to_vec(), None)];
    assert_eq!(changes(&mut store, ChangesWanted { since: 4, ..EVERYTHING }).1, z);
    assert_eq!(changes(&mut store, ChangesWanted { since: 1, ..EVERYTHING }).1[..2], first[1..]);
    // A deleted range is reported where it touches the requested keys, and nowhere else.
    for (start, end, count) in [("d", "e", 1), ("a", "c", 2), ("f", "g", 0), ("e", "\u{7f}", 2)] {
        let wanted = ChangesWanted { start: start.as_bytes(), end: end.as_bytes(), ..EVERYTHING };
        assert_eq!(changes(&mut store, wanted).1.len(), count, "{start} to {end}");
    }
}

#[test]
fn only_what_is_acknowledged_is_reported() {
    let mut store = new_store(&options(None));
    store.set(b"a", b"1").unwrap();
    assert_eq!(changes(&mut store, EVERYTHING), (ChangesFound { through: 0, floor: 0 }, Vec::new()));
    store.commit(Durability::Memory).unwrap();
    assert_eq!(changes(&mut store, ChangesWanted { since: u64::MAX, ..EVERYTHING }).0.through, 1);
    assert_eq!(changes(&mut store, EVERYTHING).1.len(), 1);
    // Reported changes are in the log: they are there after the process died.
    let slots = store.into_storage().into_device();
    let mut store = open(SlotPool::open(slots).unwrap(), &options(None));
    assert_eq!(store.get(b"a").unwrap(), Some(b"1".to_vec()));
    assert_eq!(changes(&mut store, EVERYTHING).1.len(), 1);
}

#[test]
fn history_outlives_flushes_and_openings_as_far_as_its_bytes_reach() {
    let options = options(Some(20 << 10));
    let mut store = new_store(&options);
    let mut written = fill(&mut store, 0..600);
    for round in 0..3 {
        store.flush().unwrap();
        let (found, reported) = changes(&mut store, EVERYTHING);
        assert!(found.floor > 0 && reported.is_empty() && found.through == 0, "round {round}: {found:?}");
        for bytes_max in [1, 900, 1 << 20] {
            let reported = all_since(&mut store, found.floor, bytes_max);
            assert_eq!(reported, written[found.floor as usize..], "round {round}");
        }
        let kept: usize = written[found.floor as usize..].iter().map(|reported| 64 + reported.3.len()).sum();
        assert!((10 << 10..24 << 10).contains(&kept), "round {round}: {kept} bytes are kept");
        store.shrink(0).unwrap();
        store.close().unwrap();
        let slots = store.into_storage().into_device();
        store = open(SlotPool::open(slots).unwrap(), &options);
        written.extend(fill(&mut store, 600 + round * 7..607 + round * 7));
    }
}

#[test]
fn a_store_without_history_has_what_is_in_memtables() {
    let mut store = new_store(&options(Some(0)));
    fill(&mut store, 0..20);
    assert_eq!(all_since(&mut store, 0, 1).len(), 20);
    store.flush().unwrap();
    let (found, reported) = changes(&mut store, EVERYTHING);
    assert_eq!((found, reported.len()), (ChangesFound { through: 0, floor: 20 }, 0));
    store.release().unwrap();
    assert!(store.storage().list().iter().all(|(file, _)| file.kind != FileKind::Wal));
}

#[test]
fn without_an_option_the_last_segment_is_kept_for_who_has_asked() {
    let mut store = new_store(&options(None));
    fill(&mut store, 0..20);
    store.flush().unwrap();
    assert_eq!(changes(&mut store, EVERYTHING).0.floor, 20);
    let written = fill(&mut store, 20..40);
    store.flush().unwrap();
    assert_eq!(all_since(&mut store, 20, 1), written);
}

#[test]
fn a_damaged_segment_cuts_the_history_and_harms_nothing_else() {
    let options = options(Some(1 << 20));
    for victim in 0..3 {
        let mut store = new_store(&options);
        let written = fill(&mut store, 0..120);
        store.flush().unwrap();
        store.close().unwrap();
        let mut storage = store.into_storage();
        let mut kept: Vec<_> =
            storage.list().into_iter().filter(|(file, _)| file.kind == FileKind::Wal).collect();
        kept.sort_unstable();
        assert!(kept.len() >= 3, "{} segments", kept.len());
        let file = kept[victim].0;
        storage.write(file, 2000, b"not what was there").unwrap();
        let mut store = open(SlotPool::open(storage.into_device()).unwrap(), &options);
        assert_eq!(store.get(b"k000").unwrap(), Some(vec![100; 100]));
        let (found, reported) = changes(&mut store, EVERYTHING);
        assert!(found.floor > 0 && reported.is_empty(), "segment {victim}: {found:?}");
        assert_eq!(all_since(&mut store, found.floor, 1), written[found.floor as usize..]);
    }
}

#[test]
fn a_reader_that_has_seen_more_than_there_is_is_reported() {
    let mut store = new_store(&options(None));
    fill(&mut store, 0..3);
    let (found, reported) = changes(&mut store, ChangesWanted { since: 9, ..EVERYTHING });
    assert_eq!((found.through, reported.len()), (3, 0));
}

#[test]
fn history_makes_room_for_writes() {
    let options = options(Some(1 << 30));
    let slots = MemorySlots::with_limit(64, 6 << 20);
    let mut store = open(SlotPool::open(slots).unwrap(), &options);
    // The same keys again and again: many times the quota, of which little remains.
    for round in 0..400 {
        fill(&mut store, round * 100..(round + 1) * 100);
        if round % 20 == 0 {
            store.compact().unwrap();
        }
    }
    let last = store.acknowledged();
    let (found, _) = changes(&mut store, EVERYTHING);
    assert!(found.floor > 0 && found.floor < last, "{found:?}");
    assert_eq!(all_since(&mut store, found.floor, 1 << 16).len() as u64, last - found.floor);
}

/// How a pool answers reads.
enum Reads {
    AtOnce,
    /// The first read of each place ends with an error: the bytes have to be fetched, or the disk failed. The places that were read are
    /// listed.
    AfterError(Error, Vec<(FileName, u64)>),
}

struct Slow(SlotPool<MemorySlots>, std::cell::RefCell<Reads>);

impl Slow {
    fn over(slots: MemorySlots) -> Self {
        Self(SlotPool::open(slots).unwrap(), Reads::AtOnce.into())
    }
}

impl Storage for Slow {
    fn list(&self) -> Vec<(FileName, u64)> {
        self.0.list()
    }
    fn adopt(&mut self, store: StoreId) {
        self.0.adopt(store);
    }
    fn create(&mut self, file: FileName, bytes_hint: u64) -> Result<()> {
        self.0.create(file, bytes_hint)
    }
    fn read(&self, file: FileName, offset: u64, into: &mut [u8]) -> Result<()> {
        match &mut *self.1.borrow_mut() {
            Reads::AfterError(error, places) if !places.contains(&(file, offset)) => {
                places.push((file, offset));
                Err(error.clone())
            }
            Reads::AtOnce | Reads::AfterError(..) => self.0.read(file, offset, into),
        }
    }
    fn write(&mut self, file: FileName, offset: u64, bytes: &[u8]) -> Result<()> {
        self.0.write(file, offset, bytes)
    }
    fn sync(&mut self, file: FileName) -> Result<()> {
        self.0.sync(file)
    }
    fn delete(&mut self, file: FileName) -> Result<()> {
        self.0.delete(file)
    }
    fn bytes_on_disk(&self) -> u64 {
        self.0.bytes_on_disk()
    }
}

/// Reads everything while the first read of each place ends with `error`; returns how many calls did.
fn read_through(error: &Error) -> u32 {
    let options = options(Some(1 << 20));
    let mut store = new_store(&options);
    let written = fill(&mut store, 0..120);
    store.flush().unwrap();
    store.close().unwrap();
    let mut store = open(Slow::over(store.into_storage().into_device()), &options);
    *store.storage().1.borrow_mut() = Reads::AfterError(error.clone(), Vec::new());
    let (mut failed, mut since, mut all) = (0, 0, Vec::new());
    while all.len() < written.len() {
        match ask(&mut store, ChangesWanted { since, bytes_max: 5000, ..EVERYTHING }) {
            Ok((found, reported)) => {
                assert!(found.through > since && found.floor == 0, "{found:?}");
                since = found.through;
                all.extend(reported);
            }
            Err(found) if found == *error => failed += 1,
            Err(error) => panic!("{error}"),
        }
        assert!(failed < 1000, "the changes never come");
    }
    assert_eq!(all, written);
    failed
}

#[test]
fn a_storage_that_reads_later_is_asked_again() {
    assert!(read_through(&Error::Pending) > 3);
}

/// Over IndexedDB a read that only had to be repeated counted as damage, and the whole history was dropped. Nor is a read that failed a
/// sign of damage: the next one may succeed.
#[test]
fn a_read_that_failed_does_not_cut_the_history() {
    assert!(read_through(&Error::Io("the disk did not answer")) > 3);
}

/// The story: the store did not remember the place of a reader, and more records lay before that place than one call looks at. Such a
/// reader waited at the end, which it had not reached.
#[test]
fn a_call_that_reports_nothing_new_has_reached_the_end() {
    for (log, memtable_bytes_max) in [(true, 8 << 20), (false, 8 << 20), (true, 1 << 20)] {
        let options = Options {
            memtable_bytes_min: memtable_bytes_max,
            memtable_bytes_max,
            history_bytes: Some(16 << 20),
            log,
            ..Options::default()
        };
        let mut store = new_store(&options);
        let value = [7; 40_000];
        for number in 0..100u32 {
            store.set(&number.to_be_bytes(), &value).unwrap();
            store.commit(Durability::Relaxed).unwrap();
        }
        let mut reported = 0;
        // From back to front, so that no earlier place is remembered.
        for since in (0..100).rev() {
            let wanted = ChangesWanted { since, bytes_max: 1, ..EVERYTHING };
            let (found, changes) = changes(&mut store, wanted);
            if found.floor > since {
                break;
            }
            assert!(found.through > since, "nothing behind {since}, of 100");
            assert_eq!(changes[0].0, since + 1);
            reported += 1;
        }
        assert!(reported >= 25, "{reported} of 100 could be reported");
    }
}
