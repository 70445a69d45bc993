//! The memtable against a sorted map of (key, sequence descending): the same answers after any history.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use proptest::collection::vec;
use proptest::prelude::*;
use varve::memtable::{Memtable, MemtableCursor};
use varve::types::{FileName, Kind, Sequence};
use varve::wal::{SegmentHeader, scan_segment, segment_salt};

type Written = (Kind, Option<u64>, Vec<u8>);
type Place = (Vec<u8>, Reverse<Sequence>);
type Model = BTreeMap<Place, Written>;
type Step = (Vec<u8>, Kind, Option<u64>, Vec<u8>);

fn header() -> SegmentHeader {
    SegmentHeader {
        segment: 3,
        salt: segment_salt(&[9; 16], 3, 0x1234_5678_9abc),
        previous: 2,
        previous_end: 800,
        key: 0,
    }
}

/// Keys that often repeat, often share long beginnings, and end at every place around a multiple of 8.
fn key() -> impl Strategy<Value = Vec<u8>> {
    let letter = prop_oneof![Just(0u8), Just(b'a'), Just(b'b'), Just(0xff)];
    prop_oneof![
        3 => vec(letter.clone(), 0..4),
        3 => (0usize..30, vec(letter, 0..3)).prop_map(|(len, tail)| [vec![b'p'; len], tail].concat()),
        2 => (0u16..400).prop_map(|id| [b"tenant/0001/events/".as_slice(), &id.to_be_bytes()].concat()),
        2 => vec(any::<u8>(), 0..24),
        1 => (120usize..140).prop_map(|len| vec![b'l'; len]),
    ]
}

fn step() -> impl Strategy<Value = Step> {
    let kind = prop_oneof![4 => Just(Kind::Set), 1 => Just(Kind::Delete)];
    let expires = prop_oneof![4 => Just(None), 1 => any::<u64>().prop_map(Some)];
    let value = prop_oneof![4 => vec(any::<u8>(), 0..6), 1 => vec(any::<u8>(), 100..300)];
    (key(), kind, expires, value)
}

fn write(memtable: &mut Memtable, model: &mut Model, next: &mut Sequence, batch: &[Step]) {
    memtable.begin(7, 9, *next, batch.len() as u32);
    for (key, kind, expires, value) in batch {
        memtable.push(*kind, *expires, key, value);
        model.insert((key.clone(), Reverse(*next)), (*kind, *expires, value.clone()));
        *next += 1;
    }
    memtable.end(0);
}

fn at(cursor: &MemtableCursor<'_>) -> Option<(Place, Written)> {
    let written = (cursor.kind(), cursor.expires(), cursor.value().to_vec());
    cursor.valid().then(|| ((cursor.key().to_vec(), Reverse(cursor.sequence())), written))
}

/// The entries that a reader of `snapshot` sees: of each key the newest version at or below it.
fn seen(model: &Model, snapshot: Sequence) -> Model {
    let mut seen = Model::new();
    let mut last = None;
    for ((key, Reverse(sequence)), written) in model {
        if *sequence <= snapshot && last != Some(key) {
            seen.insert((key.clone(), Reverse(*sequence)), written.clone());
            last = Some(key);
        }
    }
    seen
}

/// Readers of every age: before all of it, at some sequence in it, at the present.
fn snapshots(memtable: &Memtable) -> [Sequence; 7] {
    let (first, last) = (memtable.min_sequence(), memtable.max_sequence());
    let within = |part: u64| first + (last - first) / part;
    [0, first, within(3), within(2), last.saturating_sub(1), last, Sequence::MAX]
}

fn check(memtable: &Memtable, model: &Model, probes: &[Vec<u8>]) {
    assert_eq!(memtable.entries(), model.len());
    for snapshot in snapshots(memtable) {
        let seen = seen(model, snapshot);
        let mut cursor = memtable.cursor(snapshot);
        cursor.seek_first();
        for (key, written) in &seen {
            assert_eq!(at(&cursor), Some((key.clone(), written.clone())), "forward at {snapshot}");
            cursor.next();
        }
        assert!(!cursor.valid());
        let is_unseen = |((key, _), (kind, ..)): (&Place, &Written)| {
            *kind == Kind::Set && !seen.contains_key(&first_of(model, key))
        };
        let mut newest = model.iter().filter(|((key, sequence), _)| first_of(model, key).1 == *sequence);
        assert_eq!(cursor.passed_newer(), newest.any(is_unseen), "newer at {snapshot}");
        cursor.seek_last();
        for (key, written) in seen.iter().rev() {
            assert_eq!(at(&cursor), Some((key.clone(), written.clone())), "backward at {snapshot}");
            cursor.prev();
        }
        assert!(!cursor.valid());
    }
    let written = model.keys().map(|(key, _)| key).step_by(1 + model.len() / 64);
    for key in probes.iter().chain(written) {
        check_at(memtable, model, key);
    }
    let order = memtable.freeze_order();
    let frozen: Vec<_> = Memtable::frozen(memtable.image(), &order).unwrap().map(Result::unwrap).collect();
    assert_eq!(frozen.len(), model.len());
    for (entry, ((key, Reverse(sequence)), (kind, expires, value))) in frozen.iter().zip(model) {
        assert_eq!((entry.key, entry.sequence, entry.kind), (key.as_slice(), *sequence, *kind));
        assert_eq!((entry.expires, entry.value), (*expires, value.as_slice()));
    }
}

