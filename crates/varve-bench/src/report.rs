//! Tables in Markdown.

/// Columns of text, the first one left-aligned.
#[must_use]
pub fn table(head: &[String], rows: &[Vec<String>]) -> String {
    let line = |cells: &[String]| format!("| {} |\n", cells.join(" | "));
    let rule: Vec<String> =
        head.iter().enumerate().map(|(at, _)| if at == 0 { "---" } else { "--:" }.to_owned()).collect();
    let mut text = line(head) + &line(&rule);
    for row in rows {
        text += &line(row);
    }
    text
}

/// A number with at most three digits before its unit: 1.2k, 34k, 5.6M.
#[must_use]
pub fn short(number: f64) -> String {
    let (scaled, unit) = match number {
        n if n >= 1e9 => (n / 1e9, "G"),
        n if n >= 1e6 => (n / 1e6, "M"),
        n if n >= 1e3 => (n / 1e3, "k"),
        n => (n, ""),
    };
    let digits = if scaled >= 100.0 || (unit.is_empty() && scaled.fract() == 0.0) { 0 } else { 1 };
    format!("{scaled:.digits$}{unit}")
}

/// Bytes in MiB.
#[must_use]
pub fn mebibytes(bytes: u64) -> String {
    format!("{:.0} MiB", bytes as f64 / f64::from(1 << 20))
}
