//! The directory: the servers in a collection, and their content summaries, in memory and in step with its log.

use std::collections::BTreeMap;
use std::sync::Arc;

use collection::{Change, Collection, Error, Oid, Version};
use exchange::servers::{Server, server};

use super::summary::{Summary, is_summary};

/// The servers in a collection.
#[derive(Debug, Default)]
pub struct Directory {
    at: Version,
    servers: BTreeMap<Oid, Server>,
    summaries: BTreeMap<Oid, Arc<Summary>>,
}

impl Directory {
    /// Takes what has changed since the last time; returns whether anything has. Blocks.
    ///
    /// # Errors
    ///
    /// The log cannot be read; the next time goes on where this one ended.
    pub fn follow(&mut self, collection: &Collection) -> Result<bool, Error> {
        let to = collection.version();
        let mut is_changed = false;
        // What was deleted before the horizon is in the log no more.
        if self.at.epoch != to.epoch || self.at.serial < collection.horizon() {
            *self = Self { at: Version { serial: 0, ..to }, ..Self::default() };
            is_changed = true;
        }
        for scanned in collection.scan(self.at.serial)? {
            let scanned = scanned?;
            self.at.serial = scanned.serial;
            let Some(oid) = scanned.change.oid() else { continue };
            match &scanned.change {
                Change::Update(record) => {
                    self.remove(&oid);
                    if is_summary(record) {
                        let summary = Summary::read(record).map(Arc::new);
                        self.summaries.extend(summary.map(|it| (oid, it)));
                    } else {
                        self.servers.extend(server(record).map(|it| (oid, it)));
                    }
                }
                Change::Delete(_) | Change::Withdraw(..) | Change::Suppress(..) => {
                    self.remove(&oid);
                }
                Change::Refresh(..) | Change::Confirm { .. } => continue,
            }
            is_changed = true;
        }
        self.at.serial = self.at.serial.max(to.serial);
        Ok(is_changed)
    }

    fn remove(&mut self, oid: &Oid) {
        self.servers.remove(oid);
        self.summaries.remove(oid);
    }

    /// Returns the servers.
    pub fn servers(&self) -> impl Iterator<Item = &Server> {
        self.servers.values()
    }

    /// Returns the content summaries.
    pub(crate) fn summaries(&self) -> impl Iterator<Item = &Arc<Summary>> {
        self.summaries.values()
    }
}