/// The newest version of a key.
fn first_of(model: &Model, key: &[u8]) -> Place {
    model.range((key.to_vec(), Reverse(Sequence::MAX))..).next().unwrap().0.clone()
}

fn check_at(memtable: &Memtable, model: &Model, key: &[u8]) {
    let start = (key.to_vec(), Reverse(Sequence::MAX));
    for snapshot in snapshots(memtable) {
        let mut ahead = model.range(&start..).filter(|((_, Reverse(sequence)), _)| *sequence <= snapshot);
        let mut cursor = memtable.cursor(snapshot);
        cursor.seek(key);
        let expected = ahead.next();
        assert_eq!(
            at(&cursor),
            expected.map(|(key, written)| (key.clone(), written.clone())),
            "seek {key:?}"
        );
        cursor.seek_before(key);
        let mut before =
            model.range(..&start).rev().filter(|((_, Reverse(sequence)), _)| *sequence <= snapshot);
        let expected = before.next().map(|((key, _), _)| {
            let mut versions = model.range((key.clone(), Reverse(snapshot))..);
            versions.next().unwrap()
        });
        assert_eq!(
            at(&cursor),
            expected.map(|(key, written)| (key.clone(), written.clone())),
            "before {key:?}"
        );
        let from = (key.to_vec(), Reverse(snapshot));
        let expected = model.range(from..).next().filter(|((found, _), _)| found == key);
        let found = memtable.get(key, snapshot);
        let found = found.map(|found| (found.sequence, found.kind, found.expires, found.value.to_vec()));
        let expected = expected.map(|((_, Reverse(sequence)), (kind, expires, value))| {
            (*sequence, *kind, *expires, value.clone())
        });
        assert_eq!(found, expected, "get {key:?} at {snapshot}");
    }
}

fn reopened(memtable: &Memtable) -> Memtable {
    let file = FileName::wal(3);
    let scan = scan_segment(memtable.image(), &header(), None, file).unwrap();
    assert_eq!(scan.end, memtable.image().len());
    Memtable::from_segment(memtable.image().to_vec(), header(), scan.end, file).unwrap()
}

/// A get once walked down without comparing prefixes. A key behind the last separator of an inner node may lack the prefix
/// that the separators share: the get looked for it in a wrong leaf and did not find it. It takes groups of keys, and more
/// of them than any random history has: the benchmark lost one of its 50,000 tuple keys, here it was 30 of 14,000.
#[test]
fn every_key_is_found_whatever_the_nodes_above_it_share() {
    for seed in 1..8_u64 {
        let mut state = seed;
        let mut random = |below: usize| {
            state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
            (state >> 33) as usize % below
        };
        let mut numbers: Vec<usize> = (0..50_000).collect();
        for at in (1..numbers.len()).rev() {
            numbers.swap(at, random(at + 1));
        }
        let key = |number: usize| {
            let group = format!("p note-{:03} 0", number % 8);
            [group.as_bytes(), &(-(number as f64)).to_be_bytes()].concat()
        };
        let (written, absent) = numbers.split_at(14_000);
        let mut memtable = Memtable::new(header());
        for (at, &number) in written.iter().enumerate() {
            memtable.begin(0, 0, at as u64 + 1, 1);
            memtable.push(Kind::Set, None, &key(number), b"v");
            memtable.end(0);
        }
        for (at, &number) in written.iter().enumerate() {
            let found = memtable.get(&key(number), Sequence::MAX).map(|found| found.sequence);
            assert_eq!(found, Some(at as u64 + 1), "seed {seed}, number {number}");
        }
        assert!(absent.iter().all(|&number| memtable.get(&key(number), Sequence::MAX).is_none()));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, ..ProptestConfig::default() })]

    #[test]
    fn any_history_reads_like_a_sorted_map(
        batches in vec(vec(step(), 0..40), 0..30),
        probes in vec(key(), 20),
        first in 1u64..1 << 40,
    ) {
        let (mut memtable, mut model, mut next) = (Memtable::new(header()), Model::new(), first);
        for batch in &batches {
            write(&mut memtable, &mut model, &mut next, batch);
        }
        check(&memtable, &model, &probes);
        check(&reopened(&memtable), &model, &probes);
        if !model.is_empty() {
            prop_assert_eq!((memtable.min_sequence(), memtable.max_sequence()), (first, next - 1));
        }
    }

    #[test]
    fn a_rollback_leaves_what_was_before(
        kept in vec(vec(step(), 0..30), 0..10),
        dropped in vec(vec(step(), 0..30), 1..10),
        later in vec(vec(step(), 0..30), 0..5),
        probes in vec(key(), 20),
        inside in any::<bool>(),
    ) {
        let (mut memtable, mut model, mut next) = (Memtable::new(header()), Model::new(), 1u64);
        for batch in &kept {
            write(&mut memtable, &mut model, &mut next, batch);
        }
        let (image, bytes, resume) = (memtable.image().to_vec(), memtable.bytes(), next);
        for batch in &dropped {
            write(&mut memtable, &mut Model::new(), &mut next, batch);
        }
        if inside {
            memtable.begin(0, 0, next, 2);
            memtable.push(Kind::Set, None, b"half", b"");
        }
        memtable.rollback(image.len());
        prop_assert_eq!(memtable.image(), image);
        prop_assert_eq!(memtable.bytes(), bytes);
        check(&memtable, &model, &probes);
        next = resume;
        for batch in &later {
            write(&mut memtable, &mut model, &mut next, batch);
        }
        check(&memtable, &model, &probes);
    }
}

