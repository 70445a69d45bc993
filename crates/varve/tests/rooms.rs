//! The rooms of the engine: which module may import from which (ARCHITECTURE.md, "The house").

use std::fs;
use std::path::Path;

/// The modules by what they rest on: each imports only from those before it. Those of one row know nothing of each other.
const ROWS: [&[&str]; 12] = [
    &["mutant"],
    // Types and errors name one another.
    &["error", "types"],
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

/// The first word of each path `crate::word` of a source, outside of comments.
fn imports(source: &str) -> impl Iterator<Item = &str> {
    let code = source.lines().filter(|line| !line.trim_start().starts_with("//"));
    let paths = code.flat_map(|line| line.split("crate::").skip(1));
    paths.filter_map(|rest| rest.split(|letter: char| !letter.is_ascii_lowercase()).next())
}

/// All sources below a file or a directory.
fn sources(at: &Path) -> Vec<String> {
    match fs::read_dir(at) {
        Ok(entries) => entries.flat_map(|entry| sources(&entry.expect("an entry").path())).collect(),
        Err(_) => vec![fs::read_to_string(at).expect("a source")],
    }
}

#[test]
fn nothing_points_back() {
    let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let row_of = |name: &str| ROWS.iter().position(|row| row.contains(&name));
    let mut seen = 0;
    for entry in fs::read_dir(&src).expect("the sources") {
        let path = entry.expect("an entry").path();
        let name = path.file_stem().and_then(|stem| stem.to_str()).expect("a name").to_owned();
        let row = row_of(&name).unwrap_or_else(|| panic!("{name} has no row"));
        for source in sources(&path) {
            for other in imports(&source).filter(|other| *other != name && row_of(other).is_some()) {
                seen += 1;
                let together = ["error", "types"];
                let may =
                    row_of(other) < Some(row) || [&*name, other].iter().all(|one| together.contains(one));
                assert!(may, "{name} imports from {other}");
            }
        }
    }
    assert!(seen > 300, "only {seen} imports were found");
}
