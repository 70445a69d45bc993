//! Readers in other threads: each sees the committed writes of its read point, whatever the store does meanwhile.
#![cfg(unix)]

use std::collections::{BTreeMap, VecDeque};
use std::ops::Bound;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};

use varve::scan::{Batch, Progress, ScanOptions};
use varve::storage::{FileSlots, SlotPool, Storage};
use varve::store::{LocalReader, Reader};
use varve::types::FileKind;
use varve::{Durability, Error, Host, Options, Store};

type FileStore = Store<SlotPool<FileSlots>>;
type Model = BTreeMap<Vec<u8>, Vec<u8>>;

const KEYS: u64 = 600;

/// A folder that is removed in the end.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        Self(std::env::temp_dir().join(format!("varve-readers-{name}-{}", std::process::id())))
    }

    fn open(&self) -> FileStore {
        let options = Options {
            memtable_bytes_min: 16 << 10,
            memtable_bytes_max: 16 << 10,
            history_bytes: Some(0),
            ..Options::default()
        };
        let host = Host { now_ms: 1000, entropy: 4, store_id: [9; 16] };
        let pool = SlotPool::open(FileSlots::open(&self.0).expect("no other opener")).expect("a pool opens");
        Store::open(pool, options, host).expect("a store opens").0
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

struct Rng(u64);

impl Rng {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % end
    }

    fn key(&mut self) -> Vec<u8> {
        format!("key-{:03}", self.below(KEYS)).into_bytes()
    }
}

/// Runs what is due, with as many files as it needs.
fn look_after(store: &mut FileStore) {
    loop {
        let wanted = store.storage().wanted_slots();
        store.storage_mut().device_mut().add(wanted).expect("files are made");
        store.storage_mut().added().expect("added");
        if !store.run_slice(1000).expect("a job runs") {
            return;
        }
    }
}

/// Stages a random write, also in the model.
fn write(store: &mut FileStore, model: &mut Model, rng: &mut Rng) {
    let key = rng.key();
    match rng.below(20) {
        0..12 => {
            let value = vec![rng.below(256) as u8; 20 + rng.below(300) as usize];
            store.set(&key, &value).expect("staged");
            model.insert(key, value);
        }
        12..19 => {
            store.delete(&key).expect("staged");
            model.remove(&key);
        }
        _ => {
            let end = [key.as_slice(), b"~"].concat();
            let start = format!("key-{:03}", rng.below(KEYS)).into_bytes().min(end.clone());
            store.delete_range(&start, &end).expect("staged");
            model.retain(|key, _| *key < start || *key >= end);
        }
    }
}

/// All entries of a scan, in batches of a few.
fn scan(reader: &LocalReader, options: ScanOptions) -> Vec<(Vec<u8>, Vec<u8>)> {
    let (mut cursor, mut batch, mut found) = (reader.scan(options), Batch::new(true, true), Vec::new());
    loop {
        let progress = reader.scan_next(&mut cursor, 1000, &mut batch).expect("a scan reads");
        found.extend(batch.entries().map(|(key, value)| (key.to_vec(), value.to_vec())));
        if progress == Progress::Finished {
            return found;
        }
        batch.reset(true, true);
    }
}

/// Compares a reader with the model of its read point.
fn compare(reader: &LocalReader, model: &Model, rng: &mut Rng) {
    let keys: Vec<_> = (0..50).map(|_| rng.key()).collect();
    let wanted: Vec<_> = keys.iter().map(|key| model.get(key).cloned()).collect();
    assert_eq!(reader.get_many(&keys).expect("a reader reads"), wanted);
    let (mut lower, mut upper) = (rng.key(), rng.key());
    if lower > upper {
        std::mem::swap(&mut lower, &mut upper);
    }
    let range = model.range((Bound::Included(lower.clone()), Bound::Excluded(upper.clone())));
    let mut wanted: Vec<_> = range.map(|(key, value)| (key.clone(), value.clone())).collect();
    let mut options = ScanOptions { lower, upper: Some(upper), ..ScanOptions::default() };
    assert_eq!(scan(reader, options.clone()), wanted);
    options.reverse = true;
    wanted.reverse();
    assert_eq!(scan(reader, options), wanted);
}

/// A thread with one open reader, which it renews; it goes back to some of the former read points.
fn read_all(inbox: &Receiver<(Reader, Arc<Model>)>, seed: u64) -> u64 {
    let mut rng = Rng(seed);
    let mut known: VecDeque<(Reader, Arc<Model>)> = VecDeque::new();
    // So little that blocks and open tables are evicted.
    let mut local: Option<LocalReader> = None;
    let mut compared = 0;
    for given in inbox {
        known.push_back(given);
        if known.len() > 6 {
            known.remove(rng.below(6) as usize);
        }
        for _ in 0..3 {
            let (reader, model) = &known[rng.below(known.len() as u64) as usize];
            let local = local.get_or_insert_with(|| reader.open(40 << 10));
            local.renew(reader);
            compare(local, model, &mut rng);
            compared += 1;
        }
    }
    compared
}

