//! `scale`: millions of pairs of 32 + 32 bytes in each engine, one after the other, each in a process of its own.
//!
//! Invariant: engines take turns size by size, so that those compared ran within minutes of each other; a process of its own
//! makes the memory that the operating system counts the engine's.

mod choice;
mod phases;
mod tables;

use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};

use serde_json::{Value, json};
use varve_bench::engine::Outcome;
use varve_bench::engines;

use choice::Choice;

/// Runs one engine at one size in a child, whose lines are its phases.
fn run_child(choice: &Choice, engine: &str, pairs: u64) -> Outcome<Vec<Value>> {
    let mut child = Command::new(std::env::current_exe()?)
        .args(choice.for_child(engine, pairs))
        .stdout(Stdio::piped())
        .stdin(Stdio::null())
        .spawn()?;
    let mut phases = Vec::new();
    for line in BufReader::new(child.stdout.take().ok_or("no output")?).lines() {
        phases.push(serde_json::from_str(&line?)?);
    }
    if !child.wait()?.success() {
        return Err(format!("{engine} with {pairs} pairs failed").into());
    }
    Ok(phases)
}

fn child(choice: &Choice, engine: &str, pairs: u64) -> Outcome {
    match engine {
        "varve" => phases::run::<engines::Varve>(choice, pairs),
        "fjall" => phases::run::<engines::Fjall>(choice, pairs),
        "redb" => phases::run::<engines::Redb>(choice, pairs),
        #[cfg(feature = "rocksdb")]
        "rocksdb" => phases::run::<engines::RocksDb>(choice, pairs),
        other => Err(format!("There is no engine {other} here.").into()),
    }
}

fn main() -> Outcome {
    let Some(choice) = Choice::from_args(std::env::args().skip(1))? else {
        print!("{}", choice::HELP);
        return Ok(());
    };
    if let Some(engine) = &choice.child {
        return child(&choice, engine, choice.pairs[0]);
    }
    let mut runs = Vec::new();
    for &pairs in &choice.pairs {
        for engine in &choice.engines {
            match run_child(&choice, engine, pairs) {
                Ok(phases) => runs.push(json!({ "engine": engine, "pairs": pairs, "phases": phases })),
                Err(error) => eprintln!("{error}"),
            }
            std::fs::remove_dir_all(choice.folder(engine)).ok();
            if let Some(file) = &choice.json {
                std::fs::write(file, serde_json::to_string_pretty(&runs)?)?;
            }
        }
        print!("{}", tables::of_size(&runs, pairs));
        std::io::stdout().flush()?;
    }
    print!("{}", tables::growth(&runs, &choice.pairs));
    Ok(())
}
