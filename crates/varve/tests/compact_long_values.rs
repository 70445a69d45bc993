//! Merges of values that are longer than one fetch: each is a block, and a chunk, of its own.

use varve::storage::{MemorySlots, SlotPool};
use varve::{Host, Options, Store};

/// The merge starts over for each run whose first block has yet to be fetched; the blocks that were fetched for the others must
/// still be there.
#[test]
fn a_merge_of_several_runs_of_long_values_comes_to_an_end() {
    comes_to_an_end(4, 3 << 20);
    // The more runs there are, the less is fetched at once.
    comes_to_an_end(30, 200 << 10);
}

fn comes_to_an_end(runs: u8, value_bytes: usize) {
    let pool = SlotPool::open(MemorySlots::new(40)).expect("a pool opens");
    let host = Host { now_ms: 1, entropy: 3, store_id: [7; 16] };
    let (mut store, _) = Store::open(pool, Options::default(), host).expect("a store opens");
    for run in 0..runs {
        for key in [b"a", b"b"] {
            store.set(key, &vec![run; value_bytes]).expect("it fits");
        }
        store.flush().expect("a flush");
    }
    store.ask_for_compaction().expect("a store that is open");
    let slices = (0..1000).take_while(|_| store.run_slice(1000).expect("a slice")).count();
    assert!(slices < 1000, "the same bytes are fetched again and again");
    assert_eq!(store.stats().levels[0].tables, 0, "all of it went down");
    assert!(store.stats().entries_dropped >= 2 * u64::from(runs - 1));
    for key in [b"a", b"b"] {
        assert_eq!(store.get(key).expect("a read"), Some(vec![runs - 1; value_bytes]));
    }
}
