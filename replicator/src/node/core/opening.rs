//! Opening of a member from its data directory.

use std::sync::Arc;
use std::time::{Duration, Instant};

use net::client::Client;
use net::shutdown::Shutdown;
use tokio::sync::mpsc;

use super::super::Asks;
use super::super::directories::{close_data, link_replicas};
use super::super::feeds::Feeding;
use super::super::groups::Groups;
use super::super::job::Jobs;
use super::super::links::Links;
use super::super::measuring::Measuring;
use super::super::own::Own;
use super::super::sources::Sources;
use super::super::spaces::Spaces;
use super::Core;
use crate::config::Config;
use crate::error::Error;
use crate::link::{Caller, Command};
use crate::replica::Replica;

impl Core {
    /// Opens all stored data, or creates it; feeds are pulled with `client`. Blocks.
    pub(crate) fn open(
        config: Config,
        caller: Arc<Caller>,
        started: Instant,
        commands: mpsc::Sender<Command>,
        asks: Asks,
        client: Client,
    ) -> Result<Self, Error> {
        let own = Own::open(config, started)?;
        let stop = Shutdown::new();
        let mut core = Self {
            groups: Groups::default(),
            replica: Replica::new(own.me),
            spaces: Spaces::default(),
            feeding: Feeding::new(stop.clone()),
            links: Links::new(commands),
            measuring: Measuring::new(caller),
            sources: Sources::new(&own, client, started, &stop),
            notes: Default::default(),
            jobs: Jobs::new(stop),
            look_at: Duration::ZERO,
            asks,
            own,
        };
        close_data(&core.own, &mut core.notes);
        core.groups = Groups::open(&core.own, &mut core.notes)?;
        core.spaces = Spaces::open(&core.own, &mut core.notes)?;
        link_replicas(&core.own, &mut core.notes);
        Ok(core)
    }
}
