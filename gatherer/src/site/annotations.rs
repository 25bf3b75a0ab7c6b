//! What is known of a gatherer's annotations between two readings.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex};

use essence::annotations::Annotations;
use essence::annotations::sources::Sources;

use crate::lock::lock;
use crate::progress::Annotated;

/// What a gatherer knows of its annotations.
#[derive(Debug, Default)]
pub(crate) struct Annotating {
    pub(crate) sources: Mutex<Sources>,
    pub(crate) current: Mutex<Arc<Annotations>>,
    /// Problems on the list, as object and kind.
    pub(crate) told: Mutex<BTreeSet<(String, &'static str)>>,
    pub(crate) counts: Mutex<Annotated>,
    /// Whether a file is to be looked at again soon.
    pub(crate) again: AtomicBool,
}

impl Annotating {
    /// Returns the annotations as they were last read.
    pub(crate) fn current(&self) -> Arc<Annotations> {
        lock(&self.current).clone()
    }

    /// Returns what status says of them.
    pub(crate) fn counts(&self) -> Annotated {
        lock(&self.counts).clone()
    }

    /// Whether a file has changed so lately that it was not read yet.
    pub(crate) fn is_unquiet(&self) -> bool {
        self.again.load(Relaxed)
    }
}
