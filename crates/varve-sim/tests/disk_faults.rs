//! The simulated disk keeps, loses and refuses data as documented. A store on it counts only what it has done.

use varve::storage::{SlotError, SlotPool, Slots};
use varve::{Durability, Host, Options, Store};
use varve_sim::disk::{Disk, FullStyle, SimSlots};
use varve_sim::slot::{Keep, PowerLoss};

const LOSES_ALL: PowerLoss = PowerLoss { keep: Keep::None, torn_sectors: false, garbage: false };

fn disk(style: FullStyle) -> (Disk, SimSlots) {
    let disk = Disk::new(2, style, 3);
    let slots = disk.slots();
    (disk, slots)
}

#[test]
fn a_killed_process_loses_its_handles_and_not_its_writes() {
    let (disk, mut slots) = disk(FullStyle::Refuses);
    slots.write(0, 0, b"kept").expect("room");
    disk.kill_process();
    assert_eq!(slots.write(0, 4, b"late"), Err(SlotError::Closed));
    let mut found = [0; 8];
    assert_eq!(disk.slots().read(0, 0, &mut found), Ok(4));
    assert_eq!(&found[..4], b"kept");
}

#[test]
fn a_power_loss_takes_what_was_not_flushed() {
    let (disk, mut slots) = disk(FullStyle::Refuses);
    slots.write(0, 0, b"kept").expect("room");
    slots.flush(0).expect("a flush");
    slots.write(0, 4, b"lost").expect("room");
    disk.lose_power(LOSES_ALL);
    assert_eq!(disk.slots().size(0), 4);
}

#[test]
fn a_quota_refuses_growth_and_allows_overwriting() {
    let (disk, mut slots) = disk(FullStyle::Refuses);
    slots.write(0, 0, &[1; 100]).expect("room");
    disk.limit(Some(10));
    assert_eq!(slots.write(0, 100, &[2; 11]), Err(SlotError::Full));
    assert_eq!(slots.write(0, 0, &[2; 110]), Ok(110));
    assert_eq!(slots.truncate(1, 1), Err(SlotError::Full));
    disk.limit(None);
    assert_eq!(slots.write(1, 0, &[2; 11]), Ok(11));
}

#[test]
fn a_quota_may_show_in_a_short_count() {
    let (disk, mut slots) = disk(FullStyle::Shortens);
    disk.limit(Some(10));
    assert!(slots.write(0, 0, &[1; 15]).expect("a count") < 15);
    assert!(slots.write(0, 10, &[1; 15]).expect("a count") < 15);
    assert_eq!(slots.size(0), 10);
}

#[test]
fn a_burned_fuse_kills_every_later_call() {
    let (disk, mut slots) = disk(FullStyle::Refuses);
    disk.arm_fuse(1);
    assert_eq!(slots.write(0, 0, b"first"), Ok(5));
    assert_eq!(slots.write(0, 5, b"second"), Err(SlotError::Io));
    assert!(disk.is_dead());
    assert_eq!(slots.flush(0), Err(SlotError::Closed));
    assert_eq!(slots.read(0, 0, &mut [0; 4]), Err(SlotError::Closed));
    disk.kill_process();
    assert!(disk.slots().size(0) >= 5);
}

#[test]
fn a_failed_flush_leaves_the_bytes_readable_and_unsure() {
    let (disk, mut slots) = disk(FullStyle::Refuses);
    slots.write(0, 0, b"unsure").expect("room");
    disk.arm_flush_failure(0);
    assert_eq!(slots.flush(0), Err(SlotError::Io));
    assert_eq!(slots.read(0, 0, &mut [0; 6]), Ok(6));
    assert_eq!(slots.flush(0), Ok(()));
    disk.lose_power(LOSES_ALL);
    assert_eq!(disk.slots().size(0), 6);
}

#[test]
fn a_lent_slot_is_closed_to_the_engine_and_open_to_the_compactor() {
    let (disk, mut slots) = disk(FullStyle::Refuses);
    disk.set_open(1, false);
    assert!(!slots.is_open(1));
    assert_eq!(slots.write(1, 0, b"no"), Err(SlotError::Closed));
    assert_eq!(slots.write_lent(1, 0, b"yes"), Ok(3));
    disk.set_open(1, true);
    assert_eq!(slots.read(1, 0, &mut [0; 3]), Ok(3));
}

/// The story: tables counted as dropped before the edit that drops them was committed.
#[test]
fn tables_count_as_dropped_once_the_edit_is_committed() {
    for fails in [false, true] {
        let disk = Disk::new(100, FullStyle::Refuses, 3);
        let host = Host { now_ms: 0, entropy: 4, store_id: [4; 16] };
        let pool = SlotPool::open(disk.slots()).expect("opens");
        let (mut store, _) = Store::open(pool, Options::default(), host).expect("opens");
        store.set(b"key", b"value").expect("staged");
        store.flush().expect("flushed");
        store.delete_range(b"a", b"z").expect("staged");
        store.commit(Durability::Strict).expect("committed");
        store.flush().expect("flushed");
        if fails {
            disk.arm_flush_failure(0);
        }
        assert_eq!(store.take_job().is_err(), fails);
        assert_eq!(store.stats().drops, u64::from(!fails));
    }
}

/// The process dies at any step of a flush. The next opening finds some data, and writes nothing. A call that promises durability
/// makes this data durable.
#[test]
fn data_that_an_opening_found_survives_a_power_cut_once_it_is_synced() {
    type Promise = fn(&mut Store<SlotPool<SimSlots>>) -> varve::Result<()>;
    let promises: [(bool, Promise); 7] = [
        (true, |store| store.commit(Durability::Strict).map(|_| ())),
        (true, |store| store.sync()),
        (true, |store| store.flush()),
        (true, |store| store.close()),
        (false, |store| store.sync()),
        (false, |store| store.flush()),
        (false, |store| store.close()),
    ];
    let mut found = 0;
    for (log, promise) in promises {
        for calls in 0..24 {
            let disk = Disk::new(100, FullStyle::Refuses, 3);
            let open = || {
                let options = Options { log, ..Options::default() };
                let host = Host { now_ms: 0, entropy: 4, store_id: [4; 16] };
                Store::open(SlotPool::open(disk.slots()).expect("opens"), options, host).expect("opens").0
            };
            let mut store = open();
            store.set(b"key", b"value").expect("staged");
            store.commit(Durability::Memory).expect("committed");
            disk.arm_fuse(calls);
            let _ = store.flush();
            disk.kill_process();
            let mut store = open();
            let before = store.get(b"key").expect("read");
            promise(&mut store).expect("promised");
            disk.lose_power(LOSES_ALL);
            assert_eq!(open().get(b"key").expect("read"), before, "log {log}, {calls} calls");
            found += u32::from(before.is_some());
        }
    }
    assert!(found > 50, "{found}");
}
