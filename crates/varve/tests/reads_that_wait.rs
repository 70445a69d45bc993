//! A storage that never reads at once answers like one that does: every read of a table says `Need` first, is given the
//! range, and runs again.

use std::cell::Cell;

use varve::scan::{Batch, Progress, ScanOptions};
use varve::storage::{Fetch, MemorySlots, SlotPool, Storage};
use varve::table::ReadError;
use varve::types::{FileKind, FileName, StoreId};
use varve::{Durability, Host, Options, Result, Store};

/// Reads of tables wait while `waits` is set.
struct Waiting {
    pool: SlotPool<MemorySlots>,
    waits: Cell<bool>,
}

impl Storage for Waiting {
    fn list(&self) -> Vec<(FileName, u64)> {
        self.pool.list()
    }
    fn adopt(&mut self, store: StoreId) {
        self.pool.adopt(store);
    }
    fn create(&mut self, file: FileName, bytes_hint: u64) -> Result<()> {
        self.pool.create(file, bytes_hint)
    }
    fn read(&self, file: FileName, offset: u64, into: &mut [u8]) -> Result<Fetch> {
        if self.waits.get() && file.kind == FileKind::Table {
            return Ok(Fetch::Pending);
        }
        self.pool.read(file, offset, into)
    }
    fn write(&mut self, file: FileName, offset: u64, bytes: &[u8]) -> Result<()> {
        self.pool.write(file, offset, bytes)
    }
    fn sync(&mut self, file: FileName) -> Result<()> {
        self.pool.sync(file)
    }
    fn delete(&mut self, file: FileName) -> Result<()> {
        self.pool.delete(file)
    }
    fn bytes_on_disk(&self) -> u64 {
        self.pool.bytes_on_disk()
    }
}

/// Runs a read until it needs nothing more; counts how often it had to wait.
fn drive<T>(
    store: &Store<Waiting>,
    waited: &mut u32,
    mut read: impl FnMut(&Store<Waiting>) -> Result<T, ReadError>,
) -> T {
    for _ in 0..1000 {
        match read(store) {
            Ok(answer) => return answer,
            Err(ReadError::Need(need)) => {
                *waited += 1;
                let mut bytes = vec![0; need.len as usize];
                store.storage().pool.read(need.file, need.offset, &mut bytes).expect("the range is there");
                store.provide(need, bytes);
            }
            Err(ReadError::Error(error)) => panic!("{error}"),
        }
    }
    panic!("the read never ends");
}

/// A store of several levels. With `cache_bytes` near nothing, no block stays from one read to the next.
fn store(memory_bytes: usize) -> Store<Waiting> {
    let options = Options {
        memory_bytes,
        memtable_bytes_min: 4096,
        memtable_bytes_max: 4096,
        block_bytes: 256,
        table_bytes: 4096,
        l0_trigger: 3,
        ..Options::default()
    };
    let pool = SlotPool::open(MemorySlots::new(100)).expect("opens");
    let storage = Waiting { pool, waits: Cell::new(false) };
    let host = Host { now_ms: 0, entropy: 4, store_id: [4; 16] };
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
    store
}

fn key(n: u32) -> Vec<u8> {
    format!("key{n:06}").into_bytes()
}

/// What the batches of a scan hold, each encoded by itself. A batch whose next block has to be waited for goes out as it
/// is, so only what they hold together is the same.
fn scan_all(
    store: &Store<Waiting>,
    options: &ScanOptions,
    bytes_max: usize,
    waited: &mut u32,
) -> Vec<(Vec<u8>, Vec<u8>)> {
    let mut cursor = store.scan(options.clone()).expect("open");
    let mut all = Vec::new();
    loop {
        let mut batch = Batch::new(true, true);
        let progress = drive(store, waited, |store| store.scan_next(&mut cursor, bytes_max, &mut batch));
        entries(&batch, &mut all);
        if progress == Progress::Finished {
            return all;
        }
    }
}

/// Decodes a batch as frames carry it: cursor, count, bytes of keys and of values, their ends, keys, values.
fn entries(batch: &Batch, all: &mut Vec<(Vec<u8>, Vec<u8>)>) {
    let mut bytes = Vec::new();
    batch.encode(1, &mut bytes);
    let word = |at: usize| u32::from_le_bytes(bytes[4 * at..4 * at + 4].try_into().expect("a word")) as usize;
    let (count, key_bytes) = (word(1), word(2));
    let keys = &bytes[16 + 8 * count..];
    let values = &keys[key_bytes.next_multiple_of(4)..];
    let (mut key_at, mut value_at) = (0, 0);
    for n in 0..count {
        let (key_end, value_end) = (word(4 + n), word(4 + count + n));
        all.push((keys[key_at..key_end].to_vec(), values[value_at..value_end].to_vec()));
        (key_at, value_at) = (key_end, value_end);
    }
}

#[test]
fn points_and_scans_answer_the_same_whether_reads_wait_or_not() {
    for memory_bytes in [1, 1 << 20] {
        let (now, later) = (store(memory_bytes), store(memory_bytes));
        later.storage().waits.set(true);
        let mut waited = 0;
        for n in 0..1010 {
            let key = key(n);
            let found = drive(&later, &mut waited, |store| {
                store.find(&key, |entry| entry.map(|entry| (entry.value.to_vec(), entry.sequence)))
            });
            let at_once = now.find(&key, |entry| entry.map(|entry| (entry.value.to_vec(), entry.sequence)));
            assert_eq!(Ok(found), at_once, "{}", key.escape_ascii());
        }
        for (reverse, bytes_max) in [(false, 1), (false, 3000), (true, 1), (true, usize::MAX)] {
            for limit in [None, Some(1), Some(37)] {
                let options = ScanOptions { lower: key(5), upper: Some(key(990)), reverse, limit };
                let one = scan_all(&now, &options, bytes_max, &mut 0);
                assert_eq!(scan_all(&later, &options, bytes_max, &mut waited), one, "{options:?}");
                assert!(limit.map_or(one.len() > 500, |limit| one.len() == limit as usize));
            }
        }
        assert!(waited > 50, "only {waited} reads waited");
    }
}
