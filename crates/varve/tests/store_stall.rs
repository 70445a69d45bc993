//! A writer that level 0 delays waits for due work, not for a merge of the whole store.
//!
//! The story: a synchronous turn that met `l0_stall` tables merged everything there was, so one set in a store of a few
//! hundred megabytes took seconds.

use varve::storage::{MemorySlots, SlotPool, Storage};
use varve::{Durability, Host, Options, Store};

#[test]
fn a_stalled_turn_merges_level_0_and_only_the_tables_it_overlaps() {
    let options = Options {
        memtable_bytes_min: 4096,
        memtable_bytes_max: 4096,
        frozen_max: 1,
        table_bytes: 16 << 10,
        l0_trigger: 2,
        l0_stall: 3,
        compress: false,
        ..Options::default()
    };
    let host = Host { now_ms: 0, entropy: 9, store_id: [9; 16] };
    let slots = SlotPool::open(MemorySlots::new(100)).expect("opens");
    let (mut store, _) = Store::open(slots, options, host).expect("opens");
    for n in 0..2000 {
        store.set(format!("low{n:05}").as_bytes(), &[1; 100]).expect("staged");
    }
    store.compact().expect("merged");
    let before = store.stats();
    let store_bytes = before.levels.iter().map(|level| level.bytes).sum::<u64>();
    assert!(store_bytes > 200_000, "{store_bytes}");

    // These lie behind all the others.
    for n in 0..400 {
        store.set(format!("z{n:05}").as_bytes(), &[2; 100]).expect("staged");
    }
    store.commit(Durability::Relaxed).expect("committed");
    let after = store.stats();
    assert!(after.compactions > before.compactions, "the stall was met");
    let read = (after.compaction_bytes_read - before.compaction_bytes_read)
        / (after.compactions - before.compactions);
    assert!(read < store_bytes / 3, "{read} bytes read by one merge of a store of {store_bytes}");
}

/// The story: where a compactor flushed in time, a synchronous writer never met `l0_stall`. 20,000 documents that were all saved 25 times,
/// as fast as possible, left 122 tables in level 0, and took 27 times their bytes.
#[test]
fn overwrites_do_not_pile_up_however_far_behind_the_merges_are() {
    let options = Options {
        memtable_bytes_min: 16 << 10,
        memtable_bytes_max: 16 << 10,
        table_bytes: 16 << 10,
        level_base_bytes: 128 << 10,
        job_bytes_max: 256 << 10,
        ..Options::default()
    };
    let host = Host { now_ms: 0, entropy: 9, store_id: [9; 16] };
    let slots = SlotPool::open(MemorySlots::new(200)).expect("opens");
    let (mut store, _) = Store::open(slots, options, host).expect("opens");
    // Values that do not compress, all different.
    let mut state = 1_u64;
    let mut save = |store: &mut Store<_>, n: u32| {
        let value: Vec<u8> = std::iter::repeat_with(|| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (state >> 56) as u8
        })
        .take(900)
        .collect();
        store.set(format!("document{:05}", n * 37 % 100).as_bytes(), &value).expect("staged");
        store.commit(Durability::Relaxed).expect("committed");
        // Like a compactor that flushes in time, and never merges.
        if n.is_multiple_of(24) {
            store.flush().expect("flushed");
        }
    };
    let data_bytes = 100 * 900;
    for n in 0..200 {
        save(&mut store, n);
    }
    store.compact().expect("merged");
    let (mut most_bytes, mut was_stalled) = (0, false);
    for n in 0..2500 {
        save(&mut store, n);
        was_stalled |= store.is_stalled() && store.stats().levels[0].tables < 20;
        most_bytes = most_bytes.max(store.storage().bytes_on_disk());
    }
    assert!(most_bytes < 20 * data_bytes, "{most_bytes} bytes hold {data_bytes}");
    assert!(was_stalled, "a writer that can wait must wait long before there are `l0_stall` tables");
}

/// The story: ten counters that were raised 200,000 times inside one turn lay in eight tables and three memtables. A scan of the ten took
/// eight times as long as in a new store. Where only jobs merge, it was 31 times at p99, when the writer's turn already merged.
#[test]
fn counters_are_one_table_or_two_and_one_memtable_however_often_they_are_raised() {
    for (flush_when_full, most_wanted) in [(true, 1), (false, 2)] {
        let options = Options {
            memtable_bytes_min: 64 << 10,
            memtable_bytes_max: 64 << 10,
            flush_when_full,
            ..Options::default()
        };
        let host = Host { now_ms: 0, entropy: 9, store_id: [9; 16] };
        let slots = SlotPool::open(MemorySlots::new(100)).expect("opens");
        let (mut store, _) = Store::open(slots, options, host).expect("opens");
        let mut most = 0;
        for n in 0..100_000_u64 {
            store.set(format!("counter{}", n % 10).as_bytes(), &n.to_le_bytes()).expect("staged");
            store.commit(Durability::Relaxed).expect("committed");
            while !flush_when_full && store.run_slice(usize::MAX).expect("a job") {}
            // The first memtables wait: nothing shows yet that little of them will remain.
            if n > 10_000 {
                let stats = store.stats();
                most = most.max(stats.frozen + stats.levels.iter().map(|level| level.tables).sum::<u64>());
            }
        }
        assert_eq!(most, most_wanted, "runs beside the memtable that is written");
        let counts: Vec<u64> = (0..10)
            .map(|counter| {
                let value = store.get(format!("counter{counter}").as_bytes()).expect("read").expect("there");
                u64::from_le_bytes(value[..8].try_into().expect("eight bytes"))
            })
            .collect();
        assert_eq!(counts, (99_990..100_000).collect::<Vec<u64>>());
    }
}
