//! The commands of a broker's administrator.

use collection::{Compacted, Swept, Version};

use super::{Handle, repository_daemon};
use crate::blocking::blocking;
use crate::config::Config;
use crate::error::Error;
use crate::pipeline::Stages;

impl Handle {
    /// Applies new settings: sources are added, changed and removed (a removed one releases all its
    /// objects), the settings of freshness and ranking apply at once, templates are read again. Returns the names
    /// of changed settings that need a restart.
    ///
    /// # Errors
    ///
    /// The templates cannot be read: nothing has changed. The collection cannot be read or written:
    /// the sources of the new settings stay, and the next reload or start tries the rest again.
    pub async fn reload(&self, config: Config) -> Result<Vec<&'static str>, Error> {
        let _turn = self.inner.turn.lock().await;
        let Stages { collector, catalog, .. } = &self.inner.stages;
        let fixed = fixed_differences(&self.config(), &config);
        // The part that may fail comes first: on an error, nothing has changed.
        let (page, admin_pages) = (self.inner.page.clone(), self.inner.admin_pages.clone());
        blocking("templates", move || page.pages().reload().and_then(|()| admin_pages.reload()))
            .await?;
        {
            let mut current = self.config();
            current.sources.clone_from(&config.sources);
            current.freshness = config.freshness;
            current.ranking = config.ranking;
            current.views.clone_from(&config.views);
            self.inner.page.views().set(config.views.clone());
            self.inner.engine.set_ranking(config.ranking);
            current.oai.clone_from(&config.oai);
            current.daemon.take_over(&config.daemon);
            self.inner.control.reload(&config.daemon);
            self.inner.stages.notifier.handle_access();
            let daemon = repository_daemon(&current, &self.inner.author.id);
            self.inner.stages.repository.set(config.oai.clone(), daemon);
        }
        self.inner.collection.trust_takedowns(config.trusted());
        collector.reconfigure(&config).await?;
        catalog.handle_sources(&config).await?;
        Ok(fixed)
    }

    /// Waits until a source has been pulled up to `version` (or a later epoch) and the index covers
    /// the pulled changes. Waits without limit: set a timeout.
    ///
    /// # Errors
    ///
    /// [`Error::SourceUnknown`]; the collection cannot be read.
    pub async fn caught_up(&self, source: &str, version: Version) -> Result<(), Error> {
        self.inner.stages.collector.wait_for_version(source, version).await?;
        self.inner.stages.indexer.caught_up().await
    }

    /// Makes one source (without a name, every source) due now. Returns the number made due.
    ///
    /// # Errors
    ///
    /// [`Error::SourceUnknown`].
    pub fn pull(&self, source: Option<&str>) -> Result<usize, Error> {
        self.inner.stages.collector.request(source)
    }

    /// Confirms the expiry that waits for an administrator.
    ///
    /// # Errors
    ///
    /// The collection cannot be written.
    pub async fn confirm(&self) -> Result<Swept, Error> {
        self.inner.stages.catalog.sweep(1.0).await
    }

    /// Confirms that a source loses most of its objects or returns to an older epoch, and makes the
    /// source due now. The confirmation lasts until a pull of the source succeeds.
    ///
    /// # Errors
    ///
    /// [`Error::SourceUnknown`].
    pub fn confirm_source(&self, source: &str) -> Result<usize, Error> {
        self.inner.stages.collector.confirm(source)
    }

    /// Releases objects of removed sources, heals damage, and rewrites the collection without
    /// superseded changes.
    ///
    /// # Errors
    ///
    /// The collection cannot be written; the steps before the failing one stay done.
    pub async fn compact(&self) -> Result<Compacted, Error> {
        let Stages { collector, catalog, .. } = &self.inner.stages;
        catalog.compact(&|source| drop(collector.request(Some(source)))).await
    }

    /// Compares every file of the full-text index with its checksum and returns the names of
    /// damaged files. If there are any, the index is built anew; until then it answers from the old
    /// files.
    ///
    /// # Errors
    ///
    /// The files cannot be read.
    pub async fn verify(&self) -> Result<Vec<String>, Error> {
        let engine = self.inner.engine.clone();
        let damaged = blocking("verification", move || engine.verify()).await?;
        Ok(damaged.iter().map(|path| path.display().to_string()).collect())
    }
}

/// Returns the names of the changed settings that are read only at the start.
fn fixed_differences(old: &Config, new: &Config) -> Vec<&'static str> {
    let differs = [
        ("name", old.name != new.name),
        ("templates", old.templates != new.templates),
        ("object_cache", old.object_caches != new.object_caches),
        ("push", old.push != new.push),
    ];
    let own = differs.into_iter().filter_map(|(name, differs)| differs.then_some(name));
    own.chain(old.daemon.differences(&new.daemon)).collect()
}
