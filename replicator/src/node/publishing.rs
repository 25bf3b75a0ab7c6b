//! How what is this member's own becomes a version: a tree by command, or as soon as a look at it shows a change
//! (`watching`); the log of a collection when that has grown (`following`).

use std::path::{Path, PathBuf};
use std::time::Duration;

use tokio::sync::oneshot;

use super::core::{Core, Done};
use crate::config::TreeConfig;
use crate::replica::PublishError;
use crate::status::Published;
use crate::tree::error::Error;
use crate::tree::passage;
use crate::tree::publish::{Draft, Publishing};
use crate::version::{Kind, Name, Namespace, Number, Version};

/// Most problems that are answered by name.
const PROBLEMS_MAX: usize = 100;

/// What is to be published.
pub(super) struct Source {
    name: Name,
    kind: Kind,
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

/// Who waits for it.
pub(super) enum Reply {
    /// Nobody: it is looked at by itself.
    Nobody,
    /// Somebody asked.
    Asked(oneshot::Sender<Result<Published, String>>),
    /// It is the log of a collection.
    Follower,
}

/// A look at a tree is over.
pub(super) struct Drafted {
    namespace: Namespace,
    made: Result<Draft, Error>,
    reply: Reply,
}

/// A version has been made the one that readers see.
pub(super) struct Committed {
    version: Version,
    answer: Published,
    outcome: Result<(), Error>,
    reply: Reply,
}

impl Core {
    /// Publishes a tree for who has asked for it, by its name or its directory, or a collection by its name.
    pub(super) fn publish_asked(
        &mut self,
        tree: &str,
        accepts_loss: bool,
        reply: oneshot::Sender<Result<Published, String>>,
    ) {
        let is_it = |it: &&TreeConfig| it.name.as_str() == tree || it.directory == Path::new(tree);
        let found = self.own.config.trees.iter().find(is_it).cloned();
        let refused = match found {
            None => {
                let Some(left) = self.publish_collection_asked(tree, reply) else { return };
                let why =
                    format!("there is no [[tree]] or [[collection]] {tree:?} in the settings");
                return drop(left.send(Err(why)));
            }
            Some(tree) => {
                let namespace = self.own.namespace(&tree.name);
                if !self.publishing.contains(&namespace) {
                    return self.publish(Source::tree(tree, accepts_loss), Reply::Asked(reply));
                }
                format!("{} is being published just now: try again", tree.name)
            }
        };
        // Who has gone away need not know.
        drop(reply.send(Err(refused)));
    }

    pub(super) fn publish(&mut self, source: Source, reply: Reply) {
        let now = self.now();
        let Source { name, kind, directory, publishing } = source;
        let namespace = self.own.namespace(&name);
        let store = match self.spaces.open_one(&namespace, kind, &self.own, &mut self.notes) {
            Ok(store) => store,
            Err(error) => return self.answer(&namespace.name, reply, Err(error), now),
        };
        self.publishing.insert(namespace.clone());
        self.jobs.spawn_blocking(move || {
            let hidden = match kind {
                Kind::Tree => Ok(()),
                Kind::Collection => passage::hide(&directory, passage::FILE, true),
            };
            let made = hidden.and_then(|()| Draft::make(&store, &directory, publishing));
            Done::Drafted(Drafted { namespace, made, reply })
        });
    }

    /// Says what has come of it: to who waits for it, or to the admin if something is wrong.
    fn answer(
        &mut self,
        name: &Name,
        reply: Reply,
        answer: Result<Published, String>,
        now: Duration,
    ) {
        match reply {
            // Who has gone away need not know.
            Reply::Asked(reply) => drop(reply.send(answer)),
            Reply::Follower => self.handle_log_published(name, answer, now),
            Reply::Nobody => self.handle_looked(name, answer.err(), now),
        }
    }

    pub(super) fn handle_drafted(&mut self, drafted: Drafted, now: Duration) {
        let Drafted { namespace, made, reply } = drafted;
        let draft = match made {
            Ok(draft) => draft,
            Err(error) => {
                self.publishing.remove(&namespace);
                return self.answer(&namespace.name, reply, Err(said(&error)), now);
            }
        };
        let present = self.spaces.current(&namespace);
        let present = present.map(|it| it.meta().number).filter(|_| !draft.is_changed());
        let number = present.unwrap_or_else(|| self.next_number(&namespace));
        let left_out = draft.left_out();
        let shown = left_out.listed.iter().take(PROBLEMS_MAX);
        let answer = Published {
            tree: namespace.name.to_string(),
            version: number.to_string(),
            is_changed: present.is_none(),
            entries: draft.totals().entries,
            bytes: draft.totals().bytes,
            left_out: shown.map(|it| format!("{}: {}", it.path.display(), it.reason)).collect(),
            left_out_total: left_out.count,
            is_listed: self.replica.flood().is_listed(&namespace),
        };
        if present.is_some() {
            self.publishing.remove(&namespace);
            self.jobs.spawn_blocking(move || {
                draft.discard();
                Done::Removed
            });
            return self.answer(&namespace.name, reply, Ok(answer), now);
        }
        let (bytes, root) = (draft.totals().bytes, draft.root());
        let (name, kind) = (namespace.name, draft.kind());
        let version = Version::sign(&self.own.identity, name, kind, number, bytes, root);
        self.jobs.spawn_blocking(move || {
            let outcome = draft.commit(&version).map(drop);
            Done::Committed(Committed { version, answer, outcome, reply })
        });
    }

    /// The number of the next version: above all that anybody knows of. What this member does not have itself any
    /// more was of an epoch that has ended.
    fn next_number(&self, of: &Namespace) -> Number {
        let held = self.spaces.current(of);
        let held = held.map(|it| it.meta().number);
        let flood = self.replica.flood();
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

    pub(super) fn handle_committed(&mut self, committed: Committed, now: Duration) {
        let Committed { version, mut answer, outcome, reply } = committed;
        let namespace = version.namespace.clone();
        self.publishing.remove(&namespace);
        if let Err(error) = outcome {
            return self.answer(&namespace.name, reply, Err(said(&error)), now);
        }
        self.spaces.handle_switched(&namespace);
        match self.replica.publish(&version, now) {
            Ok(()) => {}
            // It goes out when a group has the tree.
            Err(PublishError::Unlisted) => answer.is_listed = false,
            Err(error @ PublishError::Old(_)) => {
                return self.answer(&namespace.name, reply, Err(error.to_string()), now);
            }
        }
        tracing::info!(tree = %namespace.name, version = %version.number, "published");
        self.handle_new(&namespace);
        self.answer(&namespace.name, reply, Ok(answer), now);
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
