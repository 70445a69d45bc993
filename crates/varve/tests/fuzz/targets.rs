//! The targets: plain functions of bytes, which accept or refuse them.

use std::any::Any;
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind, set_hook, take_hook};
use std::rc::Rc;
use std::sync::Once;

use varve::codec::cipher::{CIPHER_BYTES, KeyNumber, Place};
use varve::codec::hash::xxh3;
use varve::codec::reader::Reader;
use varve::compact::{Job, JobResult, Step};
use varve::manifest::{Edit, Manifest, Version, inspect_manifest};
use varve::memtable::Memtable;
use varve::storage::{MemorySlots, SlotHeader, SlotPool, Storage};
use varve::table::{
    Block, BlockHandle, BlockKind, Blocks, FOOTER_BYTES, Filter, Footer, Index, MemoryBlocks, Properties,
    RangeTombstones, find_footers, key_of, open_block, open_block_to_copy, salvage_table,
};
use varve::types::{FileKind, FileName};
use varve::wal::{SegmentHeader, find_salt, header_was_lost, salvage_segment, scan_segment};
use varve::{Durability, Host, Keyring, Store};

use super::corpus;
use super::mutate::rehash;
use crate::table_common::{STORE, TABLE, encrypted, open, plain};

/// Steps after which a job over garbage is given up.
const STEPS_MAX: usize = 300;

pub fn segment(bytes: &[u8]) {
    let _ = SegmentHeader::decode(bytes);
    let _ = header_was_lost(bytes, 5, &[9; 16]);
    let header = corpus::segment_header();
    let _ = find_salt(bytes, 5, &[9; 16]);
    let _ = salvage_segment(bytes, header.salt, bytes.len()).len();
    for end in [None, Some(bytes.len() as u64)] {
        let Ok(scan) = scan_segment(bytes, &header, end, FileName::wal(5)) else { continue };
        if let Ok(memtable) = Memtable::from_segment(bytes.to_vec(), header, scan.end, FileName::wal(5)) {
            let order = memtable.freeze_order();
            let frozen = Memtable::frozen(memtable.image(), &order).expect("indexed entries are in order");
            let ranges = frozen.range_tombstones().len();
            assert_eq!(frozen.count() + ranges, memtable.entries());
        }
    }
}

/// The entries that a repair takes from a table verify, and lie in the table in order, with none twice.
pub fn salvage(bytes: &[u8]) {
    let _ = find_footers(bytes, &STORE).count();
    let Ok(remains) = salvage_table(bytes, &encrypted(), TABLE, None, true) else { return };
    let mut end = 0;
    for handle in remains.blocks {
        assert!(handle.offset >= end && handle.end() <= bytes.len() as u64);
        end = handle.end();
        let stored = bytes[handle.offset as usize..end as usize].to_vec();
        let block = open_block(&encrypted(), TABLE, key_of(&stored), handle, stored, BlockKind::Data)
            .expect("it verifies");
        block.walk(|_| {}).expect("every entry decodes");
    }
}

/// Unchanged, and with a correct hash of its header.
pub fn manifest(bytes: &[u8]) {
    let mut hashed = bytes.to_vec();
    rehash(&mut hashed, 0, 56);
    for bytes in [bytes, &hashed] {
        let _ = inspect_manifest(&Keyring::plain([0; 16]), &mut bytes.to_vec());
        let mut pool = SlotPool::open(MemorySlots::new(4)).expect("a pool opens");
        pool.adopt(*b"golden store  v0");
        let file = FileName::manifest(0);
        if pool.create(file, 0).and_then(|()| pool.write(file, 0, bytes)).is_ok() {
            let _ = Manifest::open(&mut pool, &Keyring::plain([0; 16]), 7);
        }
    }
}

pub fn version_and_edit(bytes: &[u8]) {
    let _ = Version::decode(&mut Reader::new(bytes));
    if let Ok(edit) = Edit::decode(&mut Reader::new(bytes)) {
        let _ = Version::default().apply(&edit);
    }
}

pub fn slot_header(bytes: &[u8]) {
    let _ = SlotHeader::decode(bytes, 0);
    let mut hashed = bytes.to_vec();
    for copy in [0, 1024, 2048, 3072] {
        rehash(&mut hashed, copy, copy + 40);
        rehash(&mut hashed, copy, copy + 1016);
    }
    let _ = SlotHeader::decode(&hashed, 0);
}

/// Returns the same block for every block of a table.
struct OneBlock(Rc<Block>);

impl Blocks for OneBlock {
    fn block(&self, _: u64, _: KeyNumber, _: BlockHandle) -> varve::Result<Rc<Block>> {
        Ok(Rc::clone(&self.0))
    }

    fn raw(&self, _: u64, _: u64, _: u32) -> varve::Result<Vec<u8>> {
        Ok(Vec::new())
    }
}

