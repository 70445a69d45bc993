//! Options change speed and memory, never answers: one recorded trace under many sets of options gives the same answer
//! to every read, at the same sequence, and the same contents in the end.

use varve::Options;
use varve_sim::metamorphic::{Driver, answers, calm_trace};

/// What the options of a run may be, smallest against largest, and how reads reach the disk.
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
    };
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
            Options { memory_bytes: 64 << 20, restart_interval: 64, ..medium.clone() },
            Driver::AtOnce,
        ),
        (
            "compressed, few files",
            Options { compress: true, block_bytes: 1024, files_max: 8, ..medium.clone() },
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
        ("no log", Options { log: false, ..tiny.clone() }, Driver::AtOnce),
        (
            "no log, compressed, large blocks",
            Options { log: false, compress: true, block_bytes: 4096, restart_interval: 16, ..medium },
            Driver::Waiting,
        ),
    ]
}

#[test]
fn options_never_change_an_answer() {
    let (mut compared, mut waited, mut levels) = (0, 0, 0);
    for seed in 0..12 {
        let trace = calm_trace(seed);
        let mut first = None;
        for (name, options, driver) in variants() {
            let run = answers(&trace, &options, driver);
            waited += run.waited;
            levels = levels.max(run.levels);
            compared += run.answers.len();
            let (first_name, expected) = first.get_or_insert((name, run.answers.clone()));
            for (position, (wanted, found)) in expected.iter().zip(&run.answers).enumerate() {
                assert!(
                    wanted == found,
                    "seed {seed}, answer {position}: {first_name} and {name} differ: {wanted:?} {found:?}"
                );
            }
            assert_eq!(expected.len(), run.answers.len(), "seed {seed}: {name}");
        }
    }
    println!("{compared} answers, {waited} reads waited, {levels} levels");
    assert!(
        compared > 2000 && waited > 10_000 && levels >= 3,
        "{compared} answers, {waited} waits, {levels} levels"
    );
}
