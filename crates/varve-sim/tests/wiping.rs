//! A storage overwrites old values while a store becomes encrypted. No power loss brings them back.

use varve::storage::{SlotPool, Storage};
use varve::types::{FileKind, FileName};
use varve_sim::disk::{Disk, FullStyle};
use varve_sim::slot::{Keep, PowerLoss};

const VALUE: &[u8] = b"a value from before the store was encrypted";
const FILE: FileName = FileName { kind: FileKind::Table, id: 3 };

/// Whether a power loss brings the value of a deleted file back. `wipe` is called with what deletes the file.
fn comes_back(wipe: impl FnOnce(&mut dyn Storage)) -> bool {
    let disk = Disk::new(3, FullStyle::Refuses, 1);
    let mut pool = SlotPool::open(disk.slots()).expect("a pool opens");
    pool.adopt([6; 16]);
    pool.set_spare(1 << 20);
    pool.create(FILE, 0)
        .and_then(|()| pool.write(FILE, 0, VALUE))
        .and_then(|()| pool.sync(FILE))
        .expect("room");
    wipe(&mut pool);
    disk.lose_power(PowerLoss { keep: Keep::None, torn_sectors: false, garbage: false });
    disk.contains(VALUE)
}

/// Seed 1795855549000051: the zeros were not flushed. The power went, and the values were back where no file was any more.
#[test]
fn no_power_loss_brings_back_what_was_overwritten() {
    assert!(comes_back(|pool| pool.delete(FILE).expect("deleted")));
    assert!(!comes_back(|pool| {
        pool.set_wiping(true);
        pool.delete(FILE).expect("deleted");
    }));
    assert!(!comes_back(|pool| {
        pool.delete(FILE).expect("deleted");
        pool.wipe_unused();
    }));
}
