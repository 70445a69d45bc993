//! The result as tables.

use varve_bench::report::table;

use crate::rows::Row;

/// The figures of one engine in a row, all for one operation.
pub struct Cell {
    pub engine: &'static str,
    /// Median of the rounds' means.
    pub wall_ns: f64,
    /// Processor time of all threads, median of the rounds.
    pub cpu_ns: f64,
    /// Distance between the rounds' means, divided by their median.
    pub spread: f64,
    /// Count of Rust's allocations.
    pub allocations: f64,
    /// Their bytes.
    pub bytes: f64,
}

/// One row.
pub struct Line {
    pub row: &'static Row,
    pub cells: Vec<Cell>,
}

/// Figures with a spread above this are marked.
const NOISY: f64 = 0.3;

fn times(cell: &Cell) -> String {
    let mark = if cell.spread > NOISY { "~" } else { "" };
    format!("{mark}{:.0} / {:.0}", cell.wall_ns, cell.cpu_ns)
}

fn memory(cell: &Cell) -> String {
    // Allocations of C++ are not seen.
    if cell.engine == "rocksdb" {
        return "not counted".to_owned();
    }
    format!("{:.0} B · {:.2}", cell.bytes, cell.allocations)
}

fn ratio(cells: &[Cell], of: impl Fn(&Cell) -> f64) -> Option<f64> {
    let find = |engine: &str| cells.iter().find(|cell| cell.engine == engine).map(&of);
    Some(find("varve")? / find("fjall")?)
}

/// Times, with Varve's as a ratio to fjall's, then bytes and allocations.
pub fn markdown(lines: &[Line]) -> String {
    let Some(first) = lines.first() else { return String::new() };
    let engines = || first.cells.iter().map(|cell| cell.engine.to_owned());
    let mut head = vec!["ns an operation: by the clock / of the processor".to_owned()];
    head.extend(engines());
    head.extend(["varve : fjall".to_owned(), "published".to_owned()]);
    let rows: Vec<_> = lines
        .iter()
        .map(|Line { row, cells }| {
            let mut texts = vec![row.title.to_owned()];
            texts.extend(cells.iter().map(times));
            let ratios = ratio(cells, |cell| cell.wall_ns).zip(ratio(cells, |cell| cell.cpu_ns));
            texts.push(ratios.map_or_else(String::new, |(wall, cpu)| format!("{wall:.2} / {cpu:.2}")));
            texts.push(row.published_ns.map_or("-".to_owned(), |ns| format!("{ns:.0}")));
            texts
        })
        .collect();
    let times = table(&head, &rows);
    let mut head = vec!["allocated by an operation: bytes · allocations".to_owned()];
    head.extend(engines());
    let rows: Vec<_> = lines
        .iter()
        .map(|Line { row, cells }| {
            let mut texts = vec![row.title.to_owned()];
            texts.extend(cells.iter().map(memory));
            texts
        })
        .collect();
    format!("{times}\n{}", table(&head, &rows))
}
