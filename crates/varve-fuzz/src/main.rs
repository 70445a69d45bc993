//! The fuzz targets under libFuzzer, which keeps inputs that reach new code and mutates those.
//!
//! ```text
//! VARVE_FUZZ_TARGET=block VARVE_FUZZ_CORPUS=DIR varve-fuzz DIR -max_total_time=60
//! ```
//! The targets and their first inputs are those of `crates/varve/tests/fuzz`; the environment names the target, and the
//! folder for its first inputs. Arguments are libFuzzer's own.
#![no_main]

use std::path::Path;
use std::sync::OnceLock;

use fuzz::corpus::{self, Corpus};
use fuzz::targets;
use libfuzzer_sys::fuzz_target;

#[allow(dead_code, reason = "its runner is for the tests")]
#[path = "../../varve/tests/fuzz/mod.rs"]
mod fuzz;
#[allow(dead_code, reason = "tests of tables use more of it")]
#[path = "../../varve/tests/table_common/mod.rs"]
mod table_common;

type Target = (&'static str, fn() -> Corpus, fn(&[u8]));

const TARGETS: &[Target] = &[
    ("segment", corpus::segments, targets::segment),
    ("manifest", corpus::manifests, targets::manifest),
    ("version-and-edit", corpus::edits, targets::version_and_edit),
    ("slot-header", corpus::slot_headers, targets::slot_header),
    ("block", corpus::blocks, targets::block),
    ("filter", corpus::filters, targets::filter),
    ("index", corpus::indexes, targets::index),
    ("footer", corpus::footers, targets::footer),
    ("frame", corpus::frames, targets::frame),
    ("encrypted-file", corpus::encrypted_files, targets::encrypted_file),
    ("job-spec", corpus::job_specs, targets::job_spec),
    ("job-result", corpus::job_results, targets::job_result),
    ("operations", corpus::operations, targets::operations),
];

static TARGET: OnceLock<fn(&[u8])> = OnceLock::new();

/// Chooses the target, and writes its first inputs.
fn choose() {
    let named = std::env::var("VARVE_FUZZ_TARGET").unwrap_or_default();
    let Some((_, corpus, target)) = TARGETS.iter().find(|(name, ..)| *name == named) else {
        let names: Vec<&str> = TARGETS.iter().map(|(name, ..)| *name).collect();
        eprintln!("VARVE_FUZZ_TARGET is one of {}", names.join(", "));
        std::process::exit(2);
    };
    if let Some(folder) = std::env::var_os("VARVE_FUZZ_CORPUS") {
        for (number, input) in corpus().iter().enumerate() {
            std::fs::write(Path::new(&folder).join(format!("seed-{number}")), input)
                .expect("the corpus is written");
        }
    }
    let _ = TARGET.set(*target);
}

fuzz_target!(init: choose(), |bytes: &[u8]| {
    if let Some(target) = TARGET.get() {
        target(bytes);
    }
});
