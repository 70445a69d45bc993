//! The bytes of a WAL segment, format version 1. When this fails, stores that exist can no longer be read:
//! raise the version and keep reading the old one.
//!
//! The code below wrote the file `golden/segment-v1.wal` when the format was fixed. `VARVE_BLESS=1 cargo test -p varve-engine --test
//! golden_wal` writes it anew, for a new format version only.

use varve::memtable::Memtable;
use varve::types::{FileName, Kind};
use varve::wal::{RECORD_HEADER_BYTES, SEGMENT_HEADER_BYTES, Scan, SegmentHeader, Tail, scan_segment};

const GOLDEN: &[u8] = include_bytes!("golden/segment-v1.wal");
const LONG_VALUE: [u8; 300] = [0x5a; 300];

fn header() -> SegmentHeader {
    // Readers take the salt from the header, whatever it is.
    let salt = 0x8888_8888_d0a5_74f9;
    SegmentHeader { segment: 7, salt, previous: 6, previous_end: 0x1000, key: 0 }
}

fn write() -> Memtable {
    let mut memtable = Memtable::new(header());
    memtable.begin(0, 0, 1000, 1);
    memtable.push(Kind::Set, None, b"varve", b"a layer of sediment, one per year");
    memtable.end(0);
    memtable.begin(0x1_0000, 300, 1001, 4);
    memtable.push(Kind::Delete, None, b"gone", b"");
    memtable.push(Kind::Set, Some(1_700_000_000_000), b"until", b"then");
    memtable.push(Kind::RangeDelete, None, b"from", b"to");
    memtable.push(Kind::Set, None, b"long", &LONG_VALUE);
    memtable.end(SEGMENT_HEADER_BYTES as u32);
    memtable.seal();
    memtable
}

#[test]
fn a_segment_is_written_as_ever() {
    let memtable = write();
    if std::env::var_os("VARVE_BLESS").is_some() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden/segment-v1.wal");
        std::fs::write(path, memtable.image()).expect("the golden file is written");
    }
    let first = memtable.image().iter().zip(GOLDEN).position(|(new, old)| new != old);
    assert_eq!(first, None, "the first byte that differs");
    assert_eq!(memtable.image().len(), GOLDEN.len());
}

#[test]
fn a_segment_is_read_as_ever() {
    assert_eq!(SegmentHeader::decode(GOLDEN), Ok(header()));
    let file = FileName::wal(7);
    let scan = scan_segment(GOLDEN, &header(), None, file).unwrap();
    let end = GOLDEN.len();
    assert_eq!(scan, Scan { end, records: 3, sealed: true, tail: Tail::Clean, last_sequence: Some(1004) });
    let memtable = Memtable::from_segment(GOLDEN.to_vec(), header(), end, file).unwrap();
    let found = |key: &[u8]| memtable.get(key, 2000).map(|found| (found.sequence, found.kind, found.expires));
    assert_eq!(found(b"varve"), Some((1000, Kind::Set, None)));
    assert_eq!(found(b"gone"), Some((1001, Kind::Delete, None)));
    assert_eq!(found(b"until"), Some((1002, Kind::Set, Some(1_700_000_000_000))));
    assert_eq!(memtable.tombstone_over(b"s", 2000), 1003);
    assert_eq!(memtable.get(b"long", 2000).unwrap().value, LONG_VALUE);
}

/// The picture in the documentation, checked byte by byte without the code that writes it.
#[test]
fn the_bytes_lie_where_the_documentation_says() {
    let salt = header().salt.to_le_bytes();
    assert_eq!(GOLDEN[..16], *b"VRVL\x01\0\0\0\x07\0\0\0\0\0\0\0");
    assert_eq!(GOLDEN[16..24], salt);
    assert_eq!(GOLDEN[24..40], *b"\x06\0\0\0\0\0\0\0\0\x10\0\0\0\0\0\0");
    let record = &GOLDEN[SEGMENT_HEADER_BYTES..];
    let tag = header().salt ^ SEGMENT_HEADER_BYTES as u64;
    assert_eq!(record[..8], tag.to_le_bytes());
    let payload = b"\0\0\xe8\x07\x01\x01\x05\x21varvea layer of sediment, one per year";
    assert_eq!(record[8..16], [payload.len() as u8, 0, 0, 0, 0, 0, 0, 0]);
    let hashed = [&record[..16], payload].concat();
    assert_eq!(record[16..24], varve::codec::hash::xxh3(&hashed, header().salt).to_le_bytes());
    assert_eq!(record[RECORD_HEADER_BYTES..][..payload.len()], *payload);
    let seal = &GOLDEN[GOLDEN.len() - RECORD_HEADER_BYTES..];
    let offset = (GOLDEN.len() - RECORD_HEADER_BYTES) as u32;
    assert_eq!((&seal[8..12], &seal[12..16]), (&[0; 4][..], &offset.to_le_bytes()[..]));
}
