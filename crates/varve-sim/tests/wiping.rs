//! A storage overwrites old values while a store becomes encrypted. No power loss brings them back.

use varve::manifest::key_slots;
use varve::storage::{SLOT_HEADER_BYTES, SlotPool, Slots, Storage};
use varve::types::{FileKind, FileName};
use varve::{Durability, Encryption, Host, Keyring, Options, Store};
use varve_sim::disk::{Disk, FullStyle, SimSlots};
use varve_sim::slot::{Keep, PowerLoss};

const VALUE: &[u8] = b"a value from before the store was encrypted";
const FILE: FileName = FileName { kind: FileKind::Table, id: 3 };

/// A pool that has a file with the value, and its disk.
fn pool_with_the_value() -> (Disk, SlotPool<SimSlots>) {
    let disk = Disk::new(3, FullStyle::Refuses, 1);
    let mut pool = SlotPool::open(disk.slots()).expect("a pool opens");
    pool.adopt([6; 16]);
    pool.set_spare(1 << 20);
    pool.create(FILE, 0)
        .and_then(|()| pool.write(FILE, 0, VALUE))
        .and_then(|()| pool.sync(FILE))
        .expect("room");
    (disk, pool)
}

/// Whether the disk shows the value after a power loss.
fn comes_back(disk: &Disk) -> bool {
    disk.lose_power(PowerLoss { keep: Keep::None, torn_sectors: false, garbage: false });
    disk.contains(VALUE)
}

/// Seed 1795855549000051: the zeros were not flushed. The power went, and the values were back where no file was any more.
#[test]
fn no_power_loss_brings_back_what_was_overwritten() {
    let (disk, mut pool) = pool_with_the_value();
    pool.delete(FILE).expect("deleted");
    assert!(comes_back(&disk));
    let (disk, mut pool) = pool_with_the_value();
    pool.set_wiping(true);
    pool.delete(FILE).expect("deleted");
    assert!(!comes_back(&disk));
    let (disk, mut pool) = pool_with_the_value();
    pool.delete(FILE).expect("deleted");
    pool.set_wiping(true);
    pool.wipe_unused();
    assert!(!comes_back(&disk));
}

/// A slot that was lent shows what the job wrote, and behind its table what was there before.
#[test]
fn bytes_that_a_job_leaves_in_a_lent_slot_are_overwritten() {
    const TABLE_BYTES: u64 = 50_000;
    for is_open in [true, false] {
        let (disk, mut pool) = pool_with_the_value();
        pool.delete(FILE).expect("deleted");
        let slot = pool.lend(FILE, 0).expect("lent").expect("a slot is free");
        assert!(disk.contains(VALUE));
        pool.set_wiping(true);
        disk.set_open(slot, is_open);
        pool.abort_lent(FILE);
        disk.set_open(slot, true);
        pool.added().expect("known format");
        assert!(!comes_back(&disk), "{is_open}");
    }
    let (disk, mut pool) = pool_with_the_value();
    let table = FileName::table(4);
    let slot = pool.lend(table, 0).expect("lent").expect("a slot is free");
    let mut written = vec![1; TABLE_BYTES as usize + 5000];
    written.extend_from_slice(VALUE);
    let mut slots = disk.slots();
    slots.write(slot, SLOT_HEADER_BYTES, &written).expect("room");
    slots.flush(slot).expect("flushed");
    pool.delete(FILE).expect("deleted");
    pool.set_wiping(true);
    pool.wipe_unused();
    pool.reclaim(table, TABLE_BYTES).expect("it is there");
    let mut bytes = [0; 2];
    pool.read(table, TABLE_BYTES - 2, &mut bytes).expect("the table stays");
    assert_eq!(bytes, [1; 2]);
    assert!(!comes_back(&disk));
}

fn encryption() -> Encryption {
    Encryption {
        keyring: Keyring::new([0; 16], vec![(1, [7; 32])], [3; 16]).expect("a key"),
        slots: b"what wraps the key".to_vec(),
    }
}

/// Opens the store on a disk, encrypted if it is.
fn open(disk: &Disk) -> Store<SlotPool<SimSlots>> {
    let pool = SlotPool::open(disk.slots()).expect("a pool opens");
    let is_encrypted = key_slots(&pool).expect("a manifest").is_some_and(|slots| !slots.is_empty());
    let encryption = if is_encrypted { encryption() } else { Encryption::none() };
    let host = Host { now_ms: 0, entropy: 5, store_id: [6; 16] };
    Store::open(pool, Options { encryption, ..Options::default() }, host).expect("a store opens").0
}

fn fill(store: &mut Store<SlotPool<SimSlots>>, count: u8) {
    for key in 0..count {
        store.set(&[key], VALUE).and_then(|_| store.commit(Durability::Relaxed)).expect("set");
    }
}

/// Seed 1795891650000689: a segment of the log was begun where old values lay. The room behind its end was given back and never overwritten,
/// as it had been part of a file when the store became encrypted.
#[test]
fn wherever_a_change_of_keys_is_cut_off_no_plain_value_stays() {
    let losses = [None, Some(Keep::None), Some(Keep::Sectors), Some(Keep::Prefix)];
    for (empties, keep) in [false, true].into_iter().flat_map(|empties| losses.map(|keep| (empties, keep))) {
        let disk = Disk::new(12, FullStyle::Refuses, 1);
        let mut store = open(&disk);
        store.storage_mut().set_spare(1 << 20);
        fill(&mut store, 200);
        if empties {
            store.delete_range(&[0], &[200]).expect("deleted");
        }
        store.compact().and_then(|()| store.release()).expect("compacted");
        // Longer than a sector: the header of its segment may survive without it.
        store.set(&[0], &[0; 2000]).and_then(|_| store.commit(Durability::Relaxed)).expect("set");
        disk.take_crash_points();
        store.change_keys(encryption()).expect("encrypted");
        let mut ends = disk.take_crash_points();
        ends.push(disk.crash_point());
        assert!(ends.len() > 10, "{}", ends.len());
        for (number, end) in ends.into_iter().enumerate() {
            let disk = Disk::holding(end, number as u64);
            if let Some(keep) = keep {
                disk.lose_power(PowerLoss { keep, torn_sectors: false, garbage: false });
            }
            let mut store = open(&disk);
            if store.key_slots().is_empty() {
                store.change_keys(encryption()).expect("encrypted");
            }
            // Files that an edit dropped wait for the next one.
            store.compact().and_then(|()| store.release()).and_then(|()| store.release()).expect("compacted");
            let place = format!("cut off before write {number}, keeping {keep:?}, emptied before: {empties}");
            assert_eq!(store.keys_in_use().expect("keys"), [1], "{place}");
            assert!(!disk.contains(VALUE), "{place}");
            assert_eq!(store.get(&[199]).expect("read").is_some(), !empties, "{place}");
        }
    }
}
