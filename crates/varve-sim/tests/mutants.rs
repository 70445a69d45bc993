//! Each test that should find a deliberate bug of the engine (`varve::mutant`) finds it within a few seeds.

use varve::mutant::{Mutant, inject};
use varve_sim::exhaustive::{Effort, crash_everywhere, short_trace};
use varve_sim::pages::{PageFault, damage_pages, run_beneath};
use varve_sim::run::run;
use varve_sim::takeovers::take_over;
use varve_sim::workload::{generate, plain, unencrypted};

/// Seeds within which a bug must show.
const SEEDS: u64 = 150;

/// A few images of each crash point.
const FEW: Effort = Effort { images_max: 4, samples: 1, second_crash_every: 16, every_call_every: u64::MAX };

/// Whether a test shows a bug with these words within [`SEEDS`]; prints how many it took.
fn shows(bug: Mutant, words: &str, test: impl Fn(u64) -> Option<String>) {
    inject(Some(bug));
    let found = (0..SEEDS).find_map(|seed| test(seed).map(|what| (seed + 1, what)));
    inject(None);
    let (seeds, what) = found.unwrap_or_else(|| panic!("{bug:?} is not found"));
    println!("{bug:?}: {seeds} seeds: {what}");
    assert!(what.contains(words), "{what}");
}

/// Short traces, crashed at every call.
fn crashes(seed: u64) -> Option<String> {
    crash_everywhere(&short_trace(seed), FEW).err()
}

/// The same traces without a crash: for bugs that show before one.
fn short_runs(seed: u64) -> Option<String> {
    run(&short_trace(seed)).failure.map(|failure| failure.what)
}

/// The simulator at large.
fn runs(seed: u64) -> Option<String> {
    run(&unencrypted(seed)).failure.map(|failure| failure.what)
}

/// The same with encryption.
fn encrypted_runs(seed: u64) -> Option<String> {
    run(&generate(seed)).failure.map(|failure| failure.what)
}

/// Clients that outlive their leaders.
fn takeovers(seed: u64) -> Option<String> {
    take_over(seed).err()
}

#[test]
fn outcomes_for_clients_that_are_not_in_edits() {
    shows(Mutant::OutcomesNotCarried, "", takeovers);
}

#[test]
fn outcomes_for_clients_that_are_not_read_from_the_log() {
    shows(Mutant::OutcomesNotReplayed, "", takeovers);
}

#[test]
fn requests_that_are_sent_again_and_done_again() {
    shows(Mutant::OutcomesIgnored, "", takeovers);
}

#[test]
fn refused_writes_that_are_reported_as_done() {
    shows(Mutant::OutcomesOfRefusedKept, "", takeovers);
}

#[test]
fn reads_that_see_what_came_after_them() {
    shows(Mutant::ReadsOfThePresent, "read", takeovers);
}

#[test]
fn outcomes_for_clients_that_are_kept_for_good() {
    shows(Mutant::OutcomesKeptForever, "outcomes are kept", takeovers);
}

#[test]
fn snapshots_that_are_opened_again_whatever_was_dropped() {
    shows(Mutant::LostVersionsIgnored, "", takeovers);
}

#[test]
fn snapshots_that_are_opened_again_whatever_runs() {
    shows(Mutant::RunningJobsIgnored, "committed, though", takeovers);
}

#[test]
fn deletes_that_find_every_key() {
    shows(Mutant::AbsentKeysFound, "whether its key was there", runs);
}

#[test]
fn conflicts_that_are_ignored() {
    shows(Mutant::ConflictsIgnored, "committed, though", crashes);
    shows(Mutant::ConflictsIgnored, "committed, though", runs);
}

#[test]
fn conflicts_with_what_was_flushed() {
    shows(Mutant::ConflictsInTablesIgnored, "committed, though", short_runs);
}

#[test]
fn conflicts_with_deleted_ranges() {
    shows(Mutant::DeletedRangesIgnored, "committed, though", short_runs);
}

#[test]
fn tombstones_that_merges_forget() {
    shows(Mutant::TombstonesForgotten, "committed, though", short_runs);
}

#[test]
fn conditions_that_are_ignored() {
    shows(Mutant::ConditionsIgnored, "asked for", short_runs);
}

#[test]
fn expired_entries_that_merges_keep() {
    shows(Mutant::ExpiredEntriesKept, "merged, tables have", short_runs);
}

#[test]
fn merges_whose_clock_is_ahead() {
    shows(Mutant::MergeClockAhead, "missing", crashes);
}

#[test]
fn a_clock_that_starts_anew_at_each_opening() {
    shows(Mutant::ClockNotKept, "missing", crashes);
}

#[test]
fn gaps_that_hide_what_is_alive() {
    for bug in [
        Mutant::GapsNotCut,
        Mutant::GapsOfTheFuture,
        Mutant::GapsTooLong,
        Mutant::GapsOfThePast,
        Mutant::DeletedRangesAtOnce,
        Mutant::DeletedRangesLast,
    ] {
        shows(bug, "", runs);
    }
}

#[test]
fn scans_that_see_what_came_after_them() {
    shows(Mutant::NewestVersionsSeen, "", runs);
}

#[test]
fn scans_that_do_not_see_the_last_write() {
    shows(Mutant::OlderVersionsSeen, "", runs);
}

#[test]
fn scans_that_skip_the_key_behind_old_versions() {
    shows(Mutant::OldVersionsTooLong, "", runs);
}

#[test]
fn a_manifest_that_was_read_and_is_not_synced_before_the_log_goes_on() {
    shows(Mutant::ManifestNotKept, "", crashes);
}

/// A closed store after a page was lost.
fn lost_pages(seed: u64) -> Option<String> {
    damage_pages(&generate(seed), PageFault::Lost).err()
}

/// A store on the slots of another.
fn beneath(seed: u64) -> Option<String> {
    run_beneath(&plain(seed ^ 0x01d), &unencrypted(seed)).map(|failure| failure.what)
}

#[test]
fn segments_in_no_page_that_are_ignored() {
    shows(Mutant::StraysIgnored, "a wrong answer", lost_pages);
}

#[test]
fn headers_of_segments_that_are_not_flushed_before_the_first_record() {
    shows(Mutant::HeaderNotFlushedFirst, "is in no slot's page", crashes);
}

#[test]
fn salts_that_do_not_show_their_store() {
    shows(Mutant::StoreNotInSalt, "is in no slot's page", beneath);
}

#[test]
fn nonces_that_repeat_in_a_job() {
    shows(Mutant::ForksKeepSeeds, "a nonce is used twice", encrypted_runs);
}
