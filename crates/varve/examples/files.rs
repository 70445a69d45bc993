//! A store in files: `cargo run --example files -- FOLDER` counts its visits in it, and shows the last ones.

use std::error::Error;
use std::hash::{BuildHasher, RandomState};
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use varve::scan::{Batch, Progress, ScanOptions};
use varve::storage::{FileSlots, SlotPool};
use varve::{Durability, Host, Options, Store};

type FileStore = Store<SlotPool<FileSlots>>;

/// Bytes of one step of a scan.
const SCAN_BYTES: usize = 64 << 10;
/// Entries of one step of a flush or a compaction.
const SLICE_ENTRIES: usize = 4096;

fn main() -> Result<(), Box<dyn Error>> {
    let folder = std::env::args().nth(1).ok_or("Name the folder of the store.")?;
    let mut store = open(Path::new(&folder))?;
    let visits = count(&store)?;
    // Keys are bytes, and their order is the order of the store: numbers are written with the highest byte first.
    let key = [b"visit".as_slice(), &visits.to_be_bytes()].concat();
    store.set(&key, &store.now_ms().to_le_bytes())?;
    store.commit(Durability::Strict)?;
    look_after(&mut store)?;

    println!("Visits: {}. The last ones, in milliseconds since 1970:", count(&store)?);
    let last =
        ScanOptions { lower: b"visit".to_vec(), reverse: true, limit: Some(3), ..ScanOptions::default() };
    scan(&store, last, |_, value| println!("{}", value.try_into().map_or(0, u64::from_le_bytes)))?;
    store.close()?;
    Ok(())
}

/// Opens the store of a folder, or makes it. The engine has no clock and no randomness: a program gives it both.
fn open(folder: &Path) -> Result<FileStore, Box<dyn Error>> {
    let random = || RandomState::new().hash_one(());
    let now_ms = SystemTime::now().duration_since(UNIX_EPOCH)?.as_millis() as u64;
    let store_id = (u128::from(random()) << 64 | u128::from(random())).to_le_bytes();
    let host = Host { now_ms, entropy: random(), store_id };
    let slots = SlotPool::open(FileSlots::open(folder)?)?;
    let (mut store, recovery) = Store::open(slots, Options::default(), host)?;
    println!("New: {}. Closed last time: {}.", recovery.new, recovery.clean);
    look_after(&mut store)?;
    Ok(store)
}

/// Adds files where few are spare, and does the flushes and compactions that are due. Call this after writes.
fn look_after(store: &mut FileStore) -> Result<(), Box<dyn Error>> {
    loop {
        let wanted = store.storage().wanted_slots();
        if wanted > 0 {
            store.storage_mut().device_mut().add(wanted)?;
            store.storage_mut().added()?;
        }
        if !store.run_slice(SLICE_ENTRIES)? {
            return Ok(());
        }
    }
}

fn count(store: &FileStore) -> Result<u64, varve::Error> {
    let mut found = 0;
    scan(store, ScanOptions::default(), |_, _| found += 1)?;
    Ok(found)
}

/// Calls `each` with the entries of a range.
fn scan(
    store: &FileStore,
    options: ScanOptions,
    mut each: impl FnMut(&[u8], &[u8]),
) -> Result<(), varve::Error> {
    let mut cursor = store.scan(options)?;
    let mut batch = Batch::new(true, true);
    loop {
        let progress = store.scan_next(&mut cursor, SCAN_BYTES, &mut batch)?;
        batch.entries().for_each(|(key, value)| each(key, value));
        if progress == Progress::Finished {
            return Ok(());
        }
        batch.reset(true, true);
    }
}
