//! How a member begins: with what is on its disk.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use net::client::Client;
use net::identity::Identity;
use net::shutdown::Shutdown;
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use super::super::ask::Asks;
use super::super::kept::Kept;
use super::super::links::Links;
use super::super::measuring::Measuring;
use super::super::settings;
use super::super::watching::Watching;
use super::Core;
use crate::config::{Config, Entry};
use crate::error::Error;
use crate::group::Group;
use crate::id::MemberId;
use crate::link::{Caller, Command};
use crate::replica::Replica;
use crate::tree::passage::make_private;
use crate::version::{Kind, Version};

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
        let data = config.data.clone();
        if !data.exists() {
            make_private(&data)?;
        }
        // Two members of one key would contradict each other.
        let lock = disk::lock::take(&data).map_err(crate::tree::error::Error::from)?;
        let kept = Kept::open(&data)?;
        let identity = Arc::new(Identity::load_or_create(&data)?);
        let me = MemberId::of(&identity.public());
        let mut core = Self {
            _lock: lock,
            identity,
            me,
            kept,
            started,
            started_ms: net::clock::now_ms(),
            groups: BTreeMap::new(),
            replica: Replica::new(me),
            restored: BTreeMap::new(),
            spaces: BTreeMap::new(),
            links: Links::new(commands),
            measuring: Measuring::new(caller),
            watching: Watching::new(started),
            following: Default::default(),
            client: Client::new(net::client::Settings::default()),
            feeds: Default::default(),
            renewing: Default::default(),
            old: Default::default(),
            failures: BTreeMap::new(),
            stop: Shutdown::new(),
            notes: Default::default(),
            jobs: JoinSet::new(),
            look_at: Duration::ZERO,
            asks,
            publishing: BTreeSet::new(),
            carrying: Vec::new(),
            config: Arc::new(config),
        };
        core.close_data();
        core.open_groups()?;
        for kind in [Kind::Tree, Kind::Collection] {
            core.open_spaces(kind)?;
        }
        core.open_data();
        for bytes in core.kept.versions()? {
            if let Some(namespace) = Version::namespace_of(&bytes) {
                core.restored.insert(namespace, bytes);
            }
        }
        core.watching.set(&core.config.trees, Duration::ZERO);
        core.following.set(&core.config.collections, Duration::ZERO);
        core.link_replicas();
        Ok(core)
    }

    fn open_groups(&mut self) -> Result<(), Error> {
        let (now, key) = (self.now(), self.identity.public());
        for group in self.config.groups.clone() {
            let id = group.entry.group(&key);
            let settings = settings(&self.config, &group, Vec::new());
            let kept = self.kept.group(id)?;
            let name = group.entry.name().clone();
            let identity = self.identity.clone();
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
