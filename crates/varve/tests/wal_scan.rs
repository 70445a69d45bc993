//! Reading a WAL segment back after anything that a crash or a fault of the medium can do to it.
//!
//! A cut tail gives the records in front of it; damage to promised records is reported; and a record that was
//! never written is never returned.

use varve::codec::frame::record_for;
use varve::error::Error;
use varve::memtable::Memtable;
use varve::types::{FileName, Kind, SEQUENCE_MAX};
use varve::wal::{
    HeaderError, RECORD_HEADER_BYTES, Records, SEGMENT_HEADER_BYTES, Scan, SegmentHeader, Tail,
    header_was_lost, scan_segment, segment_salt,
};

const STORE: [u8; 16] = [9; 16];

const FILE: FileName = FileName { kind: varve::types::FileKind::Wal, id: 9 };

fn header(segment: u64) -> SegmentHeader {
    let salt = segment_salt(&STORE, segment, 0xfeed_beef_1234_5678);
    SegmentHeader { segment, salt, previous: segment - 1, previous_end: 4096, key: 0 }
}

/// Six records of different sizes, none of which promises anything.
fn memtable(first: u64) -> (Memtable, Vec<usize>) {
    let mut memtable = Memtable::new(header(9));
    let mut ends = vec![memtable.image().len()];
    let mut next = first;
    for (index, count) in [1u32, 3, 0, 2, 1, 5].into_iter().enumerate() {
        memtable.begin(index as u64, 300, next, count);
        for entry in 0..count {
            let kind = [Kind::Set, Kind::Delete, Kind::RangeDelete][(entry % 3) as usize];
            let expires = (entry == 4).then_some(1_700_000_000_000);
            memtable.push(kind, expires, &[entry as u8; 9], &vec![index as u8; index * 17]);
        }
        memtable.end(0);
        ends.push(memtable.image().len());
        next += u64::from(count);
    }
    (memtable, ends)
}

fn sealed() -> (Memtable, Vec<usize>) {
    let (mut memtable, mut ends) = memtable(100);
    memtable.seal();
    ends.push(memtable.image().len());
    (memtable, ends)
}

fn scan(bytes: &[u8]) -> Result<Scan, Error> {
    scan_segment(bytes, &header(9), None, FILE)
}

fn corrupt_at<T>(result: Result<T, Error>) -> Option<u64> {
    match result {
        Err(Error::Corrupt(damage)) if damage.file == Some(FILE) => Some(damage.offset),
        Err(other) => panic!("{other:?}"),
        Ok(_) => None,
    }
}

#[test]
fn a_whole_segment_is_clean_whatever_a_recycled_file_holds_behind_it() {
    let (memtable, _) = sealed();
    let end = memtable.image().len();
    let expected = Scan { end, records: 7, sealed: true, tail: Tail::Clean, last_sequence: Some(111) };
    let mut bytes = memtable.image().to_vec();
    assert_eq!(scan(&bytes), Ok(expected));
    bytes.resize(end + 8192, 0);
    assert_eq!(scan(&bytes), Ok(expected), "zeros that the file was grown by");
    // The same records under another salt, as an earlier segment left them at the same offsets.
    let mut earlier = Memtable::new(header(4));
    for sequence in 1..60 {
        earlier.begin(0, 0, sequence, 1);
        earlier.push(Kind::Set, None, b"old", &[7; 40]);
        earlier.end(earlier.image().len() as u32);
    }
    let mut recycled = earlier.image().to_vec();
    assert!(recycled.len() > end);
    recycled[..end].copy_from_slice(memtable.image());
    assert_eq!(scan(&recycled), Ok(expected), "records of an earlier segment");
}

#[test]
fn a_tail_torn_at_any_byte_leaves_the_whole_records_in_front() {
    let (memtable, ends) = memtable(100);
    let image = memtable.image();
    for len in SEGMENT_HEADER_BYTES..=image.len() {
        let records = ends.iter().filter(|&&end| end <= len).count() - 1;
        let found = scan(&image[..len]).unwrap();
        assert_eq!((found.end, found.records as usize), (ends[records], records), "{len} bytes");
        let torn = Tail::Torn { valid_records_after: 0 };
        assert_eq!(found.tail, if len == ends[records] { Tail::Clean } else { torn }, "{len} bytes");
        // The same, in a file that was grown by zeros before.
        let mut grown = image[..len].to_vec();
        grown.resize(image.len() + 512, 0);
        let found = scan(&grown).unwrap();
        // Where the bytes that were cut off are zeros themselves, nothing was lost.
        assert!(
            found.end == ends[records] || image[len..found.end].iter().all(|&byte| byte == 0),
            "{len} bytes"
        );
        let again = Memtable::from_segment(grown, header(9), found.end, FILE).unwrap();
        assert_eq!(again.image(), &image[..found.end]);
    }
}

