//! Essence: one fetched object in, its summaries out.
//!
//! Source: TR §4 and Figure 5: type recognition, presentation unnesting, summarizing. This is the
//! one call that the pipeline makes, and the one place that keeps a fault of a summarizer (a panic)
//! from reaching the run: it becomes a problem of that object, beside a record by name.
//!
//! Sans-I/O.

use crate::object::{Object, Summary};
use crate::summarize::Settings as SummarySettings;
use crate::unnest::Limits as UnnestLimits;

/// How objects are opened and summarized.
#[derive(Clone, Debug, Default)]
pub struct EssenceSettings {
    /// How much of an archive is opened.
    pub unnest: UnnestLimits,
    /// How much a record says.
    pub summary: SummarySettings,
}

/// Types, unnests and summarizes `object`: its own record first, then one for each member of an
/// archive, in the archive's order.
///
/// `cancelled` is polled inside every long loop, so that it serves as the deadline and as the stop
/// of the run alike; when it says true, what has been found so far is returned with a problem that
/// says so. Never panics, never returns nothing.
pub fn extract(
    object: Object,
    settings: &EssenceSettings,
    cancelled: &dyn Fn() -> bool,
) -> Vec<Summary> {
    let _ = (object, settings, cancelled);
    Vec::new()
}
