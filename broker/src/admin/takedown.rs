//! Takedown in a running broker: `harvest collection suppress` and `purge`.
//!
//! Source: ours.

use collection::{Notice, PurgeReport, Stamp, Subject, Suppression, TakenDown};
use exchange::takedown::{Refused, Takedown};
use net::clock;

use crate::blocking::blocking;
use crate::error::Error;
use crate::server::Handle;

impl Takedown for Handle {
    fn suppressions(&self) -> Vec<Suppression> {
        self.inner.collection.suppressions()
    }

    /// Suppresses the subject in the collection, then waits for the full-text index.
    async fn suppress(&self, subject: Subject, reason: String) -> Result<TakenDown, Refused> {
        let inner = self.inner.clone();
        let done = blocking("suppression", move || {
            let now = Stamp(clock::now_ms());
            inner.collection.suppress(&inner.author, subject, &reason, now)
        });
        let done = done.await?;
        self.inner.stages.indexer.caught_up().await?;
        Ok(done)
    }

    /// Lifts the suppression, then pulls all sources from the beginning.
    async fn lift(&self, subject: Subject) -> Result<Notice, Refused> {
        let inner = self.inner.clone();
        let done = blocking("suppression", move || {
            let now = Stamp(clock::now_ms());
            inner.collection.lift(&inner.author, subject, now)
        });
        let notice = done.await?;
        self.inner.stages.collector.begin_again()?;
        Ok(notice)
    }

    async fn purge(&self, only: Option<Subject>) -> Result<PurgeReport, Refused> {
        let inner = &self.inner;
        inner.stages.indexer.caught_up().await?;
        let Some(feed) = inner.feed.get() else {
            return Err(Error::Worker { what: "feed".to_owned() }.into());
        };
        let mut report = feed.purge(only).await?;
        let engine = inner.engine.clone();
        report.index_left = Some(blocking("purge", move || engine.purge()).await?);
        Ok(report)
    }
}
