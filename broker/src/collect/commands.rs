//! What others ask of the collector: other settings, a pull now, to wait for one.

use std::collections::BTreeMap;

use collection::Version;
use net::clock;
use net::shutdown::Shutdown;

use super::{Collector, State};
use crate::config::Config;
use crate::error::Error;
use crate::pipeline::blocking;
use crate::schedule::Known;
use crate::source::Source;

impl Collector {
    /// Takes over changed settings. Removed sources are no longer pulled when this returns; what
    /// they hold is the catalog's to release.
    ///
    /// # Errors
    ///
    /// The notes of a new source cannot be read; the other sources are as the settings say.
    pub(crate) async fn reconfigure(&self, config: &Config) -> Result<(), Error> {
        let wanted: BTreeMap<String, Source> =
            config.sources.iter().map(|it| (it.name.clone(), it.clone())).collect();
        let now_ms = clock::now_ms();
        let (mut gone, mut changed, mut new) = (Vec::new(), Vec::new(), Vec::new());
        {
            let mut state = self.state();
            let State { schedule, live, .. } = &mut *state;
            for (name, it) in live.iter_mut() {
                match wanted.get(name) {
                    Some(source) if *source == it.source => {}
                    Some(source) => {
                        changed.push((source.clone(), Known::default()));
                        it.source = source.clone();
                        std::mem::replace(&mut it.cancel, Shutdown::new()).start();
                    }
                    None => {
                        it.cancel.start();
                        gone.push(name.clone());
                    }
                }
            }
            new.extend(wanted.values().filter(|it| !live.contains_key(&it.name)).cloned());
            schedule.handle_settings(config.freshness, now_ms);
            schedule.remove(&gone, now_ms);
            let names: Vec<String> = changed.iter().map(|(it, _)| it.name.clone()).collect();
            schedule.handle_sources(changed, now_ms);
            for name in &names {
                schedule.handle_request(name, now_ms);
            }
        }
        self.inner.changed.notify_one();
        for name in gone {
            self.until(|state| state.live.get(&name).is_none_or(|it| !it.pulling)).await;
            self.state().live.remove(&name);
        }
        let collector = self.clone();
        let add = move || collector.add(&new, now_ms);
        blocking("new sources", add).await?;
        self.inner.changed.notify_one();
        Ok(())
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
            let cursor = blocking("cursor of a source", move || collection.cursor(&key)).await?;
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
    async fn until(&self, holds: impl Fn(&State) -> bool) {
        let mut ended = self.inner.ended.subscribe();
        while !holds(&self.state()) {
            if ended.changed().await.is_err() {
                return;
            }
        }
    }
}
