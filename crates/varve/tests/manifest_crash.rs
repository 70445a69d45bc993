//! The power goes, or the process dies, at every step of a manifest's life, and every subset of the unflushed
//! sectors is kept. The opened version is the last acknowledged one or the one that was being committed.

use varve::error::{Error, Result};
use varve::manifest::{Edit, Manifest, Version};
use varve::storage::SlotPool;
use varve::types::StoreId;
use varve::{Encryption, Keyring};

use crate::manifest_device::Disk;
use crate::manifest_edits::{Random, next_edit};

const STORE: [u8; 16] = *b"a store for test";
const SALT_SEED: u64 = 0x5eed;

/// A step of the history that is cut short everywhere.
#[derive(Clone, Copy)]
enum Step {
    /// Commit a table whose key has this length; long ones soon force a rotation.
    Commit(usize),
    /// Close and open again.
    Reopen,
}

const HISTORY: [Step; 14] = [
    Step::Commit(8),
    Step::Commit(1100),
    Step::Commit(700),
    Step::Reopen,
    Step::Commit(1000),
    Step::Commit(400),
    Step::Reopen,
    Step::Reopen,
    Step::Commit(20_000),
    Step::Commit(9),
    Step::Commit(16_000),
    Step::Commit(5),
    Step::Commit(8),
    Step::Reopen,
];

/// The versions that an opening may find.
#[derive(Default)]
struct Expected {
    acknowledged: Option<Version>,
    in_flight: Option<Version>,
}

impl Expected {
    fn allows(&self, found: Option<&Version>) -> bool {
        match found {
            None => self.acknowledged.is_none(),
            found => found == self.acknowledged.as_ref() || found == self.in_flight.as_ref(),
        }
    }
}

fn pool(disk: Disk) -> SlotPool<Disk> {
    SlotPool::open(disk).expect("a pool always opens")
}

/// Runs the history until the disk fails.
fn run(pool: &mut SlotPool<Disk>, expected: &mut Expected) -> Result<u64> {
    expected.in_flight = Some(Version::default());
    let (mut manifest, mut version) = Manifest::create(pool, STORE, Encryption::none(), SALT_SEED)?;
    expected.acknowledged = Some(version.clone());
    for step in HISTORY {
        match step {
            Step::Commit(key_bytes) => {
                let edit = next_edit(&version, key_bytes);
                version = version.apply(&edit)?;
                expected.in_flight = Some(version.clone());
                manifest.commit(pool, &version, &edit)?;
                expected.acknowledged = Some(version.clone());
            }
            Step::Reopen => {
                let epoch = manifest.epoch();
                let (next, found, store) = take_over(pool)?.expect("the store exists");
                assert_eq!((&found, store, next.epoch()), (&version, STORE, epoch + 1));
                manifest = next;
            }
        }
    }
    Ok(manifest.rotation())
}

/// Opens the store in `pool` and commits, as a session that writes does.
fn take_over(pool: &mut SlotPool<Disk>) -> Result<Option<(Manifest, Version, StoreId)>> {
    let mut found = Manifest::open(pool, &Keyring::plain(STORE), SALT_SEED)?;
    if let Some((manifest, version, _)) = &mut found {
        let edit = Edit { floors: version.floors, ..Edit::default() };
        manifest.commit(pool, version, &edit)?;
    }
    Ok(found)
}

/// Opens `disk` and returns the version, or `None` where there is no store.
fn opened(disk: Disk) -> Option<Version> {
    let found = Manifest::open(&mut pool(disk), &Keyring::plain(STORE), SALT_SEED)
        .expect("a crash is never corruption");
    found.map(|(_, version, _)| version)
}

/// How many changes an uninterrupted takeover makes.
fn takeover_operations(disk: &Disk) -> usize {
    let mut pool = pool(disk.clone());
    let _ = take_over(&mut pool);
    pool.into_device().operations()
}

