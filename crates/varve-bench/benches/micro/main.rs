//! `micro`: one operation at a time, in every engine.
//!
//! Invariant: the engines of a row take turns, round by round, and are timed by criterion; the table shows the median of the
//! rounds' means. The next turn begins when the background work of the last one is done: its processor time belongs to that
//! engine. Allocations are counted in a separate pass, so that counting costs no time.

mod rows;
mod table;

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use cpu_time::ProcessTime;
use criterion::{BenchmarkId, Criterion, SamplingMode};
use varve_bench::allocations::{Counting, counted};
use varve_bench::engine::{Engine, Outcome};
use varve_bench::engines;

use rows::{ROWS, Row, Subject};
use table::{Cell, Line};

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Operations of the pass that counts.
const COUNTED: u64 = 20_000;

const HELP: &str = "\
npm run bench:native -- micro [options]

  --rounds N        rounds in which the engines take turns (default: 3)
  --row NAME        only the rows whose name contains this
  --engines LIST    varve, fjall, redb, rocksdb (default: all)
  --folder DIR      where the stores lie (default: a folder in the temporary one)
  --markdown FILE   also writes the table there
";

struct Choice {
    rounds: usize,
    row: String,
    engines: Vec<String>,
    folder: PathBuf,
    markdown: Option<PathBuf>,
}

fn choice() -> Outcome<Option<Choice>> {
    let mut choice = Choice {
        rounds: 3,
        row: String::new(),
        engines: ["varve", "fjall", "redb", "rocksdb"].map(str::to_owned).into(),
        folder: std::env::temp_dir().join("varve-bench-micro"),
        markdown: None,
    };
    // `cargo bench` adds `--bench`.
    let mut args = std::env::args().skip(1).filter(|arg| arg != "--bench");
    while let Some(name) = args.next() {
        if name == "--help" {
            return Ok(None);
        }
        let value = args.next().ok_or_else(|| format!("{name} needs a value.\n\n{HELP}"))?;
        match name.as_str() {
            "--rounds" => choice.rounds = value.parse()?,
            "--row" => choice.row = value,
            "--engines" => choice.engines = value.split(',').map(str::to_owned).collect(),
            "--folder" => choice.folder = value.into(),
            "--markdown" => choice.markdown = Some(value.into()),
            _ => return Err(format!("There is no option {name}.\n\n{HELP}").into()),
        }
    }
    Ok(Some(choice))
}

fn open<E: Engine + 'static>(row: &Row, folder: &Path) -> Outcome<(&'static str, Box<dyn Subject>)> {
    Ok((E::NAME, rows::subject::<E>(row, &folder.join(E::NAME))?))
}

fn subjects(choice: &Choice, row: &Row, folder: &Path) -> Outcome<Vec<(&'static str, Box<dyn Subject>)>> {
    let mut subjects = Vec::new();
    for engine in &choice.engines {
        subjects.push(match engine.as_str() {
            "varve" => open::<engines::Varve>(row, folder)?,
            "fjall" => open::<engines::Fjall>(row, folder)?,
            "redb" => open::<engines::Redb>(row, folder)?,
            #[cfg(feature = "rocksdb")]
            "rocksdb" => open::<engines::RocksDb>(row, folder)?,
            #[cfg(not(feature = "rocksdb"))]
            "rocksdb" => continue,
            other => return Err(format!("There is no engine {other}.").into()),
        });
    }
    Ok(subjects)
}

/// Nanoseconds of one operation, by wall-clock time and by the processor time of the whole process.
type Round = (f64, f64);

/// Lets criterion run a subject; returns the means over all that it ran, warm-up included. The processor time includes all
/// deferred work. A store that makes its writers wait for deferred work may do that work during warm-up, and then criterion
/// would measure only the rest.
fn time(row: &Row, engine: &str, subject: &mut dyn Subject, results: &Path) -> Outcome<Round> {
    let mut criterion = Criterion::default()
        .output_directory(results)
        .without_plots()
        .sample_size(20)
        // Nobody reads criterion's estimates, and the work of an engine while they are made would be counted for no engine.
        .nresamples(1)
        .warm_up_time(Duration::from_millis(150))
        .measurement_time(Duration::from_millis(1500));
    let mut failed = None;
    let (mut elapsed, mut busy, mut ops_all) = (Duration::ZERO, Duration::ZERO, 0);
    let mut group = criterion.benchmark_group(row.id);
    group.sampling_mode(SamplingMode::Flat);
    group.bench_function(BenchmarkId::from_parameter(engine), |bencher| {
        bencher.iter_custom(|ops| {
            let (started, working) = (Instant::now(), ProcessTime::now());
            if let Err(error) = subject.run(ops) {
                failed = Some(error);
            }
            let took = started.elapsed();
            elapsed += took;
            busy += working.elapsed();
            ops_all += ops;
            took
        });
    });
    group.finish();
    let working = ProcessTime::now();
    let finished = subject.finish_jobs();
    busy += working.elapsed();
    if let Some(error) = failed.or(finished.err()) {
        return Err(format!("{} of {engine}: {error}", row.title).into());
    }
    Ok((elapsed.as_nanos() as f64 / ops_all as f64, busy.as_nanos() as f64 / ops_all as f64))
}

fn median(rounds: &[Round], of: impl Fn(&Round) -> f64) -> (f64, f64) {
    let mut figures: Vec<_> = rounds.iter().map(of).collect();
    figures.sort_by(f64::total_cmp);
    let middle = figures[figures.len() / 2];
    (middle, (figures[figures.len() - 1] - figures[0]) / middle)
}

fn measure(choice: &Choice, row: &'static Row, results: &Path) -> Outcome<Line> {
    let folder = choice.folder.join(row.id);
    std::fs::remove_dir_all(&folder).ok();
    let mut subjects = subjects(choice, row, &folder)?;
    let mut rounds = vec![Vec::new(); subjects.len()];
    for round in 0..choice.rounds {
        for turn in 0..subjects.len() {
            // Another one begins each round.
            let at = (turn + round) % subjects.len();
            let (engine, subject) = &mut subjects[at];
            rounds[at].push(time(row, engine, subject.as_mut(), results)?);
        }
    }
    let mut cells = Vec::new();
    for ((engine, subject), rounds) in subjects.iter_mut().zip(rounds) {
        let (wall_ns, spread) = median(&rounds, |round| round.0);
        let mut done = Ok(());
        let (allocations, bytes) = counted(|| done = subject.run(COUNTED));
        done?;
        cells.push(Cell {
            engine,
            wall_ns,
            cpu_ns: median(&rounds, |round| round.1).0,
            spread,
            allocations: allocations as f64 / COUNTED as f64,
            bytes: bytes as f64 / COUNTED as f64,
        });
    }
    drop(subjects);
    std::fs::remove_dir_all(&folder).ok();
    Ok(Line { row, cells })
}

fn main() -> Outcome {
    let Some(choice) = choice()? else {
        print!("{HELP}");
        return Ok(());
    };
    let results = choice.folder.join("criterion");
    let mut lines = Vec::new();
    for row in ROWS.iter().filter(|row| row.title.contains(&choice.row)) {
        lines.push(measure(&choice, row, &results)?);
    }
    let text = table::markdown(&lines);
    print!("\n{text}");
    if let Some(file) = &choice.markdown {
        std::fs::write(file, text)?;
    }
    std::fs::remove_dir_all(&choice.folder).ok();
    Ok(())
}
