//! The parts of the inputs: golden files, and small structures as the engine encodes them.

use std::rc::Rc;

use varve::codec::cipher::{Encryption, Keyring};
use varve::compact::{JobInput, JobResult, JobSpec};
use varve::frame::header;
use varve::manifest::{Edit, Version};
use varve::memtable::Memtable;
use varve::storage::{Claim, MemorySlots, SlotHeader, SlotPool, Storage};
use varve::table::{FilterBuilder, TRAILER_BYTES, TableOptions, hash_key};
use varve::types::{FileName, Kind, RangeTombstone};
use varve::wal::{SegmentHeader, segment_salt};
use varve::{Durability, Host, Options, Store};

use crate::table_common::{ModelEntry, STORE, TABLE, build, encrypted, plain};

pub type Corpus = Vec<Vec<u8>>;

/// The header of the segments here.
pub fn segment_header() -> SegmentHeader {
    SegmentHeader { segment: 5, salt: segment_salt(&[9; 16], 5, 77), previous: 4, previous_end: 48, key: 0 }
}

fn memtable(entries: u64) -> Memtable {
    let mut memtable = Memtable::new(segment_header());
    for sequence in 1..=entries {
        memtable.begin(1, sequence, 2 * sequence, 2);
        memtable.push(Kind::Set, None, format!("key{}", sequence * 7 % 20).as_bytes(), b"value");
        match sequence % 3 {
            0 => memtable.push(Kind::RangeDelete, None, b"key1", b"key3"),
            1 => memtable.push(Kind::Delete, None, b"key2", &[]),
            _ => memtable.push(Kind::Set, Some(99), b"", &[7; 50]),
        }
        memtable.end(0);
    }
    memtable
}

pub fn segments() -> Corpus {
    let mut sealed = memtable(3);
    sealed.seal();
    let golden = include_bytes!("../golden/segment-v1.wal").to_vec();
    vec![golden, memtable(0).image().to_vec(), memtable(20).image().to_vec(), sealed.image().to_vec()]
}

pub fn manifests() -> Corpus {
    vec![include_bytes!("../golden/manifest-v1.bin").to_vec()]
}

pub fn slot_headers() -> Corpus {
    let header = |claims| SlotHeader { store: STORE, claims, generation: 3 }.encode(0);
    let claim = |id, start| Claim { file: FileName::wal(id), generation: id, start, room: 8192 };
    vec![
        include_bytes!("../golden/slot-header-v2.bin").to_vec(),
        header(Vec::new()),
        header(vec![claim(8, 4096), claim(9, 12_288)]),
        SlotHeader::whole(STORE, FileName::table(9), 3).encode(0),
    ]
}

pub fn edits() -> Corpus {
    let (meta, _) = table(&plain(), true);
    let edit = Edit { added: vec![(0, meta.clone()), (3, meta)], removed: vec![1, 2], ..Edit::default() };
    let (mut edit_bytes, mut version_bytes) = (Vec::new(), Vec::new());
    edit.encode(&mut edit_bytes);
    Version::default().encode(&mut version_bytes);
    vec![edit_bytes, version_bytes]
}

/// A table of some versions and tombstones, in blocks of 256 bytes.
pub fn table(keyring: &Keyring, with_tombstones: bool) -> (varve::table::TableMeta, Vec<u8>) {
    let entries: Vec<ModelEntry> = (0..120_u64)
        .map(|n| ModelEntry {
            key: format!("user:{:04}", n / 2).into_bytes(),
            sequence: 1000 - n,
            kind: if n % 7 == 0 { Kind::Delete } else { Kind::Set },
            expires: (n % 5 == 0).then_some(n),
            value: if n % 7 == 0 { Vec::new() } else { vec![n as u8; n as usize % 40] },
        })
        .collect();
    let tombstone = RangeTombstone { start: b"a".to_vec(), end: b"user:0003".to_vec(), sequence: 7 };
    let tombstones = if with_tombstones { vec![tombstone] } else { Vec::new() };
    let options =
        TableOptions { block_bytes: 256, restart_interval: 4, compress: false, ..TableOptions::default() };
    build(keyring, &entries, &tombstones, &options)
}

