//! Compaction: the log without what is superseded.
use crate::report::Stats;
pub(crate) fn is_due(stats: &Stats) -> bool {
    stats.members == 0
}
