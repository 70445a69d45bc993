//! The bytes as they were once written: `golden/slot-header-v2.bin` is the header page of a slot,
//! `golden/manifest-v1.bin` a manifest file with a snapshot, an edit and a farewell. They must read as they did,
//! and be written as they were.
//!
//! `VARVE_BLESS=1 cargo test -p varve-engine --test engine golden_manifest` writes them anew, for a new format version only.

use std::path::PathBuf;

use varve::Keyring;
use varve::codec::frame::{record_for, scan};
use varve::codec::reader::Reader;
use varve::error::Error;
use varve::manifest::{ClientState, Edit, Floors, MANIFEST_HEADER_BYTES, Manifest, ManifestHeader, Version};
use varve::storage::{Claim, MemorySlots, SlotHeader, SlotPool, Storage};
use varve::table::TableMeta;
use varve::types::{FileName, StoreId};

const STORE: StoreId = *b"golden store  v1";
const SALT: u64 = 0x0123_4567_89ab_cdef;

/// The golden bytes; `made` takes their place when they are blessed.
fn golden(name: &str, made: &[u8]) -> Vec<u8> {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(name);
    if std::env::var_os("VARVE_BLESS").is_some() {
        std::fs::write(&path, made).expect("the golden file is written");
    }
    std::fs::read(&path).expect("the golden file is there")
}

fn table(id: u64, min_key: &[u8], max_key: &[u8]) -> TableMeta {
    TableMeta {
        key: 0,
        id,
        size: 70_000 + id,
        footer_hash: 0xfeed_f00d_0000_0000 + id,
        entries: 1000,
        tombstones: 20,
        range_tombstones: 1,
        min_sequence: 40,
        max_sequence: 300 + id,
        min_key: min_key.to_vec(),
        max_key: max_key.to_vec(),
        raw_bytes: 123_456,
        // Table 4 is narrowed.
        skipped_bytes: if id == 4 { 300 } else { 0 },
        first_expiry: 0,
        half_expiry: 0,
    }
}

fn first_edit() -> Edit {
    Edit {
        added: vec![(0, table(5, b"apple", b"melon")), (1, table(3, b"a", b"k")), (1, table(4, b"l", b"z"))],
        removed: vec![],
        floors: Floors {
            log_floor: 2,
            history_floor: 1,
            gc_sequence: 39,
            last_sequence: 305,
            next_table: 6,
            next_segment: 4,
            clock_ms: 1_700_000_000_000,
            ahead_ms: 0,
        },
        clients: vec![ClientState { client: 0xc11e47, request: 17, sequence: 305, flags: 2 }],
    }
}

fn second_edit() -> Edit {
    let floors =
        Floors { log_floor: 3, last_sequence: 400, next_table: 7, next_segment: 5, ..first_edit().floors };
    Edit { added: vec![(1, table(6, b"a", b"kiwi"))], removed: vec![5, 3], floors, clients: vec![] }
}

fn version() -> Version {
    Version::default().apply(&first_edit()).expect("fits").apply(&second_edit()).expect("fits")
}

fn file() -> Vec<u8> {
    let mut image = ManifestHeader { rotation: 4, epoch: 3, store: STORE, salt: SALT, key: 0 }.encode();
    let mut snapshot = vec![1];
    Version::default().apply(&first_edit()).expect("fits").encode(&mut snapshot);
    image.extend(record_for(0, image.len() as u64, SALT, 0, &snapshot));
    let mut edit = vec![2];
    second_edit().encode(&mut edit);
    for payload in [&edit[..], &[3, 5, 0, 0, 0, 0, 0, 0, 0]] {
        let end = image.len();
        image.extend(record_for(0, end as u64, SALT, end as u32, payload));
    }
    image
}

/// A store whose manifest 1 contains `bytes`.
fn store_with(bytes: &[u8]) -> SlotPool<MemorySlots> {
    let mut pool = SlotPool::open(MemorySlots::new(3)).expect("opens");
    pool.adopt(STORE);
    pool.create(FileName::manifest(1), 0).expect("created");
    pool.write(FileName::manifest(1), 0, bytes).expect("written");
    pool
}

#[test]
fn the_slot_header_is_written_and_read_as_in_version_2() {
    let claim = |file, generation, start, room| Claim { file, generation, start, room };
    let claims = vec![
        claim(FileName::wal(0x1122_3344), 70, 4096, 2 << 20),
        claim(FileName::table(7), 77, 3 << 20, u64::MAX),
    ];
    let header = SlotHeader { store: STORE, generation: 78, claims };
    let bytes = golden("slot-header-v2.bin", &header.encode(5));
    assert_eq!(SlotHeader::decode(&bytes, 5), Ok(Some(header.clone())));
    assert_eq!(header.encode(5), bytes);
}

#[test]
fn the_manifest_is_written_as_in_version_1() {
    assert_eq!(file(), golden("manifest-v1.bin", &file()));
}

#[test]
fn the_manifest_is_read_as_in_version_1() {
    let bytes = golden("manifest-v1.bin", &file());
    let mut ends = vec![MANIFEST_HEADER_BYTES];
    let found = scan(&bytes, MANIFEST_HEADER_BYTES, SALT, |frame| {
        ends.push(frame.end);
        Ok::<(), varve::codec::frame::Lost>(())
    });
    assert_eq!(found.map(|found| (found.end, found.records)), Ok((bytes.len(), 3)));
    let mut encoded = Vec::new();
    second_edit().encode(&mut encoded);
    let edit = &bytes[ends[1] + 25..][..encoded.len()];
    assert_eq!(Edit::decode(&mut Reader::new(edit)), Ok(second_edit()));

    // With its farewell, the file's successor is missing; without it, the file is the truth.
    let lost = Manifest::open(&mut store_with(&bytes), &Keyring::plain(STORE), 1).map(|_| ());
    assert_eq!(lost, Err(Error::corrupt(FileName::manifest(0), 0, "the newer manifest does not open")));
    let mut pool = store_with(&bytes[..ends[2]]);
    let (mut manifest, found, store) =
        Manifest::open(&mut pool, &Keyring::plain(STORE), 1).expect("opens").expect("exists");
    assert_eq!((&found, store), (&version(), STORE));
    assert_eq!((manifest.rotation(), manifest.epoch()), (4, 3));
    let edit = Edit { floors: found.floors, ..Edit::default() };
    manifest.commit(&mut pool, &found, &edit).expect("committed");
    assert_eq!((manifest.rotation(), manifest.epoch()), (5, 4));
}