/// Writes `keys` one record each, checking now and then and at the end.
fn run(keys: impl Iterator<Item = Vec<u8>>) {
    let (mut memtable, mut model, mut next) = (Memtable::new(header()), Model::new(), 1u64);
    for key in keys {
        let value = next.to_le_bytes()[..3].to_vec();
        write(&mut memtable, &mut model, &mut next, &[(key, Kind::Set, None, value)]);
        if next == 40 || next == 700 {
            check(&memtable, &model, &[]);
        }
    }
    check(&memtable, &model, &[vec![], vec![0xff; 40]]);
    check(&reopened(&memtable), &model, &[]);
}

#[test]
fn versions_of_one_key_span_many_nodes() {
    run((0..5000).map(|_| b"the only key there is".to_vec()));
    run((0..5000u32).map(|index| if index % 97 == 0 { index.to_be_bytes().to_vec() } else { vec![0; 20] }));
}

#[test]
fn ascending_descending_and_shuffled_keys_behind_a_long_prefix() {
    let key = |index: u32| [b"a prefix of more than twenty bytes/".as_slice(), &index.to_be_bytes()].concat();
    run((0..6000).map(key));
    run((0..6000).rev().map(key));
    run((0..6000).map(|index| key(index * 7919 % 6000)));
}

#[test]
fn keys_that_differ_in_length_alone_keep_their_order() {
    run((0..3000usize).map(|index| vec![0; index * 37 % 300]));
    run((0..3000usize).map(|index| [vec![0xff; index * 37 % 60], vec![0; index % 11]].concat()));
}

#[test]
fn a_new_lowest_key_breaks_every_prefix_on_the_left_edge() {
    let prefixes: [&[u8]; 5] = [b"zzzzzzzzzzzzzzzz/", b"zzzzzzzz/", b"mmmmmmmmmmmm", b"a", b""];
    let group = |prefix: &'static [u8]| {
        (0..900u32).map(move |index| [prefix, &(index * 577 % 900).to_be_bytes()].concat())
    };
    run(prefixes.into_iter().flat_map(group));
    run(prefixes.into_iter().rev().flat_map(group));
}

#[test]
fn a_seek_between_groups_of_other_prefixes_finds_the_next_group() {
    let (mut memtable, mut model, mut next) = (Memtable::new(header()), Model::new(), 1u64);
    for index in 0..4000u32 {
        let group = index * 31 % 40;
        let key = format!("group-{group:02}-with-a-long-name/{index:05}").into_bytes();
        write(&mut memtable, &mut model, &mut next, &[(key, Kind::Set, None, vec![])]);
    }
    let probes: Vec<Vec<u8>> = (0..41)
        .flat_map(|group| {
            ["", "-with-a-long-name/", "-with-a-long-name0", "-x", "-with-a-lon"].map(|tail| (group, tail))
        })
        .map(|(group, tail)| format!("group-{group:02}{tail}").into_bytes())
        .collect();
    check(&memtable, &model, &probes);
}

/// A key that shares no prefix with the others is found.
///
/// The story: point reads went down the tree without comparing the prefixes that its nodes leave out, on the assumption
/// that an existing key has all of them. A key at either end of the tree lies in a leaf that stores the right prefix, but
/// below inner nodes whose keys all begin otherwise. These nodes sent the read to some other leaf, and it returned that
/// there is no such key, or an older version from a table. The simulator found that scans and point reads differed (seeds
/// 398 and 286).
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
