//! `compact()`: everything that was written up to a sequence becomes one run in the deepest level, without tombstones and expired
//! entries, under the current key.
//!
//! One sweep from the lowest key to the highest merges all levels at once, job by job. Each job ends at the cap. So
//! every byte is written once; a cascade from level to level would write it several times.
//!
//! Invariant: after a job, no table before its end is due again, if they were written up to the requested sequence. So the
//! sweep finishes. Entries that are written meanwhile stay above.

use super::{DEEPEST, Merge, Shared, Situation};
use crate::manifest::Version;
use crate::table::TableMeta;
use crate::types::Sequence;

/// The level that the sweep merges into.
fn bottom(version: &Version) -> usize {
    if version.levels() > 1 { version.levels() - 1 } else { DEEPEST }
}

impl Situation<'_> {
    /// Whether the sweep has to process a table.
    fn is_due_in_sweep(&self, table: &TableMeta, level: usize, bottom: usize, until: Sequence) -> bool {
        let has_dead = table.tombstones + table.range_tombstones > 0 || table.has_expired(self.expired_by());
        let has_dead = has_dead && self.may_drop(table);
        let is_old = table.key != self.key;
        table.min_sequence <= until && (level < bottom || has_dead || table.is_narrowed() || is_old)
    }

    /// The next job of a sweep over everything that was written up to `until`; `None` when the sweep is done.
    pub(crate) fn whole(&self, until: Sequence) -> Option<Merge> {
        let version = self.version;
        let bottom = bottom(version);
        let (mut first, mut last): (Option<&Vec<u8>>, Option<&Vec<u8>>) = (None, None);
        for (level, table) in version.tables() {
            if self.is_due_in_sweep(table, level, bottom, until) {
                first = first.into_iter().chain([&table.min_key]).min();
                last = last.max(Some(&table.max_key));
            }
        }
        let (mut first, mut last) = (first?, last?);
        // Below level 0, a table must be merged with all tables that it overlaps. Of level 0, the oldest tables are merged.
        loop {
            let mut runs: Vec<Vec<Shared>> = Vec::new();
            let (low, high) = (first, last);
            for level in 0..=bottom {
                let mut run = Vec::new();
                for table in version.overlapping(level, low, high) {
                    if level > 0 {
                        run.push(table.clone());
                    } else if table.min_sequence <= until {
                        runs.push(vec![table.clone()]);
                    } else {
                        continue;
                    }
                    if level < bottom {
                        first = first.min(&table.min_key);
                        last = last.max(&table.max_key);
                    }
                }
                if !run.is_empty() {
                    runs.push(run);
                }
            }
            if (low, high) == (first, last) {
                return self.finish(runs, bottom);
            }
        }
    }
}
