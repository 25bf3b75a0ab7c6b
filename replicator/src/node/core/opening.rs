//! How a member begins: with what is on its disk.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use net::shutdown::Shutdown;
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use super::super::ask::Asks;
use super::super::feeds::Feeding;
use super::super::links::Links;
use super::super::measuring::Measuring;
use super::super::own::Own;
use super::super::places::{close_data, link_replicas};
use super::super::settings;
use super::super::sources::Sources;
use super::super::spaces::Spaces;
use super::Core;
use crate::config::{Config, Entry};
use crate::error::Error;
use crate::group::Group;
use crate::link::{Caller, Command};
use crate::replica::Replica;

impl Core {
    /// Opens everything that is stored, or makes it. Blocks.
    ///
    /// # Errors
    ///
    /// A folder cannot be used or is in use, or a group cannot be gone on with; the message says what to do.
    pub(crate) fn open(
        config: Config,
        caller: Arc<Caller>,
        started: Instant,
        commands: mpsc::Sender<Command>,
        asks: Asks,
    ) -> Result<Self, Error> {
        let own = Own::open(config, started)?;
        let stop = Shutdown::new();
        let mut core = Self {
            groups: BTreeMap::new(),
            replica: Replica::new(own.me),
            spaces: Spaces::default(),
            feeding: Feeding::new(stop.clone()),
            links: Links::new(commands),
            measuring: Measuring::new(caller),
            sources: Sources::new(&own, started, &stop),
            stop,
            notes: Default::default(),
            jobs: JoinSet::new(),
            look_at: Duration::ZERO,
            asks,
            carrying: Vec::new(),
            own,
        };
        close_data(&core.own, &mut core.notes);
        core.open_groups()?;
        core.spaces = Spaces::open(&core.own, &mut core.notes)?;
        link_replicas(&core.own, &mut core.notes);
        Ok(core)
    }

    fn open_groups(&mut self) -> Result<(), Error> {
        let (now, key) = (self.now(), self.own.key());
        for group in self.own.config.groups.clone() {
            let id = group.entry.group(&key);
            let settings = settings(&self.own.config, &group, Vec::new());
            let kept = self.own.kept.group(id)?;
            let name = group.entry.name().clone();
            let identity = self.own.identity.clone();
            let machine = match (&group.entry, kept) {
                (Entry::Found(_), None) => {
                    let found = Group::found(identity, name.clone(), settings, now);
                    let mut found = found.map_err(|source| Error::Found { group: name, source })?;
                    found.handle_clock(net::clock::now_ms() / 1_000, now);
                    self.invite_first(id, &mut found)?;
                    found
                }
                (entry, kept) => {
                    self.forget_first(id);
                    let invitation = match entry {
                        Entry::Found(_) => None,
                        Entry::Join(invitation) => Some(invitation.clone()),
                    };
                    Group::open(identity, settings, kept.as_deref(), invitation, now)
                        .map_err(|source| Error::Open { group: name, source })?
                }
            };
            self.groups.insert(id, machine);
        }
        Ok(())
    }
}
