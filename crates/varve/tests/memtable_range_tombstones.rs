//! Range tombstones lie in a list beside the tree, and survive a reopening, a freeze and a rollback like
//! entries do.

use varve::memtable::Memtable;
use varve::types::{FileName, Kind, RangeTombstone};
use varve::wal::{SegmentHeader, segment_salt};

fn header() -> SegmentHeader {
    SegmentHeader { segment: 1, salt: segment_salt(&[9; 16], 1, 5), previous: 0, previous_end: 0, key: 0 }
}

fn put(memtable: &mut Memtable, sequence: u64, kind: Kind, key: &[u8], value: &[u8]) {
    memtable.begin(0, 0, sequence, 1);
    memtable.push(kind, None, key, value);
    memtable.end(0);
}

/// 10: b..d deleted, 11: c set, 12: a..c deleted, 13: c set again
fn memtable() -> Memtable {
    let mut memtable = Memtable::new(header());
    put(&mut memtable, 10, Kind::RangeDelete, b"b", b"d");
    put(&mut memtable, 11, Kind::Set, b"c", b"1");
    put(&mut memtable, 12, Kind::RangeDelete, b"a", b"c");
    put(&mut memtable, 13, Kind::Set, b"c", b"2");
    memtable
}

#[test]
fn the_newest_covering_tombstone_at_the_snapshot_is_returned() {
    let memtable = memtable();
    for (key, snapshot, expected) in [
        (&b"a"[..], 20, 12),
        (b"a", 11, 0),
        (b"b", 20, 12),
        (b"b", 11, 10),
        (b"b", 9, 0),
        (b"c", 20, 10),
        (b"d", 20, 0),
        (b"", 20, 0),
    ] {
        assert_eq!(memtable.tombstone_over(key, snapshot), expected, "{key:?} at {snapshot}");
    }
    assert_eq!(memtable.get(b"b", 20), None, "a range tombstone is not an entry of its first key");
    assert_eq!((memtable.entries(), memtable.min_sequence(), memtable.max_sequence()), (4, 10, 13));
}

#[test]
fn they_are_reopened_and_frozen_with_the_rest() {
    let memtable = memtable();
    let image = memtable.image().to_vec();
    let again = Memtable::from_segment(image.clone(), header(), image.len(), FileName::wal(1)).unwrap();
    assert!(again.range_tombstones().eq(memtable.range_tombstones()));
    assert_eq!(again.bytes(), memtable.bytes());
    let order = again.freeze_order();
    let frozen = Memtable::frozen(&image, &order).unwrap();
    let sorted = |mut ranges: Vec<RangeTombstone>| {
        ranges.sort_by_key(|range| range.sequence);
        ranges
    };
    assert_eq!(
        sorted(frozen.range_tombstones().to_vec()),
        sorted(memtable.range_tombstones().cloned().collect())
    );
    let expected = RangeTombstone { start: b"a".to_vec(), end: b"c".to_vec(), sequence: 12 };
    assert_eq!(frozen.range_tombstones()[1], expected);
    let sequences: Vec<_> = frozen.map(|entry| entry.unwrap().sequence).collect();
    assert_eq!(sequences, [13, 11]);
}

#[test]
fn a_rollback_takes_them_back() {
    let mut memtable = memtable();
    let (end, bytes) = (memtable.image().len(), memtable.bytes());
    put(&mut memtable, 14, Kind::RangeDelete, b"", b"z");
    assert_eq!(memtable.tombstone_over(b"c", 20), 14);
    memtable.rollback(end);
    assert_eq!(memtable.tombstone_over(b"c", 20), 10);
    assert_eq!((memtable.bytes(), memtable.max_sequence()), (bytes, 13));
}

#[test]
fn a_frozen_memtable_that_lost_its_image_is_refused_not_shortened() {
    let memtable = memtable();
    let order = memtable.freeze_order();
    for len in 0..order.len() {
        assert!(Memtable::frozen(memtable.image(), &order[..len]).is_err(), "{len} bytes of order");
    }
    assert!(Memtable::frozen(&[], &order).is_err());
    // Arbitrary places in the image: an error or some entry inside it, never a panic.
    for byte in 0..order.len() {
        let mut changed = order.clone();
        changed[byte] ^= 0xff;
        if let Ok(frozen) = Memtable::frozen(memtable.image(), &changed) {
            assert!(frozen.count() <= 4);
        }
    }
}
