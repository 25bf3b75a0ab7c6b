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

pub(crate) use self::core::Core;
pub(crate) use self::feeds::Feeds;
pub use self::invitations::{InvitationLine, invitation};
use self::state_files::StateFiles;
use crate::config::Config;
use crate::error::Error;
use crate::id::{InvitationId, MemberId};
use crate::status::{Published, Report, Status};
use crate::version::Name;

/// Maximum number of commands that wait.
const COMMANDS_MAX: usize = 64;

/// A command from outside; it sends its own answer. A caller that has gone away needs none.
type Ask = Box<dyn FnOnce(&mut Core) + Send>;

/// The receiver of commands.
pub(crate) type Asks = mpsc::Receiver<Ask>;

/// A handle on a running member; cheap to clone. Once the member has stopped, its functions return
/// [`Error::Stopped`].
#[derive(Clone, Debug)]
pub struct Handle {
    commands: mpsc::Sender<Ask>,
    /// Its running listeners.
    control: Control,
}

impl Handle {
    /// Returns a handle on a member that will run, and the receiver of its commands.
    pub(crate) fn new(control: Control) -> (Self, Asks) {
        let (commands, asks) = mpsc::channel(COMMANDS_MAX);
        (Self { commands, control }, asks)
    }

    /// Has the core call `command`, which has to send the answer.
    async fn ask<T: Send + 'static>(
        &self,
        command: impl FnOnce(&mut Core, oneshot::Sender<T>) + Send + 'static,
    ) -> Result<T, Error> {
        let (reply, answer) = oneshot::channel();
        let ask: Ask = Box::new(move |core: &mut Core| command(core, reply));
        self.commands.send(ask).await.map_err(|_gone| Error::Stopped)?;
        answer.await.map_err(|_gone| Error::Stopped)
    }

    /// Does what [`Handle::ask`] does, for a command that returns its answer or a refusal.
    async fn try_ask<T: Send + 'static>(
        &self,
        command: impl FnOnce(&mut Core) -> Result<T, String> + Send + 'static,
    ) -> Result<T, Error> {
        let answer = self.ask(|core, reply| drop(reply.send(command(core)))).await?;
        answer.map_err(Error::Refused)
    }

    /// Returns the status for the administrator.
    pub async fn status(&self) -> Result<Status, Error> {
        self.ask(|core, reply| drop(reply.send(core.status()))).await
    }

    /// Publishes a tree of the settings, found by its name or its directory, or a collection, found
    /// by its name. With `accepts_loss`, a tree is published even if much of it is gone.
    ///
    /// # Errors
    ///
    /// [`Error::Refused`] says what is wrong with the tree; readers keep the present version.
    pub async fn publish(&self, tree: String, accepts_loss: bool) -> Result<Published, Error> {
        let answer = self.ask(move |core, reply| core.publish_by_name(&tree, accepts_loss, reply));
        answer.await?.map_err(Error::Refused)
    }

    /// Verifies all files that readers see: of all trees and collections, of those with one name,
    /// or of `NAME@WRITER`. Damaged files are fetched again.
    ///
    /// # Errors
    ///
    /// There is no such tree, or it cannot be read.
    pub async fn verify(&self, tree: Option<String>) -> Result<Vec<Report>, Error> {
        let answer = self.ask(move |core, reply| core.verify(tree.as_deref(), reply));
        answer.await?.map_err(Error::Refused)
    }

    /// Returns a new line by which one member can join a group, valid for `valid` (default: a day).
    /// If there is only one group, `group` may be `None`. If another member leads the group and
    /// `valid` is `None`, the line has no secret, and admits only members on the access list.
    ///
    /// # Errors
    ///
    /// There is no such group, this member is not in it yet, or another member leads it and `valid`
    /// is given.
    pub async fn invite(
        &self,
        group: Option<Name>,
        valid: Option<Duration>,
    ) -> Result<InvitationLine, Error> {
        self.try_ask(move |core| core.groups.invite(group.as_ref(), valid, &core.own)).await
    }

    /// Withdraws an invitation; returns its id. The member that joined with it stays.
    ///
    /// # Errors
    ///
    /// There is no such group or invitation, or another member leads the group.
    pub async fn revoke(
        &self,
        group: Option<Name>,
        id: InvitationId,
    ) -> Result<InvitationId, Error> {
        self.try_ask(move |core| core.groups.revoke(group.as_ref(), id, &core.own)).await
    }

    /// Makes this member lead a group, whichever member leads it now; returns the group's name.
    ///
    /// # Errors
    ///
    /// There is no such group, or the member may not lead it.
    pub async fn lead(&self, group: Option<Name>) -> Result<String, Error> {
        self.try_ask(move |core| core.groups.lead(group.as_ref(), &core.own)).await
    }

    /// Adds a note for the administrator.
    pub async fn note(&self, text: String) -> Result<(), Error> {
        self.ask(|core, reply| {
            core.notes.add(text, core.own.now());
            let _ = reply.send(());
        })
        .await
    }

    /// Puts other settings in force.
    ///
    /// # Errors
    ///
    /// The new settings differ in a setting that only a restart can change; then nothing is
    /// changed.
    pub async fn reload(&self, config: Config) -> Result<(), Error> {
        let settings = config.daemon.clone();
        let config = Arc::new(config);
        self.ask(|core, reply| drop(reply.send(core.reload(config)))).await??;
        self.control.reload(&settings);
        Ok(())
    }
}

/// Returns the id of the member with this data directory. The id comes from the member's key, which
/// is made if there is none.
pub fn identity(data: &Path) -> Result<MemberId, Error> {
    let _files = StateFiles::open(data)?;
    Ok(MemberId::of(&Identity::load_or_create(data)?.public()))
}
