//! For any bytes of a segment: an answer or an error, never a panic, and never more memory than a small
//! multiple of the input. `decode_segment` is what a fuzzer would call.

use proptest::collection::vec;
use proptest::prelude::*;
use varve::codec::frame::record_for;
use varve::codec::reader::Reader;
use varve::codec::varint::put_u64;
use varve::memtable::Memtable;
use varve::types::FileName;
use varve::wal::{Records, SegmentHeader, Tail, header_was_lost, scan_segment, segment_salt};

use crate::fuzz::allocations::most_allocated;

fn header() -> SegmentHeader {
    SegmentHeader { segment: 5, salt: segment_salt(&[9; 16], 5, 77), previous: 4, previous_end: 48, key: 0 }
}

/// Decodes `bytes` in every way there is. Returns how many entries a memtable found.
fn decode_segment(bytes: &[u8], named_end: Option<u64>) -> usize {
    let _ = SegmentHeader::decode(bytes);
    let _ = header_was_lost(bytes, 5, &[9; 16]);
    let mut walked = 0;
    for record in Records::new(bytes, header().salt).flatten() {
        walked += record.entries.flatten().map(|entry| entry.key.len() + entry.value.len()).sum::<usize>();
    }
    assert!(walked <= bytes.len());
    let Ok(scan) = scan_segment(bytes, &header(), named_end, FileName::wal(5)) else { return 0 };
    assert!(scan.end <= bytes.len() && scan.end.is_multiple_of(8));
    assert!(named_end.is_none() || scan.tail == Tail::Clean);
    let mut entries = 0;
    let spent = most_allocated(|| {
        let copy = bytes.to_vec();
        let found = Memtable::from_segment(copy, header(), scan.end, FileName::wal(5));
        let Ok(memtable) = found else { return };
        let order = memtable.freeze_order();
        let frozen = Memtable::frozen(memtable.image(), &order).unwrap();
        assert_eq!(frozen.range_tombstones().len() + frozen.count(), memtable.entries());
        entries = memtable.entries();
    });
    // An entry takes 3 bytes at least, and 25 to 40 in the tree, twice that while a vector grows.
    assert!(spent <= 4096 + 64 * bytes.len(), "{spent} bytes allocated for {}", bytes.len());
    entries
}

/// A payload that is nearly right: small numbers in front, then anything.
fn payload() -> impl Strategy<Value = Vec<u8>> {
    let entry = (any::<u8>(), 0u8..8, 0u8..8, vec(any::<u8>(), 0..16))
        .prop_map(|(kind, key, value, bytes)| [&[kind & 0x83, key, value][..], &bytes].concat());
    let good = (vec(any::<u8>(), 0..8), vec(any::<u8>(), 0..8))
        .prop_map(|(key, value)| [&[1, key.len() as u8, value.len() as u8][..], &key, &value].concat());
    let entries = vec(prop_oneof![1 => entry, 9 => good], 0..6);
    (0u64..50, prop_oneof![9 => Just(None), 1 => any::<u64>().prop_map(Some)], entries).prop_map(
        |(first, count, entries)| {
            let mut payload = vec![1, 2];
            put_u64(&mut payload, first);
            put_u64(&mut payload, count.unwrap_or(entries.len() as u64));
            payload.extend(entries.concat());
            payload
        },
    )
}

fn named_end() -> impl Strategy<Value = Option<u64>> {
    prop_oneof![Just(None), (0u64..700).prop_map(Some)]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, ..ProptestConfig::default() })]

    #[test]
    fn noise(bytes in vec(any::<u8>(), 0..600), end in named_end()) {
        decode_segment(&bytes, end);
    }

    #[test]
    fn noise_behind_good_checksums(payloads in vec(payload(), 0..8), end in named_end()) {
        let mut bytes = header().encode().to_vec();
        for payload in &payloads {
            bytes.extend(record_for(0, bytes.len() as u64, header().salt, 0, payload));
        }
        decode_segment(&bytes, end);
    }

    #[test]
    fn good_records_with_a_few_bytes_changed(
        values in vec(vec(any::<u8>(), 0..40), 1..20),
        changes in vec((any::<prop::sample::Index>(), any::<u8>()), 0..4),
        cut in any::<prop::sample::Index>(),
        promises in any::<bool>(),
    ) {
        let mut memtable = Memtable::new(header());
        for (sequence, value) in (1..).zip(&values) {
            memtable.begin(1, sequence, sequence, 1);
            memtable.push(varve::types::Kind::Set, None, &value[..value.len() / 2], value);
            memtable.end(if promises { memtable.header().previous_end as u32 } else { 0 });
        }
        prop_assert_eq!(decode_segment(memtable.image(), None), values.len());
        let mut bytes = memtable.image().to_vec();
        for (at, byte) in &changes {
            let at = at.index(bytes.len());
            bytes[at] = *byte;
        }
        bytes.truncate(cut.index(bytes.len()) + 1);
        prop_assert!(decode_segment(&bytes, None) <= values.len());
    }

    #[test]
    fn a_reader_stays_inside_its_bytes(
        bytes in vec(any::<u8>(), 0..40),
        calls in vec((0u8..7, any::<usize>()), 0..12),
    ) {
        let mut reader = Reader::new(&bytes);
        for (call, len) in calls {
            let before = reader.position();
            let moved = match call {
                0 => reader.u8().is_ok(),
                1 => reader.u16().is_ok(),
                2 => reader.u32().is_ok(),
                3 => reader.u64().is_ok(),
                4 => reader.varint().is_ok(),
                5 => reader.prefixed().is_ok(),
                _ => reader.bytes(if len & 1 == 0 { len } else { len % 8 }).is_ok(),
            };
            prop_assert!(reader.position() <= bytes.len());
            prop_assert!(moved || reader.position() == before);
        }
    }
}
