//! Publishing: jobs that make a draft of an own directory and, if it is new, sign and commit it as
//! a version.

use std::path::PathBuf;
use std::sync::Arc;

use net::identity::Identity;
use tokio::sync::oneshot;

use crate::config::TreeConfig;
use crate::flood::Flood;
use crate::status::Published;
use crate::tree::access;
use crate::tree::error::Error;
use crate::tree::publish::{Draft, Publishing};
use crate::tree::store::Store;
use crate::version::{Kind, Name, Namespace, Number, Version};

/// Maximum number of problems that are listed by name.
const PROBLEMS_MAX: usize = 100;

#[derive(Debug)]
pub(super) struct OwnSource {
    pub(super) name: Name,
    pub(super) kind: Kind,
    directory: PathBuf,
    publishing: Publishing,
}

impl OwnSource {
    pub(super) fn tree(tree: TreeConfig, accepts_loss: bool) -> Self {
        let publishing = Publishing { leaves_out: tree.skip_problems, accepts_loss };
        Self { name: tree.name, kind: Kind::Tree, directory: tree.directory, publishing }
    }

    /// Returns the source for the log folder of a collection.
    pub(super) fn log(name: Name, directory: PathBuf) -> Self {
        // A log that was restarted or folded has fewer files.
        let publishing = Publishing { leaves_out: false, accepts_loss: true };
        Self { name, kind: Kind::Collection, directory, publishing }
    }
}

/// Answer to the waiting caller.
pub(super) type Answer = Result<Published, String>;

/// Receiver of the answer. A caller that has gone away needs none.
#[derive(Debug)]
pub(super) enum Reply {
    /// Nobody: a change of the tree started the publishing.
    Nobody,
    Caller(oneshot::Sender<Answer>),
    /// The follower of the collection's feed.
    Follower,
}

/// Job: make a draft.
#[derive(Debug)]
pub(super) struct Drafting {
    pub(super) source: OwnSource,
    pub(super) of: Namespace,
    pub(super) store: Arc<Store>,
    pub(super) reply: Reply,
}

#[derive(Debug)]
pub(super) struct Drafted {
    pub(super) of: Namespace,
    made: Result<Draft, Error>,
    reply: Reply,
}

#[derive(Debug)]
pub(super) enum Judged {
    /// The draft differs from the version that readers see: commit it.
    New(Box<Committing>),
    /// Readers see the draft's content already.
    Same(Box<Draft>, Published, Reply),
    /// No draft could be made.
    Failed(String, Reply),
}

/// Job: make a draft the version that readers see.
#[derive(Debug)]
pub(super) struct Committing {
    draft: Draft,
    version: Version,
    answer: Published,
    reply: Reply,
}

#[derive(Debug)]
pub(super) struct Committed {
    pub(super) version: Version,
    pub(super) made: Answer,
    pub(super) reply: Reply,
}

impl Drafting {
    /// Makes the draft. Blocks.
    pub(super) fn run(self) -> Drafted {
        let Self { source: OwnSource { kind, directory, publishing, .. }, of, store, reply } = self;
        let hidden = match kind {
            Kind::Tree => Ok(()),
            Kind::Collection => access::hide(&directory, access::FILE, true),
        };
        let made = hidden.and_then(|()| Draft::make(&store, &directory, publishing));
        Drafted { of, made, reply }
    }
}

impl Drafted {
    /// Signs a version of the draft if it differs from the version that readers see; `held` is that
    /// version's number.
    pub(super) fn judge(self, held: Option<Number>, flood: &Flood, identity: &Identity) -> Judged {
        let Self { of, made, reply } = self;
        let draft = match made {
            Ok(draft) => draft,
            Err(error) => return Judged::Failed(describe(&error), reply),
        };
        let present = held.filter(|_| !draft.is_changed());
        let number = present.unwrap_or_else(|| next_number(&of, held, flood));
        let left_out = draft.left_out();
        let shown = left_out.listed.iter().take(PROBLEMS_MAX);
        let answer = Published {
            tree: of.name.to_string(),
            version: number.to_string(),
            is_changed: present.is_none(),
            entries: draft.totals().entries,
            bytes: draft.totals().bytes,
            left_out: shown.map(|it| format!("{}: {}", it.path.display(), it.reason)).collect(),
            left_out_total: left_out.count,
            is_listed: flood.is_listed(&of),
        };
        if present.is_some() {
            return Judged::Same(Box::new(draft), answer, reply);
        }
        let (bytes, root) = (draft.totals().bytes, draft.root());
        let version = Version::sign(identity, of.name, draft.kind(), number, bytes, root);
        Judged::New(Box::new(Committing { draft, version, answer, reply }))
    }
}

impl Committing {
    /// Commits the draft. Blocks.
    pub(super) fn run(self) -> Committed {
        let Self { draft, version, answer, reply } = self;
        let made = draft.commit(&version).map(|_| answer).map_err(|error| describe(&error));
        Committed { version, made, reply }
    }
}

/// Returns the number of the next version, above all known ones. A new epoch begins if this member
/// does not hold the newest version, or has contradicted itself in the present epoch.
fn next_number(of: &Namespace, held: Option<Number>, flood: &Flood) -> Number {
    let known = flood.newest(of).map(|it| it.number);
    let spoilt = flood.contradiction(of).map(|it| it.0.number);
    match known.max(held).max(spoilt) {
        // A member that has lost all its data begins above its old numbers, unless its clock has
        // gone back.
        None => Number { epoch: net::clock::now_ms() / 1_000, sequence: 1 },
        Some(last) if Some(last) == held && spoilt.is_none_or(|it| it.epoch < last.epoch) => {
            Number { sequence: last.sequence + 1, ..last }
        }
        Some(last) => Number { epoch: last.epoch + 1, sequence: 1 },
    }
}

/// Describes an error; if entries cannot be replicated, lists the first ones.
fn describe(error: &Error) -> String {
    let problems = match error {
        Error::Problems(problems) => problems,
        Error::Log(_) => {
            return format!("{error}; to begin the log anew, remove its folder in DATA/logs");
        }
        _ => return error.to_string(),
    };
    let mut text = format!("{} entries cannot be replicated:", problems.count);
    for it in problems.listed.iter().take(PROBLEMS_MAX) {
        text.push_str(&format!("\n  {}: {}", it.path.display(), it.reason));
    }
    text.push_str("\nchange them, or set `skip_problems = true` in the settings' [[tree]] to publish without them");
    text
}