/// Cuts the takeover of `disk` short everywhere, and checks with `allows` what an opening finds afterwards. If the
/// takeover returned, the opening has to find the same.
fn check_interrupted_takeovers(disk: &Disk, random: &mut Random, allows: impl Fn(Option<&Version>) -> bool) {
    for operations in 0..=takeover_operations(disk) {
        let mut pool = pool(disk.clone().fail_after(operations));
        let first = take_over(&mut pool);
        for left in pool.into_device().after_power_loss(random) {
            let second = opened(left);
            match &first {
                Ok(first) => assert_eq!(first.as_ref().map(|(_, version, _)| version), second.as_ref()),
                Err(error) => assert_eq!(*error, Error::Io("a file operation failed")),
            }
            assert!(allows(second.as_ref()), "takeover cut after {operations} changes found {second:?}");
        }
    }
}

#[test]
fn an_uninterrupted_history_rotates_on_commit_and_on_takeover() {
    let mut pool = pool(Disk::new(4));
    let rotations = run(&mut pool, &mut Expected::default()).expect("nothing fails");
    assert!(rotations >= 6, "1 creation, 4 openings and a commit: {rotations}");
}

#[test]
fn a_power_loss_at_any_change_leaves_the_last_version_or_the_next() {
    let mut random = Random(0x1234_5678_9abc_def1);
    let mut whole = pool(Disk::new(4));
    run(&mut whole, &mut Expected::default()).expect("nothing fails");
    let mut disks = 0;
    for operations in 0..=whole.into_device().operations() {
        let mut expected = Expected::default();
        let mut pool = pool(Disk::new(4).fail_after(operations));
        let _ = run(&mut pool, &mut expected);
        for left in pool.into_device().after_power_loss(&mut random) {
            let found = opened(left.clone());
            assert!(expected.allows(found.as_ref()), "cut after {operations} changes: {found:?}");
            disks += 1;
            if random.below(2) == 0 {
                check_interrupted_takeovers(&left, &mut random, |second| second == found.as_ref());
            }
        }
    }
    assert!(disks > 300, "{disks} disks were tried");
}

#[test]
fn a_power_loss_during_the_opening_after_a_process_crash_loses_nothing_acknowledged() {
    let mut random = Random(0xfeed_beef_0000_0001);
    let mut whole = pool(Disk::new(4));
    run(&mut whole, &mut Expected::default()).expect("nothing fails");
    for operations in 0..=whole.into_device().operations() {
        let mut expected = Expected::default();
        let mut pool = pool(Disk::new(4).fail_after(operations));
        let _ = run(&mut pool, &mut expected);
        let disk = pool.into_device().after_process_crash();
        assert!(expected.allows(opened(disk.clone()).as_ref()));
        check_interrupted_takeovers(&disk, &mut random, |found| expected.allows(found));
    }
}

#[test]
fn after_a_failed_sync_nothing_more_is_committed() {
    let mut pool = pool(Disk::new(4));
    let (mut manifest, version) =
        Manifest::create(&mut pool, STORE, Encryption::none(), SALT_SEED).expect("created");
    let edit = next_edit(&version, 8);
    let next = version.apply(&edit).expect("fits");
    let disk = pool.device().clone();
    // One change for the write, none for the sync.
    *pool.device_mut() = disk.clone().fail_after(1);
    assert_eq!(manifest.commit(&mut pool, &next, &edit), Err(Error::Io("a file operation failed")));
    *pool.device_mut() = disk;
    assert_eq!(manifest.commit(&mut pool, &next, &edit), Err(Error::Poisoned));
}

#[test]
fn an_opening_changes_nothing_until_it_commits() {
    let mut pool = pool(Disk::new(4));
    run(&mut pool, &mut Expected::default()).expect("nothing fails");
    let disk = pool.into_device();
    let operations = disk.operations();
    let mut pool = self::pool(disk);
    let (mut manifest, version, _) = Manifest::open(&mut pool, &Keyring::plain(STORE), SALT_SEED)
        .expect("opens")
        .expect("the store exists");
    assert_eq!(pool.device().operations(), operations, "nothing was written or synced");
    manifest.keep(&mut pool).expect("synced");
    manifest.keep(&mut pool).expect("synced before");
    assert_eq!(pool.device().operations(), operations + 1, "one sync");
    let edit = next_edit(&version, 9);
    manifest.commit(&mut pool, &version.apply(&edit).expect("fits"), &edit).expect("committed");
    assert!(pool.device().operations() > operations + 1);
}
