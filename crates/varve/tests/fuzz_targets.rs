//! Fuzz targets: every decoder of the engine, and the engine itself, get mutations of a small corpus.
//!
//! ```text
//! corpus (golden files, encoded structures) -> cut, flip, splice, copy, repair the checksum -> target
//! ```
//! Invariant under test: a target answers or refuses; it never panics, and never has more allocated at a time than a fixed
//! number of bytes and 300 for each byte of its input. Everything follows from a seed, so a failure reproduces with it.
//!
//! `VARVE_FUZZ_SECONDS` makes each target run for that many seconds instead of for 1,500 inputs, `VARVE_FUZZ_SEED` begins
//! at another seed. `npm run fuzz` sets both.

use crate::fuzz::corpus;
use crate::fuzz::run::{DECODER_BYTES_MAX, STORE_BYTES_MAX, run};
use crate::fuzz::targets;

/// A target that misbehaves on purpose is found: the counting and the catching work.
#[test]
fn a_greedy_target_and_a_panicking_one_are_caught() {
    let corpus = || vec![vec![1, 2, 3]];
    let greedy = |_: &[u8]| drop(std::hint::black_box(Vec::<u8>::with_capacity(1 << 20)));
    let panicking = |bytes: &[u8]| assert!(bytes.len() > 2, "short");
    for target in [greedy as fn(&[u8]), panicking] {
        assert!(std::panic::catch_unwind(|| run("bad", corpus(), DECODER_BYTES_MAX, target)).is_err());
    }
}

#[test]
fn wal_segments() {
    run("wal segment", corpus::segments(), DECODER_BYTES_MAX, targets::segment);
}

#[test]
fn manifests() {
    run("manifest", corpus::manifests(), STORE_BYTES_MAX, targets::manifest);
}

#[test]
fn versions_and_edits() {
    run("version and edit", corpus::edits(), DECODER_BYTES_MAX, targets::version_and_edit);
}

#[test]
fn slot_headers() {
    run("slot header", corpus::slot_headers(), DECODER_BYTES_MAX, targets::slot_header);
}

#[test]
fn blocks() {
    run("block", corpus::blocks(), DECODER_BYTES_MAX, targets::block);
}

#[test]
fn tables_to_salvage() {
    run("salvage", corpus::tables(), DECODER_BYTES_MAX, targets::salvage);
}

#[test]
fn filters() {
    run("filter", corpus::filters(), DECODER_BYTES_MAX, targets::filter);
}

#[test]
fn indexes() {
    run("index", corpus::indexes(), DECODER_BYTES_MAX, targets::index);
}

#[test]
fn footers() {
    run("footer", corpus::footers(), DECODER_BYTES_MAX, targets::footer);
}

#[test]
fn frames() {
    run("frame", corpus::frames(), STORE_BYTES_MAX, targets::frame);
}

#[test]
fn job_specifications() {
    run("job specification", corpus::job_specs(), DECODER_BYTES_MAX, targets::job_spec);
}

#[test]
fn job_results() {
    run("job result", corpus::job_results(), STORE_BYTES_MAX, targets::job_result);
}

#[test]
fn files_of_an_encrypted_store() {
    for file in corpus::encrypted_files() {
        let store = targets::with_file(&file).expect("an unchanged file is no damage");
        assert_eq!(store.get(&[19, 1]), Ok(Some(vec![59; 40])));
    }
    run("encrypted file", corpus::encrypted_files(), STORE_BYTES_MAX, targets::encrypted_file);
}

#[test]
fn operations_against_a_model() {
    run("operations", corpus::operations(), STORE_BYTES_MAX, targets::operations);
}
