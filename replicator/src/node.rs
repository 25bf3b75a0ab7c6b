//! A running member: its links, its groups, its trees and collections, and its administrator's
//! commands.
//!
//! ```text
//! link::Hub ─events→ core ─commands→ link::Hub
//!                     │ handle_…, poll_…
//!       groups (one group::Group each), replica::Replica, spaces (chunks in, switch),
//!       links (chunks out), measuring, sources (watching, following), feeds: decisions
//!                     │ Job ↓ ↑ Done
//!                    job: slow work
//! ```
//!
//! The core runs on a thread of its own. The parts below the core do not know it.

mod ask;
mod core;
mod directories;
mod feeds;
mod following;
mod group_status;
mod groups;
mod invitations;
mod job;
mod links;
mod measuring;
mod notes;
mod own;
mod publishing;
mod serving;
mod sources;
mod space;
mod spaces;
mod state_files;
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
pub use self::invitations::{InvitationLine, invitation};
use self::state_files::StateFiles;
use crate::config::Config;
use crate::error::Error;
use crate::id::{InvitationId, MemberId};
use crate::status::{Published, Report, Status};
use crate::version::Name;

/// A handle on a running member; cheap to clone.
#[derive(Clone, Debug)]
pub struct Handle {
    ask: mpsc::Sender<Ask>,
    /// Its running listeners.
    control: Control,
}

impl Handle {
    /// Returns a handle on a member that will run, and the receiver of its commands.
    pub(crate) fn new(control: Control) -> (Self, Asks) {
        let (ask, asks) = mpsc::channel(ASKS_MAX);
        (Self { ask, control }, asks)
    }

    async fn ask<T>(&self, ask: impl FnOnce(oneshot::Sender<T>) -> Ask) -> Result<T, Error> {
        let (reply, answer) = oneshot::channel();
        self.ask.send(ask(reply)).await.map_err(|_gone| Error::Stopped)?;
        answer.await.map_err(|_gone| Error::Stopped)
    }

    /// Returns the status for the administrator.
    ///
    /// # Errors
    ///
    /// The member has stopped.
    pub async fn status(&self) -> Result<Status, Error> {
        Ok(*self.ask(Ask::Status).await?)
    }

    /// Publishes a tree of the settings, found by its name or its directory, or a collection, found
    /// by its name. With `accepts_loss`, a tree is published even if much of it is gone.
    ///
    /// # Errors
    ///
    /// [`Error::Refused`] says what is wrong with the tree; readers keep the present version. Or
    /// the member has stopped.
    pub async fn publish(&self, tree: String, accepts_loss: bool) -> Result<Published, Error> {
        let answer = self.ask(|reply| Ask::Publish { tree, accepts_loss, reply }).await?;
        answer.map_err(Error::Refused)
    }

    /// Verifies all files of a tree or collection that readers see, or of all of them. Damaged
    /// files are fetched again.
    ///
    /// # Errors
    ///
    /// There is no such tree, or it cannot be read. Or the member has stopped.
    pub async fn verify(&self, tree: Option<String>) -> Result<Vec<Report>, Error> {
        self.ask(|reply| Ask::Verify(tree, reply)).await?.map_err(Error::Refused)
    }

    /// Returns a new line by which one member can join a group, valid for `valid` (default: a day).
    /// If there is only one group, `group` may be `None`. If another member leads the group and
    /// `valid` is `None`, the line has no secret, and admits only members on the access list.
    ///
    /// # Errors
    ///
    /// There is no such group, this member is not in it yet, or another member leads it and `valid`
    /// is given. Or the member has stopped.
    pub async fn invite(
        &self,
        group: Option<Name>,
        valid: Option<Duration>,
    ) -> Result<InvitationLine, Error> {
        self.ask(|reply| Ask::Invite(group, valid, reply)).await?.map_err(Error::Refused)
    }

    /// Withdraws an invitation; returns its id. The member that joined with it stays.
    ///
    /// # Errors
    ///
    /// There is no such group or invitation, or another member leads the group. Or the member has
    /// stopped.
    pub async fn revoke(
        &self,
        group: Option<Name>,
        id: InvitationId,
    ) -> Result<InvitationId, Error> {
        self.ask(|reply| Ask::Revoke(group, id, reply)).await?.map_err(Error::Refused)
    }

    /// Makes this member lead a group, whichever member leads it now; returns the group's name.
    ///
    /// # Errors
    ///
    /// There is no such group, or the member may not lead it. Or the member has stopped.
    pub async fn lead(&self, group: Option<Name>) -> Result<String, Error> {
        self.ask(|reply| Ask::Lead(group, reply)).await?.map_err(Error::Refused)
    }

    /// Adds a note for the administrator to those of the member.
    ///
    /// # Errors
    ///
    /// The member has stopped.
    pub async fn note(&self, text: String) -> Result<(), Error> {
        self.ask(|reply| Ask::Note(text, reply)).await
    }

    /// Puts other settings in force.
    ///
    /// # Errors
    ///
    /// The new settings differ in a setting that only a restart can change; then nothing is
    /// changed. Or the member has stopped.
    pub async fn reload(&self, config: Config) -> Result<(), Error> {
        let settings = config.daemon.clone();
        self.ask(|reply| Ask::Reload(Arc::new(config), reply)).await??;
        self.control.reload(&settings);
        Ok(())
    }
}

/// Returns the id of the member with this data directory. The id comes from the member's key, which
/// is made if there is none.
///
/// # Errors
///
/// The data directory cannot be used.
pub fn identity(data: &Path) -> Result<MemberId, Error> {
    let _files = StateFiles::open(data)?;
    Ok(MemberId::of(&Identity::load_or_create(data)?.public()))
}
