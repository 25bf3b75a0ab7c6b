//! What a member is to do next.
//!
//! Sans-I/O.

use crate::fetch::Fault;
use crate::flood::Refusal;
use crate::id::MemberId;
use crate::message::{Message, Request};
use crate::version::{Hash, Namespace, Number, Version};

/// What is to be done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// Send this.
    Send {
        /// To whom.
        to: MemberId,
        /// What.
        message: Message,
    },
    /// Look for these chunks and send those that are here, the others with [`super::Replica::handle_not_here`].
    Lookup {
        /// Who asks.
        to: MemberId,
        /// For what.
        request: Request,
    },
    /// Send these no more.
    Unsend {
        /// To whom.
        to: MemberId,
        /// Which.
        chunks: Vec<Hash>,
    },
    /// A chunk has come, and its hash holds: send it on to those who wait, and keep it.
    Keep {
        /// Which.
        hash: Hash,
        /// Its bytes.
        bytes: Vec<u8>,
        /// What it is part of.
        namespaces: Vec<Namespace>,
        /// To whom it goes on, and how urgently.
        waiting: Vec<(MemberId, u8)>,
    },
    /// Keep in mind that there is this version, over restarts, before anything else.
    Remember(Version),
    /// Find out which chunks of this version are not here, and say so with [`super::Replica::want`]; when there are none,
    /// [`super::Replica::handle_whole`].
    Begin(Version),
    /// Stop doing so; keep what has come, as it may be of use to the next version.
    Stop(Namespace),
    /// Have readers see this version, then say [`super::Replica::handle_switched`].
    Switch(Version),
    /// Close the link.
    Close {
        /// To whom.
        member: MemberId,
        /// Why.
        why: &'static str,
    },
    /// For status and logs.
    Notice(Notice),
}

/// What an administrator may want to know.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Notice {
    /// The origin of a namespace has signed two versions of one number: nothing of that epoch is taken any more.
    Contradiction(Namespace),
    /// Somebody knows a version of one's own that one does not: go on in the epoch after it.
    Behind(Namespace, Number),
    /// What a neighbor said was refused.
    Refused(MemberId, Refusal),
    /// A neighbor does what it should not, and is passed over for some time.
    Faulty(MemberId, Fault),
    /// No source has all of a version; it is tried again later, unless a newer one comes.
    Missing(Namespace, Number),
}