pub fn block(bytes: &[u8]) {
    let mut place = [0; 32];
    place[..16].copy_from_slice(&STORE);
    place[16..24].copy_from_slice(&TABLE.to_le_bytes());
    let hash = |bytes: &[u8]| xxh3(bytes, xxh3(&place, 0)).to_le_bytes();
    let mut hashed = bytes.to_vec();
    if let Some(end) = hashed.len().checked_sub(8) {
        let hash = hash(&hashed[..end]);
        hashed[end..].copy_from_slice(&hash);
    }
    // Anybody with the key may have encrypted anything.
    let keyring = encrypted();
    let mut sealed = [bytes, &[0; CIPHER_BYTES]].concat();
    let part = Place { file: FileName::table(TABLE), offset: 0, part: BlockKind::Data as u8 };
    keyring.encrypt(3, part, &mut sealed);
    let len = sealed.len() as u32;
    sealed.extend_from_slice(&[BlockKind::Data as u8, 2, 3, 0]);
    sealed.extend_from_slice(&len.to_le_bytes());
    sealed.extend_from_slice(&hash(&sealed));
    for (key, stored) in [(0, bytes.to_vec()), (0, hashed), (3, sealed)] {
        let handle = BlockHandle { offset: 0, len: stored.len() as u32 };
        let _ = open_block(&keyring, TABLE, key, handle, stored.clone(), BlockKind::Data);
        let _ = open_block_to_copy(&keyring, TABLE, key, handle, stored, BlockKind::Data, 0);
    }
    let Ok(block) = Block::parse(BlockKind::Data, bytes.to_vec()) else { return };
    let (meta, file) = corpus::table(&plain(), false);
    let mut good = MemoryBlocks::new(plain());
    good.insert(TABLE, file);
    let table = open(&meta, &good).expect("the table is good");
    let blocks = OneBlock(Rc::new(block));
    for key in [&b"user:0000"[..], b"user:0017", b"user:9", b"", bytes.get(..9).unwrap_or_default()] {
        let _ = table.get(key, 1 << 40, &blocks);
        let mut cursor = table.cursor();
        if cursor.seek(key, &blocks).is_ok() {
            while cursor.valid() && cursor.key().len() < 1 << 20 {
                let _ = (cursor.value(), cursor.sequence());
                // If one block answers for all of them, the walk may never end.
                if cursor.next(&blocks).is_err() || cursor.sequence() % 64 == 63 {
                    break;
                }
            }
        }
        if cursor.seek_before(key, &blocks).is_ok() {
            for _ in 0..40 {
                if !cursor.valid() || cursor.prev(&blocks).is_err() {
                    break;
                }
            }
        }
    }
}

pub fn filter(bytes: &[u8]) {
    if let Ok(filter) = Filter::decode(bytes) {
        for hash in [0, 1, u64::MAX, 0x1234_5678_9abc_def0] {
            let _ = filter.may_contain(hash);
        }
    }
}

pub fn index(bytes: &[u8]) {
    if let Ok(index) = Index::decode(bytes) {
        assert!(index.find(b"user:0017", 5) <= index.len());
        let _ = (index.find(bytes, 0), index.data_end());
    }
    if let Ok(tombstones) = RangeTombstones::decode(bytes) {
        let _ = tombstones.over(b"user:0001", 9);
    }
    let _ = Properties::decode(bytes);
}

pub fn footer(bytes: &[u8]) {
    let _ = Footer::decode(bytes, &STORE, FileName::table(TABLE), 0);
    if bytes.len() < FOOTER_BYTES {
        return;
    }
    let mut hashed = bytes[..FOOTER_BYTES].to_vec();
    let seed = varve::codec::hash::xxh3(&STORE, 0);
    let hash = varve::codec::hash::xxh3(&hashed[..FOOTER_BYTES - 8], seed);
    hashed[FOOTER_BYTES - 8..].copy_from_slice(&hash.to_le_bytes());
    // A table that ends with it: its handles are believed only within the length of the file.
    let (meta, mut file) = corpus::table(&plain(), true);
    let start = file.len() - FOOTER_BYTES;
    file[start..].copy_from_slice(&hashed);
    let mut blocks = MemoryBlocks::new(plain());
    blocks.insert(TABLE, file);
    let _ = open(&varve::table::TableMeta { footer_hash: hash, ..meta }, &blocks);
}

fn store() -> Store<SlotPool<MemorySlots>> {
    let host = Host { now_ms: 1, entropy: 3, store_id: [7; 16] };
    let pool = SlotPool::open(MemorySlots::new(40)).expect("a pool opens");
    Store::open(pool, corpus::small_options(), host).expect("a new store opens").0
}

pub fn frame(bytes: &[u8]) {
    let mut response = Vec::new();
    let mut store = store();
    let _ = varve::frame::run(&mut store, bytes, &mut response);
    let _ = varve::frame::run(&mut store, bytes, &mut response);
}

