//! What others ask of the collector: other settings, a pull now, to wait for one.

use std::collections::BTreeMap;

use collection::Version;
use net::clock;
use net::shutdown::Shutdown;

use super::{Collector, State};
use crate::blocking::blocking;
use crate::config::Config;
use crate::error::Error;
use crate::live::Live;
use crate::source::Source;

impl Collector {
    /// Takes over changed settings. Removed sources are no longer pulled when this returns; what
    /// they hold is the catalog's to release.
    ///
    /// # Errors
    ///
    /// The notes of a new source cannot be read; the other sources are as the settings say.
    pub(crate) async fn reconfigure(&self, config: &Config) -> Result<(), Error> {
        let (collector, config, now_ms) = (self.clone(), config.clone(), clock::now_ms());
        let work = move || Ok::<_, Error>(collector.take_over(&config, now_ms));
        let (gone, new) = blocking("settings of sources", work).await?;
        self.inner.changed.notify_one();
        for name in gone {
            let is_idle = |it: &Live| !it.pulling && !it.taking;
            self.until(|state| state.live.get(&name).is_none_or(is_idle)).await;
            let mut state = self.state();
            state.parts.forget(&name);
            state.live.remove(&name);
        }
        let collector = self.clone();
        let add = move || {
            collector.wait_for_notes();
            collector.flush_log();
            collector.add(&new, now_ms)
        };
        blocking("new sources", add).await?;
        self.subscribe();
        self.inner.changed.notify_one();
        Ok(())
    }

    /// Takes over the settings of the sources that are there; returns the names of those that go, and the
    /// settings of those to come. May take a while with thousands of sources.
    fn take_over(&self, config: &Config, now_ms: u64) -> (Vec<String>, Vec<Source>) {
        let wanted: BTreeMap<&str, &Source> =
            config.sources.iter().map(|it| (it.name.as_str(), it)).collect();
        let (mut gone, mut changed) = (Vec::new(), Vec::new());
        let mut state = self.state();
        let State { schedule, live, parts, .. } = &mut *state;
        for (name, it) in live.iter_mut() {
            match wanted.get(name.as_str()) {
                Some(source) if **source == it.source => {}
                Some(source) => {
                    // It may be another's by now.
                    parts.forget(name);
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
        let new = wanted.values().filter(|it| !live.contains_key(&it.name));
        let new = new.map(|it| (*it).clone()).collect();
        schedule.remove(&gone, now_ms);
        let names: Vec<String> = changed.iter().map(|it| it.name.clone()).collect();
        schedule.handle_settings(config.freshness, changed, now_ms);
        for name in &names {
            schedule.handle_request(name, now_ms);
        }
        (gone, new)
    }

    /// Makes one source, or every one, due now; returns how many.
    ///
    /// # Errors
    ///
    /// [`Error::SourceUnknown`].
    pub(crate) fn request(&self, name: Option<&str>) -> Result<usize, Error> {
        let now_ms = clock::now_ms();
        let mut state = self.state();
        let names: Vec<String> = match name {
            Some(name) => vec![name.to_owned()],
            None => state.live.keys().cloned().collect(),
        };
        for name in &names {
            if !state.schedule.handle_request(name, now_ms) {
                return Err(Error::SourceUnknown { name: name.clone() });
            }
        }
        self.inner.changed.notify_one();
        Ok(names.len())
    }

    /// Has every source pulled anew: a long poll would not hear that its cursor is forgotten.
    pub(crate) fn begin_again(&self) -> Result<(), Error> {
        for live in self.state().live.values_mut() {
            std::mem::replace(&mut live.cancel, Shutdown::new()).start();
        }
        self.request(None).map(drop)
    }

    /// Lets a source lose what it is held for, and makes it due now.
    ///
    /// # Errors
    ///
    /// [`Error::SourceUnknown`].
    pub(crate) fn confirm(&self, name: &str) -> Result<usize, Error> {
        if let Some(live) = self.state().live.get_mut(name) {
            live.confirmed = true;
        }
        self.request(Some(name))
    }

    /// Waits until a source has been read up to `version`, or a later epoch of it has begun.
    ///
    /// # Errors
    ///
    /// [`Error::SourceUnknown`]; the cursor cannot be read.
    pub(crate) async fn reached(&self, name: &str, version: Version) -> Result<(), Error> {
        let mut ended = self.inner.ended.subscribe();
        loop {
            if !self.state().live.contains_key(name) {
                return Err(Error::SourceUnknown { name: name.to_owned() });
            }
            ended.mark_unchanged();
            let (collection, key) = (self.inner.collection.clone(), name.to_owned());
            let look = move || {
                let cursor = collection.cursor(&key)?;
                // Whoever goes on to wait for the index asks for the version that has it.
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
            // The sender lives in `self`: this cannot fail.
            if ended.changed().await.is_err() {
                return Err(Error::Worker { what: "collector".to_owned() });
            }
        }
    }

    /// Waits until `holds`; looked at whenever a pull ends.
    pub(super) async fn until(&self, holds: impl Fn(&State) -> bool) {
        let mut ended = self.inner.ended.subscribe();
        while !holds(&self.state()) {
            if ended.changed().await.is_err() {
                return;
            }
        }
    }
}
