//! The measurements, as tables.

use serde_json::Value;
use varve_bench::report::{mebibytes, short, table};

fn phase<'a>(runs: &'a [Value], engine: &str, pairs: u64, name: &str) -> Option<&'a Value> {
    let run = runs.iter().find(|run| run["engine"] == engine && run["pairs"] == pairs)?;
    run["phases"].as_array()?.iter().find(|phase| phase["name"] == name)
}

fn engines(runs: &[Value], pairs: u64) -> Vec<&str> {
    runs.iter().filter(|run| run["pairs"] == pairs).filter_map(|run| run["engine"].as_str()).collect()
}

/// Operations a second, and microseconds of the processor for one.
fn figures(phase: &Value) -> Option<[f64; 2]> {
    let ops = phase["ops"].as_f64()?;
    Some([ops / phase["seconds"].as_f64()?, phase["cpu_seconds"].as_f64()? / ops * 1e6])
}

const RATES: [&str; 11] = [
    "write",
    "read",
    "read after reopen",
    "iterate",
    "range",
    "read while writing",
    "read after compact",
    "delete",
    "transactions: write",
    "transactions: read",
    "transactions: read by 10 threads",
];

/// Rates, and the cost of the store, one column for each engine.
pub fn of_size(runs: &[Value], pairs: u64) -> String {
    let engines = engines(runs, pairs);
    let mut head =
        vec![format!("{} pairs: operations a second · us of processor for one", short(pairs as f64))];
    head.extend(engines.iter().map(|engine| (*engine).to_owned()));
    let mut rows = Vec::new();
    let mut row = |title: &str, show: &dyn Fn(&str) -> Option<String>| {
        let mut cells = vec![title.to_owned()];
        cells.extend(engines.iter().map(|engine| show(engine).unwrap_or_else(|| "-".to_owned())));
        rows.push(cells);
    };
    let of = |engine: &str, name: &str| phase(runs, engine, pairs, name);
    for name in RATES {
        row(name, &|engine| {
            let [rate, cpu_us] = figures(of(engine, name)?)?;
            Some(format!("{} · {cpu_us:.2}", short(rate)))
        });
    }
    row("open, ms", &|engine| Some(format!("{:.0}", of(engine, "open")?["seconds"].as_f64()? * 1e3)));
    row("longest write of every 64th, ms", &|engine| {
        Some(format!("{:.0}", of(engine, "write")?["more"]["slowest_ms"].as_f64()?))
    });
    let number = |engine: &str, name: &str, field: &str| of(engine, name)?["more"][field].as_f64();
    row("write amplification", &|engine| {
        Some(format!("{:.1}", number(engine, "background work after it", "write_amplification")?))
    });
    row("room that the load needs, beside all the data", &|engine| {
        Some(format!("{:.2}", number(engine, "write", "room")?))
    });
    row("space, most during the load, beside the data so far", &|engine| {
        Some(format!("{:.2}", number(engine, "write", "space_max")?))
    });
    row("space after the load", &|engine| {
        Some(format!("{:.2}", number(engine, "background work after it", "space")?))
    });
    row("space after compact", &|engine| Some(format!("{:.2}", number(engine, "compact", "space")?)));
    row("files after compact", &|engine| {
        of(engine, "compact")?["more"]["file_bytes"].as_u64().map(mebibytes)
    });
    row("memory by its own count, most", &|engine| {
        let bytes = of(engine, "memory")?["more"]["engine_memory_max"].as_u64()?;
        (bytes > 0).then(|| mebibytes(bytes))
    });
    row("memory of the process, most", &|engine| {
        of(engine, "memory")?["more"]["rss_max"].as_u64().map(mebibytes)
    });
    format!("\n{}", table(&head, &rows))
}

/// How much more an operation costs at the largest size than at the smallest.
pub fn growth(runs: &[Value], sizes: &[u64]) -> String {
    let (Some(&small), Some(&large)) = (sizes.iter().min(), sizes.iter().max()) else { return String::new() };
    let engines = engines(runs, large);
    if small == large {
        return String::new();
    }
    let mut head = vec![format!(
        "cost at {} : at {}, by the clock · of the processor",
        short(large as f64),
        short(small as f64)
    )];
    head.extend(engines.iter().map(|engine| (*engine).to_owned()));
    let ratio = |engine: &str, name: &str| {
        let [small, large] = [small, large].map(|pairs| figures(phase(runs, engine, pairs, name)?));
        let ([rate_small, cpu_small], [rate_large, cpu_large]) = (small?, large?);
        Some(format!("{:.2} · {:.2}", rate_small / rate_large, cpu_large / cpu_small))
    };
    let rows: Vec<_> = RATES
        .iter()
        .map(|name| {
            let mut cells = vec![(*name).to_owned()];
            cells.extend(engines.iter().map(|engine| ratio(engine, name).unwrap_or_else(|| "-".to_owned())));
            cells
        })
        .collect();
    format!("\n{}", table(&head, &rows))
}