/// Runs a job with any content. A table out of order would give wrong answers for ever, so its builder panics, as documented,
/// and the job panics with it; nothing else panics.
pub fn job_spec(bytes: &[u8]) {
    // The panic that garbage may cause is not reported: a backtrace's memory would be counted as the target's, and libFuzzer's
    // report ends the process.
    static QUIET: Once = Once::new();
    QUIET.call_once(|| {
        let report = take_hook();
        set_hook(Box::new(move |panic| {
            if !is_disorder(panic.payload()) {
                report(panic);
            }
        }));
    });
    let Ok(job) = Job::decode(bytes.to_vec()) else { return };
    if let Err(panic) = catch_unwind(AssertUnwindSafe(|| finish(job)))
        && !is_disorder(&*panic)
    {
        resume_unwind(panic);
    }
}

/// Whether a panic is the one that garbage may cause: a table whose input is not in order is never written.
fn is_disorder(panic: &(dyn Any + Send)) -> bool {
    panic.downcast_ref::<&str>() == Some(&"entries of a table must be added in order")
}

/// Steps through a job over a table that has the name of its inputs.
fn finish(mut job: Job) {
    let (_, file) = corpus::table(&plain(), true);
    for _ in 0..STEPS_MAX {
        match job.step(50) {
            Ok(Step::Need(need)) => {
                // A host that cannot read the requested bytes gives the job up.
                if need.len as usize > file.len() {
                    return;
                }
                let start = (need.offset as usize).min(file.len());
                let mut bytes = file[start..file.len().min(start + need.len as usize)].to_vec();
                bytes.resize(need.len as usize, 0);
                job.feed(bytes);
            }
            Ok(Step::Write { .. }) => drop(job.take_output()),
            Ok(Step::Done) => {
                JobResult::decode(&job.result()).expect("a result decodes");
                return;
            }
            Ok(_) => {}
            Err(_) => return,
        }
    }
}

/// Also given to a store that owns this job.
pub fn job_result(bytes: &[u8]) {
    let _ = JobResult::decode(bytes);
    let mut store = store();
    store.set(b"key", b"value").expect("room");
    store.freeze_active().expect("room");
    if let Ok(Some(ticket)) = store.take_job() {
        let _ = store.finish_job(ticket.id, bytes);
        let _ = store.get(b"key");
    }
}

/// The encrypted store, with one of its files replaced; `None` if it does not open.
pub fn with_file(bytes: &[u8]) -> Option<Store<SlotPool<MemorySlots>>> {
    let (&at, content) = bytes.split_first()?;
    let mut pool = corpus::encrypted_store();
    let files = pool.list();
    let (file, _) = files[at as usize % files.len()];
    let mut hashed = content.to_vec();
    if file.kind == FileKind::Manifest {
        rehash(&mut hashed, 0, 56);
    }
    pool.delete(file).and_then(|()| pool.create(file, 0)).and_then(|()| pool.write(file, 0, &hashed)).ok()?;
    let host = Host { now_ms: 2, entropy: 4, store_id: STORE };
    Some(Store::open(pool, corpus::encrypted_options(), host).ok()?.0)
}

/// An encrypted store opens with any content of one of its files, or refuses; it shows only entries that were written.
pub fn encrypted_file(bytes: &[u8]) {
    let Some(mut store) = with_file(bytes) else { return };
    for n in 0..40_u8 {
        if let Ok(Some(value)) = store.get(&[n, 1]) {
            assert!(
                value.len() == 40 && value.iter().all(|byte| byte % 40 == n),
                "a value that was never written"
            );
        }
    }
    let _ = store.set(b"key", b"value").and_then(|_| store.flush());
    let _ = store.compact();
}

/// Operations against a map: the store gives the same answers as the map.
pub fn operations(bytes: &[u8]) {
    let mut store = store();
    let mut model: BTreeMap<Vec<u8>, Vec<u8>> = BTreeMap::new();
    for (at, operation) in bytes.chunks_exact(3).enumerate() {
        let key = vec![b'k'; 1 + operation[1] as usize % 5].into_iter().chain([operation[1] % 16]);
        let key: Vec<u8> = key.collect();
        let done = match operation[0] % 13 {
            0..=4 => {
                let value = vec![at as u8; operation[2] as usize];
                store.set(&key, &value).map(|_| drop(model.insert(key, value)))
            }
            5 => store.delete(&key).map(|_| drop(model.remove(&key))),
            6 => {
                let end = [&key[..], &[operation[2]]].concat();
                store.delete_range(&key, &end).map(|_| model.retain(|other, _| other < &key || other >= &end))
            }
            7 => store.commit(Durability::Strict).map(|_| ()),
            8 => store.flush(),
            9 => store.run_slice(operation[2] as usize + 1).map(|_| ()),
            10 if operation[2] < 20 => store.compact(),
            _ => {
                assert_eq!(store.get(&key).expect("a read"), model.get(&key).cloned());
                Ok(())
            }
        };
        done.expect("memory never fails");
    }
    for (key, value) in &model {
        assert_eq!(store.get(key).as_ref().map(Option::as_ref), Ok(Some(value)));
    }
}
