//! The rooms of the engine: which module may import from which (ARCHITECTURE.md, "The house").

use std::fs;
use std::path::Path;

/// The modules by what they rest on: each imports only from those before it. Those of one row know nothing of each other.
type Rows = &'static [&'static [&'static str]];

const OF_THE_ENGINE: Rows = &[
    &["mutant", "nonces", "types"],
    &["error"],
    &["codec"],
    &["wal", "table"],
    &["storage", "memtable", "cache", "options"],
    &["view", "manifest"],
    &["scan"],
    &["compact"],
    &["store"],
    &["check", "frame"],
    &["repair"],
    &["lib"],
];

/// The parts of a store. Each owns its fields, and the calls between them go over `Store`, which `mod` has.
const OF_THE_STORE: Rows = &[
    &[
        "name",
        "stats",
        "history",
        "clients",
        "clock",
        "jobs",
        "log",
        "snapshot",
        "condition",
        "keys",
        "memory",
        "reserve",
    ],
    &["blocks", "cursors", "changes", "write", "renewal"],
    &["read", "reader"],
    &["files"],
    &["recover"],
    &["mod"],
];

const OF_THE_JOBS: Rows =
    &[&["running"], &["choose", "inline", "install", "offer", "purge", "sweep"], &["mod"]];

/// The first word of each path of a source that begins with `root`, outside of comments.
fn imports<'a>(source: &'a str, root: &'a str) -> impl Iterator<Item = &'a str> {
    let code = source.lines().filter(|line| !line.trim_start().starts_with("//"));
    let paths = code.flat_map(move |line| line.split(root).skip(1));
    paths.filter_map(|rest| rest.split(|letter: char| !letter.is_ascii_lowercase()).next())
}

/// All sources below a file or a directory.
fn sources(at: &Path) -> Vec<String> {
    match fs::read_dir(at) {
        Ok(entries) => entries.flat_map(|entry| sources(&entry.expect("an entry").path())).collect(),
        Err(_) => vec![fs::read_to_string(at).expect("a source")],
    }
}

#[track_caller]
fn assert_nothing_points_back(directory: &str, roots: &[&str], rows: Rows, imports_min: usize) {
    let row_of = |name: &str| rows.iter().position(|row| row.contains(&name));
    let mut seen = 0;
    for entry in fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join(directory)).expect("the sources") {
        let path = entry.expect("an entry").path();
        let name = path.file_stem().and_then(|stem| stem.to_str()).expect("a name").to_owned();
        let row = row_of(&name).unwrap_or_else(|| panic!("{name} has no row"));
        for source in sources(&path) {
            let others = roots.iter().flat_map(|root| imports(&source, root));
            for other in others.filter(|other| *other != name && row_of(other).is_some()) {
                seen += 1;
                assert!(row_of(other) < Some(row), "{name} imports from {other}");
            }
        }
    }
    assert!(seen >= imports_min, "only {seen} imports were found");
}

#[test]
fn nothing_points_back() {
    assert_nothing_points_back("src", &["crate::"], OF_THE_ENGINE, 300);
}

#[test]
fn parts_of_a_store_do_not_point_back() {
    assert_nothing_points_back("src/store", &["super::", "crate::store::"], OF_THE_STORE, 15);
    assert_nothing_points_back("src/store/jobs", &["super::", "self::"], OF_THE_JOBS, 8);
}