#[test]
fn any_flipped_byte_of_a_sealed_segment_shows_or_changes_nothing() {
    let (memtable, ends) = sealed();
    let seal = ends[ends.len() - 2];
    for byte in 0..memtable.image().len() {
        for mask in [0x01, 0x80, 0xff] {
            let mut bytes = memtable.image().to_vec();
            bytes[byte] ^= mask;
            if byte < SEGMENT_HEADER_BYTES {
                assert_eq!(SegmentHeader::decode(&bytes), Err(HeaderError::Torn), "byte {byte}");
                assert!(header_was_lost(&bytes, 9, &STORE), "byte {byte}");
                continue;
            }
            let hit = ends.iter().rposition(|&end| end <= byte).unwrap();
            if byte < seal {
                assert_eq!(corrupt_at(scan(&bytes)), Some(ends[hit] as u64), "byte {byte}");
            } else {
                let found = scan(&bytes).unwrap();
                assert_eq!((found.end, found.records, found.sealed), (seal, 6, false), "byte {byte}");
                assert_eq!(found.tail, Tail::Torn { valid_records_after: 0 }, "byte {byte}");
            }
        }
    }
}

#[test]
fn a_flipped_byte_of_an_unsealed_segment_cuts_there_and_says_so() {
    let (memtable, ends) = memtable(100);
    for byte in SEGMENT_HEADER_BYTES..memtable.image().len() {
        let mut bytes = memtable.image().to_vec();
        bytes[byte] ^= 0x10;
        let hit = ends.iter().rposition(|&end| end <= byte).unwrap();
        let found = scan(&bytes).unwrap();
        let after = 6 - hit as u32 - 1;
        assert_eq!((found.end, found.records as usize), (ends[hit], hit), "byte {byte}");
        assert_eq!(found.tail, Tail::Torn { valid_records_after: after }, "byte {byte}");
    }
}

#[test]
fn a_later_promise_turns_a_cut_into_corruption_only_where_it_reaches() {
    let (mut memtable, ends) = memtable(100);
    // The seventh record states that everything up to the third is durable.
    memtable.begin(0, 0, 500, 1);
    memtable.push(Kind::Set, None, b"later", b"");
    memtable.end(ends[3] as u32);
    for (record, &start) in ends[..6].iter().enumerate() {
        let mut bytes = memtable.image().to_vec();
        bytes[start + RECORD_HEADER_BYTES] ^= 1;
        let result = scan(&bytes);
        if start < ends[3] {
            assert_eq!(corrupt_at(result), Some(start as u64), "record {record}");
        } else {
            assert_eq!(result.unwrap().end, start, "record {record}");
        }
    }
}

#[test]
fn a_named_end_must_be_reached_and_what_is_behind_it_does_not_count() {
    let (memtable, ends) = memtable(100);
    let image = memtable.image();
    for &end in &ends {
        let found = scan_segment(image, &header(9), Some(end as u64), FILE).unwrap();
        assert_eq!((found.end, found.tail), (end, Tail::Clean));
        if end < image.len() {
            let mut bytes = image.to_vec();
            bytes[end + 9] ^= 1;
            assert_eq!(scan_segment(&bytes, &header(9), Some(end as u64), FILE), Ok(found));
        }
        for byte in (SEGMENT_HEADER_BYTES..end).step_by(3) {
            let mut bytes = image.to_vec();
            bytes[byte] ^= 1;
            let hit = ends.iter().rposition(|&end| end <= byte).unwrap();
            let result = scan_segment(&bytes, &header(9), Some(end as u64), FILE);
            assert_eq!(corrupt_at(result), Some(ends[hit] as u64), "byte {byte}");
        }
    }
    for wrong in [ends[2] as u64 + 8, image.len() as u64 + 8, u64::MAX, 0, 47] {
        let result = scan_segment(image, &header(9), Some(wrong), FILE);
        assert!(corrupt_at(result).is_some(), "named end {wrong}");
    }
}

