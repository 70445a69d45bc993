//! Short traces, crashed before and after every call to the disk, with every state that may survive.

use std::io::Write;

use varve_sim::exhaustive::{Effort, Tried, crash_everywhere, short_trace};

/// Seeds of the traces; `npm run sim -- --exhaustive N` takes others, and tries more of each.
const TRACES: u64 = 6;

#[test]
fn every_state_after_a_crash_is_a_prefix_with_all_that_was_promised() {
    let crash = |seed| {
        crash_everywhere(&short_trace(seed), Effort::BRIEF)
            .unwrap_or_else(|what| panic!("{what}\nreplay: npm run sim -- --exhaustive 1 --from {seed}"))
    };
    let mut tried = Tried::default();
    std::thread::scope(|scope| {
        let half = |odd| scope.spawn(move || (0..TRACES / 2).map(|n| crash(2 * n + odd)).collect::<Vec<_>>());
        let halves = [0, 1].map(half);
        for half in halves {
            half.join().expect("no crash was survived badly").iter().for_each(|more| tried.add(more));
        }
    });
    // Not captured, so that it also shows when the test passes.
    let _ = writeln!(std::io::stdout(), "{TRACES} short traces: {tried}");
    assert!(tried.images > 1000 && tried.shorter > 200 && tried.second_crashes > 1000, "{tried}");
}
