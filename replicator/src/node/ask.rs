//! What a running member is asked for from outside.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{mpsc, oneshot};

use super::invitations::Printed;
use crate::config::Config;
use crate::error::Error;
use crate::id::InvitationId;
use crate::status::{Published, Report, Status};
use crate::version::Name;

/// Most questions that wait.
pub(super) const ASKS_MAX: usize = 64;

/// Where questions come from.
pub(crate) type Asks = mpsc::Receiver<Ask>;

/// A question, and where its answer goes.
pub(crate) enum Ask {
    /// How is it?
    Status(oneshot::Sender<Box<Status>>),
    /// Publish a tree.
    Publish {
        /// Its name or its directory.
        tree: String,
        /// Whether much of it may be gone.
        accepts_loss: bool,
        reply: oneshot::Sender<Result<Published, String>>,
    },
    /// Read a tree, or all of them.
    Verify(Option<String>, oneshot::Sender<Result<Vec<Report>, String>>),
    /// A line by which somebody can join a group, for so long.
    Invite(Option<Name>, Option<Duration>, oneshot::Sender<Result<Printed, String>>),
    /// Withdraw an invitation.
    Revoke(Option<Name>, InvitationId, oneshot::Sender<Result<InvitationId, String>>),
    /// Note something.
    Note(String, oneshot::Sender<()>),
    /// Take over other settings.
    Reload(Arc<Config>, oneshot::Sender<Result<(), Error>>),
    /// Lead a group, whoever does now.
    Lead(Option<Name>, oneshot::Sender<Result<String, String>>),
}