fn part(handle: varve::table::BlockHandle, file: &[u8]) -> Vec<u8> {
    let start = handle.offset as usize;
    file[start..(start + handle.len as usize).saturating_sub(TRAILER_BYTES).max(start)].to_vec()
}

fn opened() -> (Rc<varve::table::Table>, Vec<u8>) {
    let (meta, file) = table(&plain(), true);
    let mut blocks = varve::table::MemoryBlocks::new(plain());
    blocks.insert(TABLE, file.clone());
    (crate::table_common::open(&meta, &blocks).expect("a table opens"), file)
}

pub fn blocks() -> Corpus {
    let (table, file) = opened();
    (0..table.index().len().min(4)).map(|n| part(table.index().handle(n), &file)).collect()
}

/// Whole tables, and ones without their footer.
pub fn tables() -> Corpus {
    let whole: Corpus = [(plain(), false), (plain(), true), (encrypted(), true)]
        .map(|(keyring, tombstones)| table(&keyring, tombstones).1)
        .into();
    let cut = whole.iter().map(|file| file[..file.len() - 96].to_vec());
    cut.chain(whole.iter().cloned()).collect()
}

pub fn filters() -> Corpus {
    let filter = |keys: u32| {
        let mut filter = FilterBuilder::new(10);
        (0..keys).for_each(|key| filter.add(hash_key(&key.to_le_bytes())));
        filter.finish()
    };
    vec![filter(0), filter(1), filter(300)]
}

pub fn indexes() -> Corpus {
    let (table, file) = opened();
    let footer = table.footer();
    vec![part(footer.index, &file), part(footer.range_tombstones, &file), part(footer.properties, &file)]
}

pub fn footers() -> Corpus {
    vec![opened().0.footer().encode(&STORE).to_vec()]
}

fn request(number: u32, operation: u8, key: &[u8], value: &[u8]) -> Vec<u8> {
    let mut bytes = number.to_le_bytes().to_vec();
    bytes.extend_from_slice(&[operation, 2, 0, 0]);
    bytes.extend_from_slice(&(key.len() as u32).to_le_bytes());
    bytes.extend_from_slice(&(value.len() as u32).to_le_bytes());
    bytes.extend_from_slice(key);
    bytes.extend_from_slice(value);
    bytes.resize(bytes.len().next_multiple_of(4), 0);
    bytes
}

pub fn frames() -> Corpus {
    let mut scan = vec![2 | 4, 0, 0, 0];
    [u32::MAX, 100, 0, 0].iter().for_each(|word| scan.extend_from_slice(&word.to_le_bytes()));
    let keys =
        [&2_u32.to_le_bytes()[..], &3_u32.to_le_bytes(), b"key\0", &1_u32.to_le_bytes(), b"k\0\0\0"].concat();
    let batch =
        [&1_u32.to_le_bytes()[..], &[1, 0, 0, 0], &1_u32.to_le_bytes(), &1_u32.to_le_bytes(), b"kv\0\0"]
            .concat();
    let of_snapshot_1 = |mut request: Vec<u8>| {
        request[6] = 1;
        request
    };
    let of = |operation: u8| match operation {
        3 | 6 => request(u32::from(operation), operation, b"", if operation == 6 { &batch } else { &keys }),
        7 => request(7, 7, &1_u32.to_le_bytes(), &scan),
        13 | 14 => of_snapshot_1(request(u32::from(operation), operation, b"", b"")),
        15 => of_snapshot_1(request(15, 15, b"", &[1_u64.to_le_bytes(), 1_u64.to_le_bytes()].concat())),
        8 => request(8, 8, &1_u32.to_le_bytes(), &9_u32.to_le_bytes()),
        9 => request(9, 9, &1_u32.to_le_bytes(), b""),
        _ => request(u32::from(operation), operation, b"key", b"value"),
    };
    let framed =
        |requests: &[Vec<u8>]| [&header(5, 1, requests.len() as u32)[..], &requests.concat()].concat();
    let frame =
        |operations: &[u8]| framed(&operations.iter().map(|operation| of(*operation)).collect::<Vec<_>>());
    let mut frames: Corpus = (0..16).map(|operation| frame(&[operation])).collect();
    frames.push(frame(&[4, 1, 5, 1, 4, 7, 8, 9, 6, 3, 10, 11]));
    // A transaction that read a key and a range of snapshot 1.
    let item = |kind: u32, key: &[u8], value: &[u8]| request(kind, 0, key, value);
    let items = [item(3, b"key", b""), item(4, b"a", b"z"), item(1, b"key", b"mine")];
    let items = items.map(|item| [&item[..4], &item[8..]].concat()).concat();
    let commit = of_snapshot_1(request(6, 6, b"", &[&3_u32.to_le_bytes()[..], &items].concat()));
    frames.push(framed(&[of(4), of(13), commit.clone(), of(5), commit, of(14)]));
    frames
}

