//! The command line of the simulator.
//!
//! ```text
//! varve-sim --seed N             one run, operation by operation
//! varve-sim --seeds K [--from N] K runs
//! varve-sim --seconds S | --minutes M [--from N]   runs until the time is over
//! varve-sim --exhaustive K [--from N]   K short traces, crashed at every call to the disk in every way
//! varve-sim --record FILE --from N      the recording of one calm trace, for another build to replay
//! ```
//! Without `--from`, the first seed comes from the clock and is printed. A failure ends the program with
//! status 1, after printing the seed, the cause, the shortest trace found, and how to replay.

use std::panic::catch_unwind;
use std::process::ExitCode;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use varve_sim::exhaustive::{Effort, Tried, crash_everywhere, short_trace};
use varve_sim::run::{Totals, run};
use varve_sim::shrink::shrink;
use varve_sim::trace::Trace;
use varve_sim::workload::generate;

/// Runs that the shrinker may spend on one failure.
const SHRINK_ATTEMPTS_MAX: u32 = 4000;

const USAGE: &str = "usage: varve-sim (--seed N | --seeds K | --seconds S | --minutes M | --exhaustive K | --record FILE) [--from N] [--keep-going]";

struct Arguments {
    first: u64,
    count: u64,
    until: Option<Instant>,
    verbose: bool,
    keep_going: bool,
    exhaustive: bool,
    record: Option<String>,
}

fn main() -> ExitCode {
    let Some(arguments) = parse(&std::env::args().skip(1).collect::<Vec<_>>()) else {
        eprintln!("{USAGE}");
        return ExitCode::from(2);
    };
    if let Some(file) = &arguments.record {
        return match std::fs::write(file, varve_sim::record::record(arguments.first)) {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => {
                eprintln!("{file}: {error}");
                ExitCode::FAILURE
            }
        };
    }
    // The runner catches panics and reports them with the trace; the default hook would print them twice.
    std::panic::set_hook(Box::new(|_| {}));
    if arguments.exhaustive { crash_short_traces(&arguments) } else { simulate(&arguments) }
}

fn parse(arguments: &[String]) -> Option<Arguments> {
    let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let mut parsed = Arguments {
        first: since_1970.as_secs() * 1_000_000,
        count: u64::MAX,
        until: None,
        verbose: false,
        keep_going: false,
        exhaustive: false,
        record: None,
    };
    let mut bounded = false;
    let mut rest = arguments.iter();
    while let Some(name) = rest.next() {
        if name == "--keep-going" {
            parsed.keep_going = true;
            continue;
        }
        if name == "--record" {
            parsed.record = Some(rest.next()?.clone());
            bounded = true;
            continue;
        }
        let number: u64 = rest.next()?.parse().ok()?;
        bounded |= name != "--from";
        match name.as_str() {
            "--seed" => {
                parsed.first = number;
                parsed.count = 1;
                parsed.verbose = true;
            }
            "--seeds" => parsed.count = number,
            "--exhaustive" => {
                parsed.count = number;
                parsed.exhaustive = true;
            }
            "--seconds" => parsed.until = Some(Instant::now() + Duration::from_secs(number)),
            "--minutes" => parsed.until = Some(Instant::now() + Duration::from_secs(60 * number)),
            "--from" => parsed.first = number,
            _ => return None,
        }
    }
    bounded.then_some(parsed)
}

fn simulate(arguments: &Arguments) -> ExitCode {
    println!("first seed {}", arguments.first);
    let mut totals = Totals::default();
    let mut failures = 0;
    let mut reported = Instant::now();
    let mut seed = arguments.first;
    while seed - arguments.first < arguments.count
        && arguments.until.is_none_or(|until| Instant::now() < until)
    {
        let trace = generate(seed);
        let outcome = run(&trace);
        totals.add(&outcome.totals);
        if arguments.verbose {
            println!("{trace}hash {:016x}", outcome.hash);
        }
        if let Some(failure) = outcome.failure {
            failures += 1;
            println!("seed {seed} failed at operation {}: {}", failure.op, failure.what);
            if !arguments.keep_going {
                let kind = kind(&failure.what);
                let fails =
                    |trace: &Trace| run(trace).failure.is_some_and(|other| self::kind(&other.what) == kind);
                let shorter = shrink(&trace, SHRINK_ATTEMPTS_MAX, fails);
                println!("the shortest trace that fails:\n{shorter}");
                if let Some(failure) = run(&shorter).failure {
                    println!("it fails at operation {}: {}", failure.op, failure.what);
                }
                println!("replay: cargo run -p varve-sim -- --seed {seed}");
                return ExitCode::FAILURE;
            }
        }
        seed += 1;
        if reported.elapsed() > Duration::from_secs(5) {
            println!("seed {seed}: {totals}");
            reported = Instant::now();
        }
    }
    println!("{} seeds, {failures} failed: {totals}", seed - arguments.first);
    if failures == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn crash_short_traces(arguments: &Arguments) -> ExitCode {
    println!("first seed {}", arguments.first);
    let mut tried = Tried::default();
    let mut failures = 0;
    for seed in (arguments.first..).take(arguments.count as usize) {
        let crashed = catch_unwind(|| crash_everywhere(&short_trace(seed), Effort::THOROUGH));
        match crashed.unwrap_or_else(|_| Err("the engine panics".to_owned())) {
            Ok(more) => tried.add(&more),
            Err(what) => {
                failures += 1;
                println!("{what}\nreplay: cargo run -p varve-sim -- --exhaustive 1 --from {seed}");
            }
        }
    }
    println!("{} traces, {failures} failed: {tried}", arguments.count);
    if failures == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// A failure without its numbers, so that a shrunk trace shows the same bug and not another.
fn kind(what: &str) -> String {
    let words = what.rsplit(": ").next().unwrap_or(what);
    words.chars().filter(|letter| !letter.is_ascii_digit()).take(30).collect()
}
