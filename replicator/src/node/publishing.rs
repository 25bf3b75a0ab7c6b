//! How a directory of this member's own becomes a version: a draft of it is made and, if that is anything new, signed
//! and committed.

use std::path::PathBuf;
use std::sync::Arc;

use net::identity::Identity;
use tokio::sync::oneshot;

use crate::config::TreeConfig;
use crate::flood::Flood;
use crate::status::Published;
use crate::tree::error::Error;
use crate::tree::passage;
use crate::tree::publish::{Draft, Publishing};
use crate::tree::store::Store;
use crate::version::{Kind, Name, Namespace, Number, Version};

/// Most problems that are answered by name.
const PROBLEMS_MAX: usize = 100;

/// What is to be published.
#[derive(Debug)]
pub(super) struct Source {
    pub(super) name: Name,
    pub(super) kind: Kind,
    directory: PathBuf,
    publishing: Publishing,
}

impl Source {
    pub(super) fn tree(tree: TreeConfig, accepts_loss: bool) -> Self {
        let publishing = Publishing { leaves_out: tree.skip_problems, accepts_loss };
        Self { name: tree.name, kind: Kind::Tree, directory: tree.directory, publishing }
    }

    /// The folder with the log of a collection.
    pub(super) fn log(name: Name, directory: PathBuf) -> Self {
        // A log that is begun anew, or folded, has fewer files.
        let publishing = Publishing { leaves_out: false, accepts_loss: true };
        Self { name, kind: Kind::Collection, directory, publishing }
    }
}

/// What is answered to who waits for it.
pub(super) type Answer = Result<Published, String>;

/// Who waits for it.
#[derive(Debug)]
pub(super) enum Reply {
    /// Nobody: it is looked at by itself.
    Nobody,
    /// Somebody asked.
    Asked(oneshot::Sender<Answer>),
    /// It is the log of a collection.
    Follower,
}

/// A draft is to be made.
#[derive(Debug)]
pub(super) struct Drafting {
    source: Source,
    of: Namespace,
    store: Arc<Store>,
    reply: Reply,
}

/// A draft has been made, or not.
#[derive(Debug)]
pub(super) struct Drafted {
    of: Namespace,
    made: Result<Draft, Error>,
    reply: Reply,
}

/// What is to be done about a draft.
#[derive(Debug)]
pub(super) enum Judged {
    /// It is new.
    New(Box<Committing>),
    /// It is what readers see.
    Same(Box<Draft>, Published, Reply),
    /// There is none.
    Failed(String, Reply),
}

/// A draft is to become the version that readers see.
#[derive(Debug)]
pub(super) struct Committing {
    draft: Draft,
    version: Version,
    answer: Published,
    reply: Reply,
}

/// A draft is what readers see, or not.
#[derive(Debug)]
pub(super) struct Committed {
    pub(super) version: Version,
    pub(super) made: Answer,
    pub(super) reply: Reply,
}

impl Drafting {
    /// Of what is to be published in this store.
    pub(super) fn new(source: Source, of: Namespace, store: Arc<Store>, reply: Reply) -> Self {
        Self { source, of, store, reply }
    }

    /// Makes it. Blocks.
    pub(super) fn run(self) -> Drafted {
        let Self { source: Source { kind, directory, publishing, .. }, of, store, reply } = self;
        let hidden = match kind {
            Kind::Tree => Ok(()),
            Kind::Collection => passage::hide(&directory, passage::FILE, true),
        };
        let made = hidden.and_then(|()| Draft::make(&store, &directory, publishing));
        Drafted { of, made, reply }
    }
}

impl Drafted {
    /// Of what.
    pub(super) fn of(&self) -> &Namespace {
        &self.of
    }

    /// Signs a version of it if it is not what readers see, which is `held`.
    pub(super) fn judge(self, held: Option<Number>, flood: &Flood, identity: &Identity) -> Judged {
        let Self { of, made, reply } = self;
        let draft = match made {
            Ok(draft) => draft,
            Err(error) => return Judged::Failed(said(&error), reply),
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
    /// Commits it. Blocks.
    pub(super) fn run(self) -> Committed {
        let Self { draft, version, answer, reply } = self;
        let made = draft.commit(&version).map(|_| answer).map_err(|error| said(&error));
        Committed { version, made, reply }
    }
}

/// The number of the next version: above all that anybody knows of. What this member does not have itself any more was
/// of an epoch that has ended.
fn next_number(of: &Namespace, held: Option<Number>, flood: &Flood) -> Number {
    let known = flood.newest(of).map(|it| it.number);
    let spoilt = flood.contradiction(of).map(|it| it.0.number);
    match known.max(held).max(spoilt) {
        // Whoever has lost everything begins above what it had, unless its clock goes back.
        None => Number { epoch: net::clock::now_ms() / 1_000, sequence: 1 },
        Some(last) if Some(last) == held && spoilt.is_none_or(|it| it.epoch < last.epoch) => {
            Number { sequence: last.sequence + 1, ..last }
        }
        Some(last) => Number { epoch: last.epoch + 1, sequence: 1 },
    }
}

/// What is wrong, with the first few things that cannot be replicated.
fn said(error: &Error) -> String {
    let problems = match error {
        Error::Problems(problems) => problems,
        Error::Log(_) => {
            return format!("{error}; to begin the log anew, remove its folder in DATA/logs");
        }
        _ => return error.to_string(),
    };
    let mut said = format!("{} things cannot be replicated:", problems.count);
    for it in problems.listed.iter().take(PROBLEMS_MAX) {
        said.push_str(&format!("\n  {}: {}", it.path.display(), it.reason));
    }
    said.push_str("\nchange them, or say `skip_problems = true` in the settings' [[tree]] to publish without them");
    said
}
