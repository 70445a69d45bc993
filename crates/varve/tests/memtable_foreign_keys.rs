//! A key that shares no prefix with the others is found.
//!
//! The story: point reads went down the tree without comparing the prefixes that its nodes leave out, taking it that a key
//! which is there has all of them. A key at either end of the tree lies in a leaf that knows better, but below inner nodes
//! whose keys all begin otherwise: they sent the read to some other leaf, and it answered that there is no such key, or an
//! older version from a table. The simulator found scans and point reads at odds (seeds 398 and 286).

use varve::memtable::Memtable;
use varve::types::Kind;
use varve::wal::SegmentHeader;

#[test]
fn keys_before_and_behind_a_common_prefix_are_found_in_a_tree_of_any_height() {
    for count in [1, 40, 400, 4000] {
        let mut keys: Vec<Vec<u8>> = (0..count).map(|n| format!("abcdeab{n:05}").into_bytes()).collect();
        for foreign in ["", "a", "abcdea", "abcdeaz", "abd", "room", "zzzzzzz99999"] {
            keys.push(foreign.as_bytes().to_vec());
        }
        let mut memtable = Memtable::new(SegmentHeader::default());
        for (sequence, key) in (1..).zip(&keys) {
            memtable.begin(0, 0, sequence, 1);
            memtable.push(Kind::Set, None, key, key);
            memtable.end(0);
        }
        for (sequence, key) in (1..).zip(&keys) {
            let found = memtable.get(key, u64::MAX).map(|found| (found.sequence, found.value.to_vec()));
            assert_eq!(found, Some((sequence, key.clone())), "{} of {count}", key.escape_ascii());
        }
        for absent in ["abc", "abcdeabx", "room2", "\u{7f}"] {
            assert!(memtable.get(absent.as_bytes(), u64::MAX).is_none(), "{absent}");
        }
    }
}