#[test]
fn readers_in_threads_see_their_moment_beside_writes_flushes_and_merges() {
    let folder = Folder::new("moment");
    let mut store = folder.open();
    let (mut rng, mut model) = (Rng(11), Model::new());
    std::thread::scope(|scope| {
        let mut outboxes = Vec::new();
        let mut threads = Vec::new();
        for seed in 0..3 {
            let (outbox, inbox) = channel();
            outboxes.push(outbox);
            threads.push(scope.spawn(move || read_all(&inbox, seed)));
        }
        for step in 0..6000_u64 {
            write(&mut store, &mut model, &mut rng);
            if rng.below(4) > 0 {
                continue;
            }
            store.commit(Durability::Relaxed).expect("committed");
            if rng.below(4) == 0 {
                let committed = Arc::new(model.clone());
                // These are not committed, and dropped or committed later.
                let mut staged = model.clone();
                write(&mut store, &mut staged, &mut rng);
                outboxes[step as usize % 3]
                    .send((store.reader().expect("a reader"), committed))
                    .expect("sent");
                if rng.below(2) == 0 {
                    store.discard_staged();
                } else {
                    model = staged;
                }
            }
            match rng.below(200) {
                0 => store.ask_for_compaction().expect("asked"),
                1 => store.shrink(0).expect("shrunk"),
                _ => {}
            }
            look_after(&mut store);
        }
        drop(outboxes);
        let compared: u64 =
            threads.into_iter().map(|thread| thread.join().expect("a thread ends well")).sum();
        assert!(compared > 1000, "{compared}");
    });
    let stats = store.stats();
    assert!(stats.flushes > 20 && stats.compactions > 5, "{} {}", stats.flushes, stats.compactions);
}

/// Table files, those that wait for their deletion included.
fn tables(store: &FileStore) -> usize {
    store.storage().list().iter().filter(|(file, _)| file.kind == FileKind::Table).count()
}

/// Writes every key, and merges the tables until those from before are not needed.
fn rewrite(store: &mut FileStore, byte: u8) {
    for number in 0..KEYS as u32 {
        store.set(&number.to_be_bytes(), &[byte; 200]).expect("staged");
        store.commit(Durability::Relaxed).expect("committed");
    }
    store.ask_for_compaction().expect("asked");
    look_after(store);
    store.release().expect("released");
    look_after(store);
}

#[test]
fn a_reader_keeps_its_files_until_its_last_clone_is_dropped() {
    let folder = Folder::new("files");
    let mut store = folder.open();
    rewrite(&mut store, 1);
    let alone = tables(&store);
    let reader = store.reader().expect("a reader");
    rewrite(&mut store, 2);
    assert!(tables(&store) > alone, "the tables of the reader are gone");
    let clone = reader.clone();
    drop(reader);
    rewrite(&mut store, 3);
    let thread = std::thread::spawn(move || {
        let local = clone.open(1 << 20);
        (0..KEYS as u32).all(|number| local.get(&number.to_be_bytes()) == Ok(Some(vec![1; 200])))
    });
    assert!(thread.join().expect("a thread ends well"));
    store.release().expect("released");
    assert_eq!(tables(&store), alone);
}

#[test]
fn a_reader_outlives_its_store_and_keeps_its_folder_locked() {
    let folder = Folder::new("outlives");
    let mut store = folder.open();
    for number in 0..KEYS as u32 {
        store.set(&number.to_be_bytes(), &[7; 200]).expect("staged");
    }
    store.commit(Durability::Strict).expect("committed");
    look_after(&mut store);
    let reader = store.reader().expect("a reader");
    store.delete_range(&[0; 4], &[9; 4]).expect("staged");
    store.close().expect("closed");
    assert_eq!(store.reader().map(|_| ()), Err(Error::Closed));
    drop(store);
    assert!(FileSlots::open(&folder.0).is_err(), "the reader's files could change");
    let local = reader.open(1 << 20);
    drop(reader);
    assert_eq!(local.get(&5_u32.to_be_bytes()), Ok(Some(vec![7; 200])));
    assert_eq!(scan(&local, ScanOptions { reverse: true, ..ScanOptions::default() }).len(), KEYS as usize);
    drop(local);
    assert_eq!(folder.open().get(&5_u32.to_be_bytes()), Ok(None));
}

#[test]
fn readers_end_when_the_storage_is_taken_out_of_their_store() {
    let folder = Folder::new("taken");
    let mut store = folder.open();
    rewrite(&mut store, 1);
    let reader = store.reader().expect("a reader");
    let mut local = reader.open(1 << 20);
    let mut cursor = local.scan(ScanOptions::default());
    let mut batch = Batch::new(true, true);
    assert_eq!(local.scan_next(&mut cursor, 1000, &mut batch), Ok(Progress::More));
    let host = Host { now_ms: 1000, entropy: 5, store_id: [9; 16] };
    let mut store = Store::open(store.into_storage(), Options::default(), host).expect("it opens").0;
    // The tables of the readers are overwritten.
    rewrite(&mut store, 2);
    rewrite(&mut store, 3);
    assert_eq!(local.scan_next(&mut cursor, 1000, &mut batch), Err(Error::Closed));
    for number in 0..KEYS as u32 {
        assert_eq!(local.get(&number.to_be_bytes()), Err(Error::Closed));
        assert_eq!(reader.open(1 << 20).get(&number.to_be_bytes()), Err(Error::Closed));
    }
    local.renew(&store.reader().expect("a reader"));
    assert_eq!(local.get(&5_u32.to_be_bytes()), Ok(Some(vec![3; 200])));
}

#[test]
fn a_scan_ends_where_its_reader_is_renewed() {
    let folder = Folder::new("renewed");
    let mut store = folder.open();
    store.set(b"silt", b"fine").expect("staged");
    store.commit(Durability::Relaxed).expect("committed");
    let mut local = store.reader().expect("a reader").open(1 << 20);
    let mut cursor = local.scan(ScanOptions::default());
    local.renew(&store.reader().expect("a reader"));
    let progress = local.scan_next(&mut cursor, 1000, &mut Batch::new(true, true));
    assert!(matches!(progress, Err(Error::InvalidArgument(_))), "{progress:?}");
    assert_eq!(scan(&local, ScanOptions::default()), [(b"silt".to_vec(), b"fine".to_vec())]);
}
