//! The state of a gatherer's annotations between two reads.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex};

use essence::annotations::Annotations;
use essence::annotations::sources::Sources;

use crate::lock::lock;
use crate::progress::AnnotationCounts;

#[derive(Debug, Default)]
pub(crate) struct AnnotationState {
    pub(crate) sources: Mutex<Sources>,
    pub(crate) current: Mutex<Arc<Annotations>>,
    /// Problems on the list, as pairs of object and kind.
    pub(crate) listed: Mutex<BTreeSet<(String, &'static str)>>,
    pub(crate) counts: Mutex<AnnotationCounts>,
    /// Whether a file has to be read again soon.
    pub(crate) again: AtomicBool,
}

impl AnnotationState {
    pub(crate) fn current(&self) -> Arc<Annotations> {
        lock(&self.current).clone()
    }

    pub(crate) fn counts(&self) -> AnnotationCounts {
        lock(&self.counts).clone()
    }

    /// Returns whether a file has changed so recently that it has not been read yet.
    pub(crate) fn is_unquiet(&self) -> bool {
        self.again.load(Relaxed)
    }
}
