//! A store in real files: it is read back after more writes than fit its first slots, and only one opener has it.
#![cfg(unix)]

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use varve::storage::{FileSlots, SlotError, SlotPool, Slots};
use varve::{Durability, Host, Options, Store};

/// A folder that is removed in the end.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        Self(std::env::temp_dir().join(format!("varve-{name}-{}", std::process::id())))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn open(folder: &Path) -> Store<SlotPool<FileSlots>> {
    let options =
        Options { memtable_bytes_min: 16 << 10, memtable_bytes_max: 16 << 10, ..Options::default() };
    let host = Host { now_ms: 1000, entropy: 4, store_id: [9; 16] };
    let pool = SlotPool::open(FileSlots::open(folder).expect("no other opener")).expect("a pool opens");
    Store::open(pool, options, host).expect("a store opens").0
}

#[test]
fn a_store_is_read_back_from_files_that_were_added_while_it_grew() {
    let folder = Folder::new("grown");
    let mut store = open(&folder.0);
    for number in 0..4000_u32 {
        store.set(&number.to_be_bytes(), &[number as u8; 100]).expect("staged");
        store.commit(Durability::Relaxed).expect("committed");
        let wanted = store.storage().wanted_slots();
        if wanted > 0 {
            store.storage_mut().device_mut().add(wanted).expect("files are made");
            store.storage_mut().added().expect("added");
        }
        while store.run_slice(1000).expect("a job runs") {}
    }
    assert!(store.storage().device().count() > 8);
    drop(store);
    let store = open(&folder.0);
    for number in 0..4000_u32 {
        assert_eq!(store.get(&number.to_be_bytes()).expect("read"), Some(vec![number as u8; 100]));
    }
}

/// A folder that was restored without `slot-0009`: the slots behind it were ignored, and with them the end of the log.
#[test]
fn slots_behind_a_missing_one_are_used() {
    let folder = Folder::new("gap");
    let mut slots = FileSlots::open(&folder.0).expect("no other opener");
    slots.add(12 - slots.count()).expect("files are made");
    assert_eq!(slots.write(11, 0, b"here"), Ok(4));
    drop(slots);
    std::fs::remove_file(folder.0.join("slot-0009")).expect("a file");
    let slots = FileSlots::open(&folder.0).expect("no other opener");
    let mut bytes = [0; 4];
    assert_eq!((slots.count(), slots.read(11, 0, &mut bytes), slots.size(9)), (12, Ok(4), 0));
    assert_eq!(&bytes, b"here");
}

#[test]
fn a_folder_has_one_opener_at_a_time() {
    let folder = Folder::new("opener");
    let first = FileSlots::open(&folder.0).expect("no other opener");
    let second = FileSlots::open(&folder.0).map(|_| ()).map_err(|error| error.kind());
    assert_eq!(second, Err(ErrorKind::WouldBlock));
    drop(first);
    let claim = folder.0.join("lock.71.8842.0.0.00ff.host");
    std::fs::write(&claim, "").expect("a claim of varve/fs is made");
    let beside = FileSlots::open(&folder.0).map(|_| ()).map_err(|error| error.kind());
    assert_eq!(beside, Err(ErrorKind::WouldBlock));
    std::fs::remove_file(&claim).expect("the claim is removed");
    let mut third = FileSlots::open(&folder.0).expect("the first has closed it");
    assert_eq!(third.count(), 8);
    assert!(folder.0.join("slot-0007").exists(), "varve/fs has other names");
    assert_eq!(third.write(8, 0, &[1]), Err(SlotError::Closed));
}
