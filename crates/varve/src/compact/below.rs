//! The levels below the outputs of a job: which keys have older versions there, and where the tables of the next level end.
//!
//! Invariant: keys are asked for in ascending order, so each level is walked once.

use std::rc::Rc;

use crate::table::TableMeta;
use crate::types::RangeTombstone;

/// The tables under a job's key range, one list for each level below the outputs, each by key.
#[derive(Debug, Default)]
pub(crate) struct Below {
    levels: Vec<Vec<Rc<TableMeta>>>,
    /// The first table of each level that does not end before the key.
    at: Vec<usize>,
    /// Bytes of the next level passed since the last cut.
    passed_bytes: u64,
    /// A table of the next level ended before the key.
    passed: bool,
}

impl Below {
    pub(crate) fn new(levels: Vec<Vec<Rc<TableMeta>>>) -> Self {
        Self { at: vec![0; levels.len()], levels, passed_bytes: 0, passed: false }
    }

    /// Advances to `key`.
    pub(crate) fn advance(&mut self, key: &[u8]) {
        self.passed = false;
        for (level, (tables, at)) in self.levels.iter().zip(&mut self.at).enumerate() {
            while let Some(table) = tables.get(*at).filter(|table| table.max_key.as_slice() < key) {
                *at += 1;
                if level == 0 {
                    self.passed_bytes += table.live_bytes();
                    self.passed = true;
                }
            }
        }
    }

    /// Whether an older version of `key` may lie here. `key` is the one advanced to.
    pub(crate) fn may_hold(&self, key: &[u8]) -> bool {
        let holds = |(tables, at): (&Vec<Rc<TableMeta>>, &usize)| {
            tables.get(*at).is_some_and(|table| table.min_key.as_slice() <= key)
        };
        self.levels.iter().zip(&self.at).any(holds)
    }

    /// Whether a key of `range` may lie here.
    pub(crate) fn touches(&self, range: &RangeTombstone) -> bool {
        let tables = || self.levels.iter().flatten();
        tables().any(|table| table.min_key < range.end && range.start <= table.max_key)
    }

    /// Bytes of the next level that an output ending now would overlap.
    pub(crate) fn passed_bytes(&self) -> u64 {
        self.passed_bytes
    }

    /// Whether the current key is the first after a table of the next level.
    pub(crate) fn is_boundary(&self) -> bool {
        self.passed
    }

    /// An output was cut.
    pub(crate) fn cut(&mut self) {
        self.passed_bytes = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(first: &str, last: &str) -> Rc<TableMeta> {
        Rc::new(TableMeta { size: 10, min_key: first.into(), max_key: last.into(), ..TableMeta::default() })
    }

    #[test]
    fn only_keys_inside_a_table_count() {
        let mut below = Below::new(vec![vec![table("b", "d"), table("f", "f")], vec![table("c", "g")]]);
        let mut covered = Vec::new();
        for key in ["a", "b", "d", "e", "f", "g", "h"] {
            below.advance(key.as_bytes());
            if below.may_hold(key.as_bytes()) {
                covered.push(key);
            }
        }
        assert_eq!(covered, ["b", "d", "e", "f", "g"]);
        assert_eq!(below.passed_bytes(), 20, "only the next level counts");
    }

    #[test]
    fn a_range_touches_up_to_its_end() {
        let below = Below::new(vec![vec![table("m", "p")]]);
        let range =
            |start: &str, end: &str| RangeTombstone { start: start.into(), end: end.into(), sequence: 1 };
        assert!(!below.touches(&range("a", "m")) && !below.touches(&range("q", "z")));
        assert!(below.touches(&range("a", "n")) && below.touches(&range("p", "z")));
    }
}
