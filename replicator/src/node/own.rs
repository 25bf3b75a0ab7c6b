//! The member itself, apart from its groups and trees: its key, settings, data directory and clock.

use std::sync::Arc;
use std::time::{Duration, Instant};

use net::identity::Identity;

use super::state_files::StateFiles;
use crate::config::Config;
use crate::error::Error;
use crate::id::{GroupId, MemberId};
use crate::tree::access::make_private;
use crate::version::{Name, Namespace};

pub(super) struct Own {
    /// The lock on the data directory: only one process may use it.
    _lock: disk::lock::Lock,
    pub(super) identity: Arc<Identity>,
    pub(super) me: MemberId,
    pub(super) config: Arc<Config>,
    pub(super) files: StateFiles,
    started: Instant,
    /// Unix time of the start, in milliseconds.
    pub(super) started_ms: u64,
}

impl Own {
    /// Opens the data directory, or makes it. Blocks. Fails if another process uses the directory.
    pub(super) fn open(config: Config, started: Instant) -> Result<Self, Error> {
        let data = &config.daemon.data;
        if !data.exists() {
            make_private(data)?;
        }
        // Two members with one key would contradict each other.
        let lock = disk::lock::take(data).map_err(crate::tree::error::Error::from)?;
        let files = StateFiles::open(data)?;
        let identity = Arc::new(Identity::load_or_create(data)?);
        let (me, started_ms) = (MemberId::of(&identity.public()), net::clock::now_ms());
        let config = Arc::new(config);
        Ok(Self { _lock: lock, identity, me, config, files, started, started_ms })
    }

    pub(super) fn now(&self) -> Duration {
        net::clock::monotonic().saturating_duration_since(self.started)
    }

    pub(super) fn key(&self) -> [u8; 32] {
        self.identity.public()
    }

    pub(super) fn namespace(&self, name: &Name) -> Namespace {
        Namespace { origin: self.me, name: name.clone() }
    }

    /// Returns the group with this name; without a name, the only group. Otherwise returns an error
    /// that says what is wrong.
    pub(super) fn group_by_name(&self, name: Option<&Name>) -> Result<(GroupId, Name), String> {
        let mut named = self.config.groups.iter().map(|it| &it.entry);
        let found = match name {
            Some(name) => named.find(|it| it.name() == name),
            None if self.config.groups.len() == 1 => named.next(),
            None => return Err("there are several groups: name one".to_owned()),
        };
        let entry = found.ok_or_else(|| "there is no such group in the settings".to_owned())?;
        Ok((entry.group(&self.key()), entry.name().clone()))
    }

    /// Returns the name of a group in the settings; for a group that is not in them, its id.
    pub(super) fn group_name(&self, id: GroupId) -> String {
        let key = self.key();
        let named = self.config.groups.iter().find(|it| it.entry.group(&key) == id);
        named.map_or_else(|| id.to_string(), |it| it.entry.name().to_string())
    }
}
