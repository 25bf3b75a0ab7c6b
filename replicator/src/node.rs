//! A member that runs: its links, its groups, its trees and collections, and its administrator.
//!
//! ```text
//! link::Hub ─events→ core ─commands→ link::Hub
//!                     │ handle_…, poll_…
//!       groups (one group::Group each), replica::Replica, spaces (chunks in, switch),
//!       links (chunks out), measuring, sources (watching, following), feeds: what to do
//!                     │ Job ↓ ↑ Done
//!                    job: does what takes long
//! ```
//!
//! The core runs on a thread of its own, and nothing below it knows of it.

mod ask;
mod core;
mod feeds;
mod following;
mod groups;
mod invitations;
mod job;
mod kept;
mod links;
mod measuring;
mod notes;
mod own;
mod places;
mod publishing;
mod serving;
mod sources;
mod space;
mod spaces;
mod telling;
mod verifying;
mod versions;
mod watching;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use daemon::Control;
use net::identity::Identity;
use tokio::sync::{mpsc, oneshot};

pub(crate) use self::ask::Asks;
use self::ask::{ASKS_MAX, Ask};
pub(crate) use self::core::Core;
pub(crate) use self::feeds::Feeds;
pub use self::invitations::{Printed, invitation};
use self::kept::Kept;
use crate::config::Config;
use crate::error::Error;
use crate::id::{InvitationId, MemberId};
use crate::status::{Published, Report, Status};
use crate::version::Name;

/// A handle on a member: cheap to clone, usable while it runs.
#[derive(Clone, Debug)]
pub struct Handle {
    ask: mpsc::Sender<Ask>,
    /// Its listeners.
    control: Control,
}

impl Handle {
    /// A handle on a member that is to run, and where that takes what is asked.
    pub(crate) fn new(control: Control) -> (Self, Asks) {
        let (ask, asks) = mpsc::channel(ASKS_MAX);
        (Self { ask, control }, asks)
    }

    async fn ask<T>(&self, ask: impl FnOnce(oneshot::Sender<T>) -> Ask) -> Result<T, Error> {
        let (reply, answer) = oneshot::channel();
        self.ask.send(ask(reply)).await.map_err(|_gone| Error::Stopped)?;
        answer.await.map_err(|_gone| Error::Stopped)
    }

    /// Everything an administrator asks first.
    ///
    /// # Errors
    ///
    /// It has stopped.
    pub async fn status(&self) -> Result<Status, Error> {
        Ok(*self.ask(Ask::Status).await?)
    }

    /// Publishes a tree of the settings, by its name or its directory. `accepts_loss`: also if much of it is gone.
    ///
    /// # Errors
    ///
    /// [`Error::Refused`] says what is wrong with the tree; readers see what they saw. Or it has stopped.
    pub async fn publish(&self, tree: String, accepts_loss: bool) -> Result<Published, Error> {
        let answer = self.ask(|reply| Ask::Publish { tree, accepts_loss, reply }).await?;
        answer.map_err(Error::Refused)
    }

    /// Reads all that readers see of a tree, or of all of them; what is damaged is fetched again.
    ///
    /// # Errors
    ///
    /// There is no such tree, or it cannot be read. Or it has stopped.
    pub async fn verify(&self, tree: Option<String>) -> Result<Vec<Report>, Error> {
        self.ask(|reply| Ask::Verify(tree, reply)).await?.map_err(Error::Refused)
    }

    /// A new line by which one member can join a group, for so long or a day; its name may be left out if there is one
    /// alone. If another leads the group and no time is said, one that is no pass.
    ///
    /// # Errors
    ///
    /// There is no such group, this member is not in it yet, or another leads it. Or it has stopped.
    pub async fn invite(
        &self,
        group: Option<Name>,
        valid: Option<Duration>,
    ) -> Result<Printed, Error> {
        self.ask(|reply| Ask::Invite(group, valid, reply)).await?.map_err(Error::Refused)
    }

    /// Withdraws an invitation; returns its id. Who came by it stays.
    ///
    /// # Errors
    ///
    /// There is no such group or invitation, or another leads the group. Or it has stopped.
    pub async fn revoke(
        &self,
        group: Option<Name>,
        id: InvitationId,
    ) -> Result<InvitationId, Error> {
        self.ask(|reply| Ask::Revoke(group, id, reply)).await?.map_err(Error::Refused)
    }

    /// Has this member lead a group, whoever does now; returns the group's name.
    ///
    /// # Errors
    ///
    /// It may not lead that group. Or it has stopped.
    pub async fn lead(&self, group: Option<Name>) -> Result<String, Error> {
        self.ask(|reply| Ask::Lead(group, reply)).await?.map_err(Error::Refused)
    }

    /// Notes what its administrator may want to read, beside what it notes by itself.
    ///
    /// # Errors
    ///
    /// It has stopped.
    pub async fn note(&self, text: String) -> Result<(), Error> {
        self.ask(|reply| Ask::Note(text, reply)).await
    }

    /// Puts other settings in force.
    ///
    /// # Errors
    ///
    /// They differ where only a restart helps; then nothing is changed. Or it has stopped.
    pub async fn reload(&self, config: Config) -> Result<(), Error> {
        let settings = config.daemon.clone();
        self.ask(|reply| Ask::Reload(Arc::new(config), reply)).await??;
        self.control.reload(&settings);
        Ok(())
    }
}

/// The id of the member whose data directory this is: of the key there, which is made if there is none.
///
/// # Errors
///
/// The data directory cannot be used.
pub fn identity(data: &Path) -> Result<MemberId, Error> {
    let _kept = Kept::open(data)?;
    Ok(MemberId::of(&Identity::load_or_create(data)?.public()))
}
