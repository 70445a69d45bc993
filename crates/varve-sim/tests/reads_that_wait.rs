//! A storage that never reads at once gives the same answers as one that does: every call is made again until the bytes that it reads have
//! come, some at a time and in any order.

use varve::scan::{Batch, Progress, ScanOptions};
use varve::storage::MemorySlots;
use varve::store::Stats;
use varve::{Durability, Host, Options, Store};
use varve_sim::scan::decode;
use varve_sim::waiting::{Reads, Waiting, patiently};

/// A store of several levels, and the waits of its reads, of which there are none yet. With `memory_bytes` near nothing, no block stays
/// from one read to the next.
fn store(memory_bytes: usize) -> (Store<Waiting>, Reads) {
    let options = Options {
        memory_bytes,
        memtable_bytes_min: 6144,
        memtable_bytes_max: 6144,
        block_bytes: 256,
        table_bytes: 4096,
        l0_trigger: 3,
        ..Options::default()
    };
    let host = Host { now_ms: 0, entropy: 4, store_id: [4; 16] };
    let reads = Reads::waiting(0);
    let storage = Waiting::new(MemorySlots::new(100), &reads);
    let (mut store, _) = Store::open(storage, options, host).expect("opens");
    for n in 0..1500_u32 {
        store.set(&key(n * 7 % 1000), &n.to_le_bytes().repeat(1 + n as usize % 9)).expect("staged");
        if n % 11 == 0 {
            store.delete(&key(n * 13 % 1000)).expect("staged");
        }
        if n % 400 == 399 {
            store.delete_range(&key(n / 2), &key(n / 2 + 20)).expect("staged");
        }
        store.commit(Durability::Memory).expect("committed");
        store.run_slice(1 << 20).expect("a job");
    }
    (store, reads)
}

fn key(n: u32) -> Vec<u8> {
    format!("key{n:06}").into_bytes()
}

/// The contents of the batches of a scan.
fn scan_all(
    (store, reads): &(Store<Waiting>, Reads),
    options: &ScanOptions,
    bytes_max: usize,
) -> Vec<(Vec<u8>, Vec<u8>)> {
    let mut cursor = store.scan(options.clone()).expect("open");
    let mut all = Vec::new();
    loop {
        let next = patiently(reads, || {
            let mut batch = Batch::new(true, true);
            Ok((store.scan_next(&mut cursor, bytes_max, &mut batch)?, batch))
        });
        let (progress, batch) = next.expect("a batch");
        all.extend(decode(&batch).expect("a batch decodes"));
        if progress == Progress::Finished {
            return all;
        }
    }
}

#[test]
fn points_and_scans_answer_the_same_whether_reads_wait_or_not() {
    for memory_bytes in [1, 1 << 20] {
        let (now, later) = (store(memory_bytes), store(memory_bytes));
        let (now_store, (later_store, reads)) = (&now.0, &later);
        reads.wait(100);
        for n in 0..1010 {
            let key = key(n);
            let found = patiently(reads, || {
                later_store.find(&key, |entry| entry.map(|entry| (entry.value.to_vec(), entry.sequence)))
            });
            let at_once =
                now_store.find(&key, |entry| entry.map(|entry| (entry.value.to_vec(), entry.sequence)));
            assert_eq!(found, at_once, "{}", key.escape_ascii());
        }
        // A get that waited ran more than once, and is counted once.
        let filters = |stats: &Stats| (stats.filter_checks, stats.filter_negatives);
        assert_eq!(filters(&later_store.stats()), filters(&now_store.stats()));
        assert!(now_store.stats().filter_negatives > 0);
        for (reverse, bytes_max) in [(false, 1), (false, 3000), (true, 1), (true, usize::MAX)] {
            for limit in [None, Some(1), Some(37)] {
                let options = ScanOptions { lower: key(5), upper: Some(key(990)), reverse, limit };
                let one = scan_all(&now, &options, bytes_max);
                assert_eq!(scan_all(&later, &options, bytes_max), one, "{options:?}");
                assert!(limit.map_or(one.len() > 500, |limit| one.len() == limit as usize));
            }
        }
        assert!(reads.again() > 50, "only {} calls waited", reads.again());
    }
}

/// The story: where bytes of a table with a range tombstone were missing, the tables that the range deletes stayed. Nobody fetched the bytes,
/// so they stayed until something else read that table.
#[test]
fn a_deleted_range_drops_tables_as_soon_as_its_own_table_is_read() {
    let (mut store, reads) = store(1);
    store.delete_range(&key(0), &key(2000)).expect("staged");
    store.flush().expect("flushed");
    let before = store.stats().drops;
    reads.wait(100);
    let job = patiently(&reads, || store.take_job()).expect("jobs are chosen");
    let dropped = store.stats().drops - before;
    assert!(dropped > 5 && reads.again() > 0, "{dropped} tables dropped, {job:?}");
}
