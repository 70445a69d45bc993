//! Random edits against a model: a map from table id to level. Every version reads as the model does, comes back
//! from its bytes and from a reopened manifest, and refuses edits that do not fit.

use std::collections::BTreeMap;

use proptest::prelude::*;
use varve::codec::reader::Reader;
use varve::manifest::{ClientState, Edit, Floors, Manifest, Version};
use varve::storage::{MemorySlots, SlotPool};
use varve::table::TableMeta;
use varve::{Encryption, Keyring};

const LEVELS: u8 = 4;

/// One random change.
#[derive(Debug, Clone)]
enum Change {
    /// A table at level 0 with any key range.
    Flush { first: u16, len: u16 },
    /// The tables of a level that touch a range, and those below that touch them, become one table below.
    Merge { level: u8, first: u16, len: u16 },
    /// One table goes a level down as it is, if nothing is in its way there.
    Move { pick: u16 },
    /// A client was answered.
    Answer { client: u64 },
    /// The store is opened again.
    Reopen,
}

fn change() -> impl Strategy<Value = Change> {
    prop_oneof![
        4 => (any::<u16>(), 0..4000u16).prop_map(|(first, len)| Change::Flush { first, len }),
        3 => (0..LEVELS - 1, any::<u16>(), any::<u16>())
            .prop_map(|(level, first, len)| Change::Merge { level, first, len }),
        2 => any::<u16>().prop_map(|pick| Change::Move { pick }),
        1 => (1..4u64).prop_map(|client| Change::Answer { client }),
        1 => Just(Change::Reopen),
    ]
}

fn key(number: u16) -> Vec<u8> {
    number.to_be_bytes().to_vec()
}

fn number(key: &[u8]) -> u16 {
    u16::from_be_bytes([key[0], key[1]])
}

fn meta(id: u64, first: u16, last: u16) -> TableMeta {
    TableMeta {
        id,
        size: 10 * id,
        entries: id,
        min_sequence: id,
        max_sequence: id,
        min_key: key(first),
        max_key: key(last),
        ..TableMeta::default()
    }
}

/// The expected version: id to (level, first, last).
type Model = BTreeMap<u64, (u8, u16, u16)>;

fn touching(model: &Model, level: u8, first: u16, last: u16) -> Vec<u64> {
    let touches =
        |&(_, &(at, start, end)): &(&u64, &(u8, u16, u16))| at == level && start <= last && first <= end;
    model.iter().filter(touches).map(|(&id, _)| id).collect()
}

/// The edit for a change, applied to the model; `None` when there is nothing to do.
fn edit_for(change: &Change, model: &mut Model, version: &Version) -> Option<Edit> {
    let mut edit = Edit { floors: version.floors, clients: version.clients.clone(), ..Edit::default() };
    let id = version.floors.next_table;
    match *change {
        Change::Flush { first, len } => {
            let last = first.saturating_add(len);
            model.insert(id, (0, first, last));
            edit.added.push((0, meta(id, first, last)));
            edit.floors.next_table += 1;
            edit.floors.last_sequence = id;
        }
        Change::Merge { level, first, len } => {
            let mut inputs = touching(model, level, first, first.saturating_add(len));
            let start = inputs.iter().map(|id| model[id].1).min()?;
            let end = inputs.iter().map(|id| model[id].2).max()?;
            inputs.extend(touching(model, level + 1, start, end));
            let start = inputs.iter().map(|id| model[id].1).min()?;
            let end = inputs.iter().map(|id| model[id].2).max()?;
            for input in &inputs {
                model.remove(input);
            }
            model.insert(id, (level + 1, start, end));
            edit.removed = inputs;
            edit.added.push((level + 1, meta(id, start, end)));
            edit.floors.next_table += 1;
        }
        Change::Move { pick } => {
            let at = usize::from(pick).checked_rem(model.len())?;
            let (&id, &(level, first, last)) = model.iter().nth(at)?;
            if level + 1 >= LEVELS || !touching(model, level + 1, first, last).is_empty() {
                return None;
            }
            model.insert(id, (level + 1, first, last));
            edit.removed.push(id);
            edit.added.push((level + 1, meta(id, first, last)));
        }
        Change::Answer { client } => {
            edit.clients.retain(|known| known.client != client);
            edit.clients.push(ClientState {
                client,
                request: id,
                sequence: version.floors.last_sequence,
                flags: 2,
            });
        }
        Change::Reopen => return None,
    }
    Some(edit)
}

