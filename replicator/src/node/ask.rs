//! Commands to a running member from outside.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{mpsc, oneshot};

use super::invitations::InvitationLine;
use crate::config::Config;
use crate::error::Error;
use crate::id::InvitationId;
use crate::status::{Published, Report, Status};
use crate::version::Name;

/// Maximum number of commands that wait.
pub(super) const ASKS_MAX: usize = 64;

/// The receiver of commands.
pub(crate) type Asks = mpsc::Receiver<Ask>;

/// A command, with the sender of its answer.
pub(crate) enum Ask {
    /// Return the status.
    Status(oneshot::Sender<Box<Status>>),
    /// Publish a tree.
    Publish {
        /// Its name or its directory.
        tree: String,
        /// Whether to publish it even if much of it is gone.
        accepts_loss: bool,
        reply: oneshot::Sender<Result<Published, String>>,
    },
    /// Verify a tree, or all of them.
    Verify(Option<String>, oneshot::Sender<Result<Vec<Report>, String>>),
    /// Make an invitation to a group, valid for this time (default: a day).
    Invite(Option<Name>, Option<Duration>, oneshot::Sender<Result<InvitationLine, String>>),
    /// Withdraw an invitation.
    Revoke(Option<Name>, InvitationId, oneshot::Sender<Result<InvitationId, String>>),
    /// Add a note.
    Note(String, oneshot::Sender<()>),
    /// Take over other settings.
    Reload(Arc<Config>, oneshot::Sender<Result<(), Error>>),
    /// Lead a group, whichever member leads it now.
    Lead(Option<Name>, oneshot::Sender<Result<String, String>>),
}
