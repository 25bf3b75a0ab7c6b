//! Actions that a replica asks its shell to do.
//!
//! Sans-I/O.

use crate::fetch::Fault;
use crate::flood::Refusal;
use crate::id::MemberId;
use crate::message::{Message, Request};
use crate::version::{Hash, Namespace, Number, Version};

/// An action to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// Send a message.
    Send {
        /// The receiver.
        to: MemberId,
        /// The message.
        message: Message,
    },
    /// Look up chunks and send them; pass the absent ones to [`super::Replica::handle_not_here`].
    Lookup {
        /// The member that asks.
        to: MemberId,
        /// Its request.
        request: Request,
    },
    /// Drop these chunks from the queue to a member.
    Unsend {
        /// The receiver.
        to: MemberId,
        /// The chunks.
        chunks: Vec<Hash>,
    },
    /// A chunk has come, and its hash is right: send it to the members that wait, and keep it.
    Keep {
        /// The chunk's hash.
        hash: Hash,
        /// Its bytes.
        bytes: Vec<u8>,
        /// The namespaces that want it.
        namespaces: Vec<Namespace>,
        /// The members that wait, with their priorities.
        waiting: Vec<(MemberId, u8)>,
    },
    /// Store on disk that this version exists, before any later action.
    Remember(Version),
    /// Find the missing chunks of this version and pass them to [`super::Replica::want`]; if there
    /// are none, call [`super::Replica::handle_whole`].
    Begin(Version),
    /// Stop fetching. The chunks that have come stay, for the next version.
    Stop(Namespace),
    /// Make this version visible to readers, then call [`super::Replica::handle_switched`].
    Switch(Version),
    /// Close the link.
    Close {
        /// The neighbor.
        member: MemberId,
        /// The reason.
        why: &'static str,
    },
    /// For status and logs.
    Notice(Notice),
}

/// A report to the administrator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Notice {
    /// The origin of a namespace has signed two versions of one number, which ends the epoch.
    Contradiction(Namespace),
    /// A neighbor knows a newer version of this member's namespace than this member holds: the next
    /// one to publish is in a later epoch.
    Behind(Namespace, Number),
    /// An announcement or evidence of a neighbor was refused.
    Refused(MemberId, Refusal),
    /// A neighbor is at fault, and is passed over for some time.
    Faulty(MemberId, Fault),
    /// No source has all of a version; it is tried again later, unless a newer one comes.
    Missing(Namespace, Number),
}