fn check(version: &Version, model: &Model, probes: &[u16]) {
    let tables: Model = version
        .tables()
        .map(|(level, table)| (table.id, (level as u8, number(&table.min_key), number(&table.max_key))))
        .collect();
    assert_eq!(&tables, model);
    assert_eq!(version.bytes(), model.keys().map(|id| 10 * id).sum::<u64>());
    assert_eq!(
        version.levels(),
        model.values().map(|&(level, ..)| usize::from(level) + 1).max().unwrap_or(0)
    );
    assert!(version.level(0).is_sorted_by(|a, b| a.max_sequence > b.max_sequence), "newest first");
    for pair in probes.windows(2) {
        let (first, last) = (pair[0].min(pair[1]), pair[0].max(pair[1]));
        for level in 0..LEVELS {
            let at = usize::from(level);
            let mut found: Vec<u64> =
                version.overlapping(at, &key(first), &key(last)).map(|table| table.id).collect();
            found.sort_unstable();
            assert_eq!(found, touching(model, level, first, last));
            if level > 0 {
                let found = version.find(at, &key(first)).map(|table| table.id);
                assert_eq!(found, touching(model, level, first, first).first().copied());
                let seek = version.level(at).iter().position(|table| table.max_key >= key(first));
                assert_eq!(version.seek(at, &key(first)), seek.unwrap_or(version.level(at).len()));
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn versions_read_like_the_model(
        changes in proptest::collection::vec(change(), 1..60),
        probes in proptest::collection::vec(any::<u16>(), 2..12),
    ) {
        let mut pool = SlotPool::open(MemorySlots::new(4)).unwrap();
        let (mut manifest, mut version) = Manifest::create(&mut pool, [1; 16], Encryption::none(), 5).unwrap();
        let mut model = Model::new();
        for change in &changes {
            if let Some(edit) = edit_for(change, &mut model, &version) {
                let kept = version.clone();
                let next = version.apply(&edit).unwrap();
                prop_assert_eq!(&version, &kept, "a version does not change");
                manifest.commit(&mut pool, &next, &edit).unwrap();
                version = next;
            }
            if matches!(change, Change::Reopen) {
                pool = SlotPool::open(pool.into_device()).unwrap();
                let (next, found, _) = Manifest::open(&mut pool, &Keyring::plain([1; 16]), 6).unwrap().unwrap();
                prop_assert_eq!(&found, &version);
                manifest = next;
            }
            check(&version, &model, &probes);
        }
        let mut bytes = Vec::new();
        version.encode(&mut bytes);
        let mut reader = Reader::new(&bytes);
        prop_assert_eq!(Version::decode(&mut reader), Ok(version));
        prop_assert!(reader.is_empty());
    }
}

/// A version with table 1 at level 0, and 2 (keys 10 to 20) and 3 (keys 30 to 40) at level 1.
fn small() -> Version {
    let floors = Floors { next_table: 9, clock_ms: 50, ..Floors::default() };
    let added = vec![(0, meta(1, 0, 99)), (1, meta(3, 30, 40)), (1, meta(2, 10, 20))];
    Version::default().apply(&Edit { added, floors, ..Edit::default() }).expect("fits")
}

#[test]
fn edits_that_do_not_fit_are_refused() {
    let version = small();
    let edit = Edit { floors: version.floors, ..Edit::default() };
    let added = |level, meta| Edit { added: vec![(level, meta)], ..edit.clone() };
    let falling = Floors { clock_ms: 49, ..version.floors };
    let backwards = TableMeta { min_sequence: 5, max_sequence: 4, ..meta(5, 1, 2) };
    let refused = [
        ("a table that is not there", Edit { removed: vec![7], ..edit.clone() }),
        ("a table removed twice", Edit { removed: vec![2, 2], ..edit.clone() }),
        ("an id that is there", added(0, meta(2, 50, 60))),
        ("an id that was not given out", added(0, meta(9, 50, 60))),
        ("a key range inside another", added(1, meta(5, 12, 13))),
        ("a key range around another", added(1, meta(5, 29, 41))),
        ("a last key that is another's first", added(1, meta(5, 25, 30))),
        ("a first key that is another's last", added(1, meta(5, 20, 25))),
        ("a range that ends before it starts", added(2, meta(5, 2, 1))),
        ("sequences that end before they start", added(2, backwards)),
        ("an impossible level", added(16, meta(5, 1, 2))),
        ("a floor that falls", Edit { floors: falling, ..edit.clone() }),
    ];
    for (what, edit) in refused {
        assert!(version.apply(&edit).is_err(), "{what}");
    }
    assert_eq!(version, small());
    assert!(version.apply(&added(1, meta(5, 21, 29))).is_ok());
}

#[test]
fn a_table_may_end_where_the_next_starts_if_a_range_tombstone_ends_there() {
    let widened = TableMeta { range_tombstones: 1, ..meta(5, 21, 30) };
    let edit = Edit { added: vec![(1, widened)], floors: small().floors, ..Edit::default() };
    let version = small().apply(&edit).expect("fits");
    // Key 30 itself is in table 3: the tombstone's end is exclusive.
    assert_eq!(version.find(1, &key(30)).map(|table| table.id), Some(3));
    assert_eq!(version.find(1, &key(29)).map(|table| table.id), Some(5));
    assert_eq!(version.overlapping(1, &key(30), &key(30)).count(), 2);
}

#[test]
fn a_snapshot_larger_than_the_usual_edits_rotates_less_often() {
    let mut pool = SlotPool::open(MemorySlots::new(4)).expect("opens");
    let (mut manifest, mut version) =
        Manifest::create(&mut pool, [1; 16], Encryption::none(), 5).expect("created");
    let mut longest = 0;
    let mut rotations = Vec::new();
    for id in 0..3000u16 {
        let floors = Floors { next_table: u64::from(id) + 1, ..version.floors };
        let table = TableMeta { min_key: [key(id), vec![0; 98]].concat(), ..meta(u64::from(id), id, id + 1) };
        let edit = Edit { added: vec![(0, table)], floors, ..Edit::default() };
        version = version.apply(&edit).expect("fits");
        let rotation = manifest.rotation();
        manifest.commit(&mut pool, &version, &edit).expect("committed");
        longest = longest.max(manifest.bytes());
        if manifest.rotation() != rotation {
            rotations.push(id);
        }
    }
    assert!((3..=8).contains(&rotations.len()), "each snapshot is twice the last: {rotations:?}");
    assert!(longest < 3 * 3000 * 130, "{longest} bytes");
    let mut pool = SlotPool::open(pool.into_device()).expect("opens");
    let (_, found, _) =
        Manifest::open(&mut pool, &Keyring::plain([1; 16]), 6).expect("opens").expect("exists");
    assert_eq!(found, version);
}