#[test]
fn a_lost_header_differs_from_a_recycled_file() {
    let (memtable, _) = memtable(100);
    let image = memtable.image();
    assert!(!header_was_lost(image, 9, &STORE), "the header is whole");
    let mut zeroed = image.to_vec();
    zeroed[..SEGMENT_HEADER_BYTES].fill(0);
    assert!(header_was_lost(&zeroed, 9, &STORE));
    assert!(!header_was_lost(&zeroed, 9, &[8; 16]), "the segment of another store");
    assert!(!header_was_lost(&zeroed[..SEGMENT_HEADER_BYTES + 10], 9, &STORE), "no record follows");
    assert!(!header_was_lost(&[], 9, &STORE));
    // A crash while the header of segment 10 was written over the one of segment 9: records of 9 follow it,
    // not of 10.
    let new = header(10).encode();
    for len in 0..SEGMENT_HEADER_BYTES {
        let mut bytes = image.to_vec();
        bytes[..len].copy_from_slice(&new[..len]);
        assert!(!header_was_lost(&bytes, 10, &STORE), "{len} bytes of the new header");
    }
}

#[test]
fn a_header_of_another_version_differs_from_a_torn_one() {
    let mut bytes = header(9).encode();
    assert_eq!(SegmentHeader::decode(&bytes), Ok(header(9)));
    bytes[4] = 2;
    let hash = varve::codec::hash::xxh3(&bytes[..40], 0);
    bytes[40..].copy_from_slice(&hash.to_le_bytes());
    assert_eq!(SegmentHeader::decode(&bytes), Err(HeaderError::Version(2)));
    assert_eq!(SegmentHeader::decode(&bytes[..47]), Err(HeaderError::Torn));
}

#[test]
fn a_record_whose_checksum_holds_but_not_its_contents_is_corrupt() {
    let salt = header(9).salt;
    let with = |payload: &[u8]| {
        let mut bytes = header(9).encode().to_vec();
        bytes.extend(record_for(0, bytes.len() as u64, salt, 0, payload));
        bytes
    };
    // client, request, first sequence, count, then entries
    let scans_but_does_not_index: [&[u8]; 5] = [
        &[0, 0, 1, 1],
        &[0, 0, 1, 1, 9, 0, 0],
        &[0, 0, 1, 1, 1, 1, 0],
        &[0, 0, 1, 1, 1, 0, 0, 0],
        &[0, 0, 1, 0xff, 0xff, 0xff, 0xff, 0xff, 0x0f, 1, 0, 0],
    ];
    for payload in scans_but_does_not_index {
        let bytes = with(payload);
        let end = scan(&bytes).unwrap().end;
        let indexed = Memtable::from_segment(bytes, header(9), end, FILE);
        assert_eq!(corrupt_at(indexed), Some(48), "{payload:?}");
    }
    let mut beyond = vec![0, 0];
    varve::codec::varint::put_u64(&mut beyond, SEQUENCE_MAX);
    beyond.push(2);
    for payload in [&[0][..], &[0, 0, 0, 0], &[0, 0, 1, 0x80, 0], &beyond] {
        assert_eq!(corrupt_at(scan(&with(payload))), Some(48), "{payload:?}");
    }
    let mut twice = with(&[0, 0, 5, 1, 1, 0, 0]);
    twice.extend(record_for(0, twice.len() as u64, salt, 0, &[0, 0, 5, 1, 1, 0, 0]));
    assert_eq!(corrupt_at(scan(&twice)), Some(48 + 32), "a sequence that was already given");
}

#[test]
fn records_carry_who_asked_for_them() {
    let (memtable, ends) = memtable(100);
    let records: Vec<_> = Records::new(memtable.image(), header(9).salt).map(Result::unwrap).collect();
    let offsets: Vec<_> = records.iter().map(|record| record.offset).collect();
    assert_eq!(offsets, ends[..6]);
    let last = records[5].clone();
    assert_eq!((last.client, last.request, last.first_sequence, last.count), (5, 300, 107, 5));
    let entries: Vec<_> = last.entries.map(Result::unwrap).collect();
    assert_eq!(entries[4].expires, Some(1_700_000_000_000));
    assert_eq!(
        (entries[2].kind, entries[2].key, entries[2].value.len()),
        (Kind::RangeDelete, &[2; 9][..], 85)
    );
}
