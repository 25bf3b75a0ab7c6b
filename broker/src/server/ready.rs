//! Whether the broker can do what it is for: `/readyz`.

use daemon::health::{Check, Readiness};
use web::templates::grouped;

use super::Handle;
use crate::pipeline::Stages;

impl Handle {
    /// Returns whether the broker can do what it is for. One whose sources fail or are held serves what
    /// it has: each source's status says so. Blocks for a moment.
    pub fn ready(&self) -> Readiness {
        let inner = &self.inner;
        let Stages { catalog, indexer, .. } = &inner.stages;
        let [takes, serves] = exchange::ready::checks(&inner.collection);
        let unfinished = || {
            let (reached, goal) = indexer.unfinished().filter(|_| !inner.collection.is_empty())?;
            let (reached, goal) = (grouped(reached), grouped(goal));
            Some(format!("the full-text index is being built: {reached} of {goal} changes"))
        };
        let searches = "the full-text index fails or is made anew: searches do not find all that is here; \
                        it is tried again by itself";
        let tidies = "what has expired is not deleted, or what is superseded not left out of the log: it is \
                      tried again by itself";
        Readiness::new([
            takes,
            serves,
            Check::new("answers-searches", searches, indexer.problem().or_else(unfinished)),
            Check::new("tidies-up", tidies, catalog.view().problem),
        ])
    }
}
