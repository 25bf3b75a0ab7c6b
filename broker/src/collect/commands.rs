//! Commands to the collector: new settings, a pull now, waiting for a version.

use std::collections::BTreeMap;

use collection::Version;
use net::clock;
use net::shutdown::Shutdown;

use super::{Collector, CollectorState};
use crate::blocking::blocking;
use crate::config::Config;
use crate::error::Error;
use crate::source::Source;

impl Collector {
    /// Applies changed settings. When this returns, removed sources are no longer pulled, and the
    /// caller has the catalog release their objects.
    ///
    /// # Errors
    ///
    /// The notes of a new source cannot be read; the other sources have their new settings.
    pub(crate) async fn reconfigure(&self, config: &Config) -> Result<(), Error> {
        let (collector, config, now_ms) = (self.clone(), config.clone(), clock::now_ms());
        let work = move || Ok::<_, Error>(collector.take_over(&config, now_ms));
        let (gone, new) = blocking("settings of sources", work).await?;
        self.inner.changed.notify_one();
        for name in gone {
            self.wait_until(|it| it.sources.get(&name).is_none_or(|it| !it.pulling)).await;
            self.state().sources.remove(&name);
        }
        let collector = self.clone();
        let add = move || {
            // Wait for notes that are being written. Otherwise the note of a removed source could
            // come after its release, and a later source of the same name would begin with it.
            drop(collector.notes_turn());
            collector.flush_log();
            collector.add(&new, now_ms)
        };
        blocking("new sources", add).await?;
        self.subscribe();
        self.inner.changed.notify_one();
        Ok(())
    }

    /// Applies the settings to existing sources; returns the names of the removed sources and the
    /// settings of the new ones. May take a while with thousands of sources.
    fn take_over(&self, config: &Config, now_ms: u64) -> (Vec<String>, Vec<Source>) {
        let wanted: BTreeMap<&str, &Source> =
            config.sources.iter().map(|it| (it.name.as_str(), it)).collect();
        let (mut gone, mut changed) = (Vec::new(), Vec::new());
        let mut state = self.state();
        let CollectorState { schedule, sources, .. } = &mut *state;
        for (name, it) in sources.iter_mut() {
            match wanted.get(name.as_str()) {
                Some(source) if **source == it.source => {}
                Some(source) => {
                    changed.push((*source).clone());
                    it.source = (*source).clone();
                    std::mem::replace(&mut it.cancel, Shutdown::new()).start();
                }
                None => {
                    it.cancel.start();
                    gone.push(name.clone());
                }
            }
        }
        let new = wanted.values().filter(|it| !sources.contains_key(&it.name));
        let new = new.map(|it| (*it).clone()).collect();
        schedule.remove(&gone, now_ms);
        let names: Vec<String> = changed.iter().map(|it| it.name.clone()).collect();
        schedule.handle_settings(config.freshness, changed, now_ms);
        for name in &names {
            schedule.handle_request(name, now_ms);
        }
        (gone, new)
    }

    /// Makes one source, or without a name every source, due now; returns the number of sources
    /// made due.
    ///
    /// # Errors
    ///
    /// [`Error::SourceUnknown`].
    pub(crate) fn request(&self, name: Option<&str>) -> Result<usize, Error> {
        let now_ms = clock::now_ms();
        let mut state = self.state();
        let names: Vec<String> = match name {
            Some(name) => vec![name.to_owned()],
            None => state.sources.keys().cloned().collect(),
        };
        for name in &names {
            if !state.schedule.handle_request(name, now_ms) {
                return Err(Error::SourceUnknown { name: name.clone() });
            }
        }
        self.inner.changed.notify_one();
        Ok(names.len())
    }

    /// Cancels running pulls and makes all sources due now: a running long poll would not notice
    /// that its cursor is gone.
    pub(crate) fn begin_again(&self) -> Result<(), Error> {
        for entry in self.state().sources.values_mut() {
            std::mem::replace(&mut entry.cancel, Shutdown::new()).start();
        }
        self.request(None).map(drop)
    }

    /// Confirms the loss or the older epoch for which a source is held, and makes it due now.
    ///
    /// # Errors
    ///
    /// [`Error::SourceUnknown`].
    pub(crate) fn confirm(&self, name: &str) -> Result<usize, Error> {
        if let Some(entry) = self.state().sources.get_mut(name) {
            entry.confirmed = true;
        }
        self.request(Some(name))
    }

    /// Waits until a source has been pulled up to `version` or a later epoch.
    ///
    /// # Errors
    ///
    /// [`Error::SourceUnknown`]; the cursor cannot be read.
    pub(crate) async fn wait_for_version(&self, name: &str, version: Version) -> Result<(), Error> {
        let mut ended = self.inner.ended.subscribe();
        loop {
            if !self.state().sources.contains_key(name) {
                return Err(Error::SourceUnknown { name: name.to_owned() });
            }
            ended.mark_unchanged();
            let (collection, key) = (self.inner.collection.clone(), name.to_owned());
            let look = move || {
                let cursor = collection.cursor(&key)?;
                // The collection's version must have these changes before a caller waits for the
                // index to cover it.
                let _version = collection.committed();
                Ok::<_, collection::Error>(cursor)
            };
            let cursor = blocking("cursor of a source", look).await?;
            let there = cursor.is_some_and(|it| {
                let at = Version { epoch: it.epoch, serial: it.serial };
                it.snapshot.is_none() && version <= at
            });
            if there {
                return Ok(());
            }
            // The sender lives in `self`, so this cannot fail.
            if ended.changed().await.is_err() {
                return Err(Error::Worker { what: "collector".to_owned() });
            }
        }
    }

    /// Waits until `holds` returns true; it is checked after every pull.
    pub(super) async fn wait_until(&self, holds: impl Fn(&CollectorState) -> bool) {
        let mut ended = self.inner.ended.subscribe();
        while !holds(&self.state()) {
            if ended.changed().await.is_err() {
                return;
            }
        }
    }
}
