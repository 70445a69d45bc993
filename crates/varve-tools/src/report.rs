//! Reports as JSON. Keys are hexadecimal: they are bytes to the engine, and decoded where their codec is.
//!
//! Invariant: every text in a report is one of the engine's own words, so that nothing has to be escaped.

use std::fmt::Write;

use varve::check::{CheckReport, Problem};
use varve::repair::{Lost, RepairReport};
use varve::types::{FileKind, FileName};

/// The findings of a check.
pub(crate) fn check(report: &CheckReport) -> String {
    let mut json = String::from("{");
    numbers(
        &mut json,
        &[
            ("tables", report.tables),
            ("blocks", report.blocks),
            ("entries", report.entries),
            ("segments", report.segments),
            ("records", report.records),
            ("bytes", report.bytes),
        ],
    );
    let _ = write!(json, ",\"withoutKey\":{}", report.without_key);
    json.push_str(",\"problems\":[");
    list(&mut json, &report.problems, problem);
    json.push_str("]}");
    json
}

/// The result of a repair.
pub(crate) fn repair(report: &RepairReport) -> String {
    let mut json = String::from("{");
    numbers(
        &mut json,
        &[
            ("entries", report.entries),
            ("tables", report.tables),
            ("segments", report.segments),
            ("records", report.records),
            ("older", report.older),
        ],
    );
    let _ = write!(json, ",\"sealed\":{},\"mayResurrect\":{}", report.is_sealed, report.may_resurrect);
    json.push_str(",\"lost\":[");
    list(&mut json, &report.lost, lost);
    json.push_str("]}");
    json
}

fn problem(json: &mut String, problem: &Problem) {
    named(json, Some(problem.file), problem.what);
    let _ = write!(json, ",\"kind\":\"{}\"", problem.kind.word());
    optional(json, "offset", problem.offset);
    optional(json, "level", problem.level.map(u64::from));
    json.push('}');
}

fn lost(json: &mut String, lost: &Lost) {
    named(json, lost.file, lost.what);
    let _ = write!(json, ",\"offset\":{},\"data\":{}", lost.offset, lost.is_data);
    optional(json, "bytes", lost.bytes);
    for (name, key) in [("from", &lost.from), ("to", &lost.to)] {
        if let Some(key) = key {
            let _ = write!(json, ",\"{name}\":\"");
            for byte in key {
                let _ = write!(json, "{byte:02x}");
            }
            json.push('"');
        }
    }
    json.push('}');
}

/// The file of an item and its problem. Leaves the object open.
fn named(json: &mut String, file: Option<FileName>, what: &str) {
    let (kind, id) = file.map_or(("", 0), |file| (word(file.kind), file.id));
    let _ = write!(json, "{{\"file\":\"{kind} {id}\",\"message\":\"{what}\"");
}

fn word(kind: FileKind) -> &'static str {
    match kind {
        FileKind::Manifest => "manifest",
        FileKind::Wal => "log",
        FileKind::Table => "table",
    }
}

fn numbers(json: &mut String, numbers: &[(&str, u64)]) {
    for (at, (name, value)) in numbers.iter().enumerate() {
        let comma = if at == 0 { "" } else { "," };
        let _ = write!(json, "{comma}\"{name}\":{value}");
    }
}

fn optional(json: &mut String, name: &str, value: Option<u64>) {
    if let Some(value) = value {
        let _ = write!(json, ",\"{name}\":{value}");
    }
}

fn list<T>(json: &mut String, items: &[T], write: impl Fn(&mut String, &T)) {
    for (at, item) in items.iter().enumerate() {
        if at > 0 {
            json.push(',');
        }
        write(json, item);
    }
}
