//! Readiness of the broker: `/readyz`.

use daemon::health::{Check, Readiness};

use super::Handle;
use crate::pipeline::Stages;

impl Handle {
    /// Returns whether the broker can do its work. Failing or held sources do not make it unready,
    /// since it still serves the objects that it has; the status of each source shows its failure.
    /// Blocks for a moment.
    pub fn ready(&self) -> Readiness {
        let inner = &self.inner;
        let Stages { catalog, indexer, .. } = &inner.stages;
        let [takes, serves] = exchange::ready::checks(&inner.collection);
        let tidies = "expired objects are not deleted, or superseded changes stay in the log: the broker \
                      tries again by itself";
        Readiness::new([
            takes,
            serves,
            indexer.check(),
            Check::new("tidies-up", tidies, catalog.view().problem),
        ])
    }
}