pub fn job_specs() -> Corpus {
    let (meta, _) = table(&plain(), true);
    let whole = memtable(20);
    let flush = JobInput::Memtable { image: whole.image().to_vec(), order: whole.freeze_order() };
    let merge = JobInput::Runs(vec![vec![Rc::new(meta.clone())], vec![Rc::new(meta.clone())]]);
    let spec = |input| JobSpec {
        keyring: encrypted(),
        level: 1,
        bottom: false,
        compress: true,
        block_bytes: 256,
        restart_interval: 4,
        bits_per_key: 10,
        table_bytes: 1000,
        first_output: 20,
        outputs_max: 9,
        raw_bytes_max: 100_000,
        end: Some(b"user:0040".to_vec()),
        now_ms: 3,
        tombstones_until: 900,
        below: vec![vec![Rc::new(meta.clone())]],
        above: Vec::new(),
        input,
    };
    vec![spec(flush).encode(), spec(merge).encode()]
}

pub fn job_results() -> Corpus {
    let (meta, _) = table(&plain(), false);
    let result = JobResult {
        tables: vec![meta.clone(), meta],
        until: Some(b"user".to_vec()),
        skipped: vec![(3, 400), (9, 1)],
        bytes_read: 1000,
        bytes_written: 2000,
        entries_dropped: 4,
        entries_expired: 2,
    };
    vec![JobResult::default().encode(), result.encode()]
}

/// How an encrypted store begins here, and its keys.
pub fn encrypted_options() -> Options {
    let encryption = Encryption { keyring: encrypted(), slots: b"what wraps the keys".to_vec() };
    Options { encryption, ..small_options() }
}

/// Small memtables, so that a few writes make tables.
pub fn small_options() -> Options {
    Options { memtable_bytes_min: 2048, memtable_bytes_max: 4096, l0_trigger: 2, ..Options::default() }
}

/// An encrypted store with tables and a log.
pub fn encrypted_store() -> SlotPool<MemorySlots> {
    let host = Host { now_ms: 1, entropy: 3, store_id: STORE };
    let pool = SlotPool::open(MemorySlots::new(40)).expect("a pool opens");
    let (mut store, _) = Store::open(pool, encrypted_options(), host).expect("a new store opens");
    for n in 0..60_u8 {
        store.set(&[n % 40, 1], &[n; 40]).expect("room");
        store.commit(Durability::Relaxed).expect("room");
        if n % 25 == 24 {
            store.flush().expect("room");
        }
    }
    store.into_storage()
}

/// Each file of the encrypted store, behind its place in the list of files.
pub fn encrypted_files() -> Corpus {
    let pool = encrypted_store();
    let read = |(at, (file, len)): (usize, (FileName, u64))| {
        let mut bytes = vec![0; 1 + len as usize];
        bytes[0] = at as u8;
        pool.read(file, 0, &mut bytes[1..]).expect("memory reads");
        bytes
    };
    pool.list().into_iter().enumerate().map(read).collect()
}

/// Three bytes an operation: what, which key, how much.
pub fn operations() -> Corpus {
    let operation = |n: usize| [(n * 5 % 13) as u8, (n * 7 % 32) as u8, (n * 11 % 200) as u8];
    [5, 40, 200].iter().map(|&count| (0..count).flat_map(operation).collect()).collect()
}
