//! Options change speed and memory, never answers: one recorded trace under many sets of options gives the same answer
//! to every read, at the same sequence, and the same contents in the end.

use varve::mutant::{Mutant, inject};
use varve::{Encryption, Keyring, Options};
use varve_sim::metamorphic::{Answer, Driver, answers, calm_trace};

/// The possible options of a run, smallest against largest, and how reads reach the disk.
fn variants() -> Vec<(&'static str, Options, Driver)> {
    let tiny = Options {
        memory_bytes: 16 << 10,
        memtable_bytes_min: 512,
        memtable_bytes_max: 1024,
        frozen_max: 1,
        block_bytes: 64,
        restart_interval: 1,
        table_bytes: 1 << 10,
        files_max: 8,
        level_base_bytes: 1 << 10,
        level_factor: 2,
        job_bytes_max: 4 << 10,
        l0_trigger: 2,
        l0_stall: 4,
        compress: false,
        log: true,
        flush_when_full: true,
        history_bytes: Some(0),
        encryption: Encryption::none(),
    };
    let keyring = Keyring::new([0; 16], vec![(1, [1; 32])], [2; 16]).expect("a key");
    let encryption = Encryption { keyring, slots: vec![3] };
    let medium =
        Options { memtable_bytes_min: 4 << 10, memtable_bytes_max: 8 << 10, files_max: 128, ..tiny.clone() };
    vec![
        ("the default", Options::default(), Driver::AtOnce),
        ("tiny everything", tiny.clone(), Driver::AtOnce),
        ("tiny everything, every read waits", tiny.clone(), Driver::Waiting),
        (
            "no cache to speak of",
            Options { memory_bytes: 1, block_bytes: 4096, ..medium.clone() },
            Driver::Waiting,
        ),
        (
            "large cache, long runs of a restart",
            Options { memory_bytes: 64 << 20, restart_interval: 64, history_bytes: None, ..medium.clone() },
            Driver::AtOnce,
        ),
        (
            "compressed, few files",
            Options {
                compress: true,
                block_bytes: 1024,
                files_max: 8,
                history_bytes: Some(8 << 10),
                ..medium.clone()
            },
            Driver::AtOnce,
        ),
        (
            "large levels and jobs",
            Options {
                level_base_bytes: 1 << 20,
                level_factor: 10,
                job_bytes_max: 16 << 20,
                l0_trigger: 8,
                l0_stall: 20,
                ..tiny.clone()
            },
            Driver::Waiting,
        ),
        ("encrypted", Options { encryption: encryption.clone(), ..Options::default() }, Driver::AtOnce),
        ("encrypted, tiny everything", Options { encryption, ..tiny.clone() }, Driver::Waiting),
        ("no log", Options { log: false, ..tiny.clone() }, Driver::AtOnce),
        (
            "no log, compressed, large blocks",
            Options { log: false, compress: true, block_bytes: 4096, restart_interval: 16, ..medium },
            Driver::Waiting,
        ),
    ]
}

/// Runs one trace under all sets of options. Returns the answers of the first run, and the first difference of another
/// run from it.
fn compare(seed: u64, seen: &mut Seen) -> Result<Vec<Answer>, String> {
    let trace = calm_trace(seed);
    let mut first: Option<(&str, Vec<Answer>)> = None;
    for (name, options, driver) in variants() {
        let run = answers(&trace, &options, driver);
        seen.waited += run.waited;
        seen.levels = seen.levels.max(run.levels);
        seen.compared += run.answers.len();
        let (first_name, expected) = first.get_or_insert((name, run.answers.clone()));
        let mut pairs = expected.iter().zip(&run.answers).enumerate();
        if let Some((position, (wanted, found))) = pairs.find(|(_, (wanted, found))| wanted != found) {
            return Err(format!(
                "seed {seed}, answer {position}: {first_name} and {name} differ: {wanted:?} {found:?}"
            ));
        }
        if expected.len() != run.answers.len() {
            return Err(format!("seed {seed}: {name} gave {} answers", run.answers.len()));
        }
    }
    Ok(first.map(|(_, answers)| answers).unwrap_or_default())
}

#[derive(Debug, Default)]
struct Seen {
    compared: usize,
    waited: u64,
    levels: usize,
}

#[test]
fn options_never_change_an_answer() {
    let mut seen = Seen::default();
    let (mut committed, mut conflicts) = (0, 0);
    for seed in 0..12 {
        let answers = compare(seed, &mut seen).unwrap_or_else(|what| panic!("{what}"));
        committed += answers.iter().filter(|answer| matches!(answer, Answer::Committed(_))).count();
        conflicts += answers.iter().filter(|answer| matches!(answer, Answer::Conflict)).count();
    }
    println!("{seen:?}, {committed} committed, {conflicts} conflicts");
    assert!(seen.compared > 2000 && seen.waited > 10_000 && seen.levels >= 3, "{seen:?}");
    assert!(committed > 50 && conflicts > 50, "{committed} committed, {conflicts} conflicts");
}

/// Whether a bug of the engine makes answers depend on options, within so many seeds.
fn depends(bug: Mutant) -> bool {
    inject(Some(bug));
    let found = (0..12).find_map(|seed| compare(seed, &mut Seen::default()).err());
    inject(None);
    found.is_some()
}

#[test]
fn bugs_of_merges_and_tables_are_found_without_an_oracle() {
    for bug in [Mutant::ConflictsInTablesIgnored, Mutant::TombstonesForgotten, Mutant::MergeClockAhead] {
        assert!(depends(bug), "{bug:?}");
    }
}
