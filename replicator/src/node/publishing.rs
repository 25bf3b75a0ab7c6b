//! How a tree of this member's own becomes a version: by command, or as soon as a look at it shows a change.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tokio::sync::oneshot;

use super::core::{Core, Done};
use crate::config::TreeConfig;
use crate::replica::PublishError;
use crate::tree::error::Error;
use crate::tree::publish::{Draft, Publishing};
use crate::version::{Kind, Name, Namespace, Number, Version};

/// Most problems that are answered by name.
const PROBLEMS_MAX: usize = 100;

/// What came of publishing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Published {
    /// The tree.
    pub tree: String,
    /// Epoch and sequence of the version that readers see now, with a point between.
    pub version: String,
    /// Whether there was anything new.
    pub is_changed: bool,
    /// Files, symbolic links and empty directories.
    pub entries: u64,
    /// Of all files.
    pub bytes: u64,
    /// What was left out, and why: at most 100.
    pub left_out: Vec<String>,
    /// How many things were left out.
    pub left_out_total: u64,
    /// Whether a group has the tree already; if not, the version goes out as soon as one has.
    pub is_listed: bool,
}

/// Who waits for it; nobody if it is published since it has changed.
pub(super) type Reply = Option<oneshot::Sender<Result<Published, String>>>;

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

/// When trees are looked at next.
#[derive(Debug, Default)]
pub(super) struct Watching {
    due: BTreeMap<Name, Duration>,
    /// What was wrong the last time, so that it is said once.
    wrong: BTreeMap<Name, String>,
}

impl Watching {
    pub(super) fn poll_timeout(&self) -> Option<Duration> {
        self.due.values().min().copied()
    }

    /// Takes over which trees are to be looked at.
    pub(super) fn set(&mut self, trees: &[TreeConfig], now: Duration) {
        let watched = trees.iter().filter(|it| it.watch.is_some());
        self.due = watched.map(|it| (it.name.clone(), now)).collect();
        self.wrong.clear();
    }
}

impl Core {
    /// Looks at the trees whose turn it is.
    pub(super) fn watch(&mut self, now: Duration) {
        let due: Vec<Name> =
            self.watching.due.iter().filter(|it| *it.1 <= now).map(|it| it.0.clone()).collect();
        for name in due {
            let tree = self.config.trees.iter().find(|it| it.name == name).cloned();
            let Some((tree, every)) = tree.and_then(|it| Some((it.clone(), it.watch?))) else {
                self.watching.due.remove(&name);
                continue;
            };
            // The next look comes a while after this one, however long it takes.
            self.watching.due.insert(name, now + every);
            let namespace = Namespace { origin: self.me, name: tree.name.clone() };
            if !self.publishing.contains(&namespace) {
                self.publish(tree, false, None);
            }
        }
    }

    /// Publishes a tree for who has asked for it, by its name or its directory.
    pub(super) fn publish_asked(
        &mut self,
        tree: &str,
        accepts_loss: bool,
        reply: oneshot::Sender<Result<Published, String>>,
    ) {
        let is_it = |it: &&TreeConfig| it.name.as_str() == tree || it.directory == Path::new(tree);
        let found = self.config.trees.iter().find(is_it).cloned();
        let refused = match found {
            None => Some(format!("there is no [[tree]] {tree:?} in the settings")),
            Some(tree) => {
                let namespace = Namespace { origin: self.me, name: tree.name.clone() };
                if !self.publishing.contains(&namespace) {
                    return self.publish(tree, accepts_loss, Some(reply));
                }
                Some(format!("{} is being published just now: try again", tree.name))
            }
        };
        // Who has gone away need not know.
        refused.map(|it| reply.send(Err(it)));
    }

    fn publish(&mut self, tree: TreeConfig, accepts_loss: bool, reply: Reply) {
        let now = self.now();
        let namespace = Namespace { origin: self.me, name: tree.name.clone() };
        if let Err(error) = self.open_space(&namespace, Kind::Tree) {
            return self.refuse(&tree.name, reply, error, now);
        }
        let Some(store) = self.spaces.get(&namespace).map(|it| it.store().clone()) else { return };
        self.publishing.insert(namespace.clone());
        let publishing = Publishing { leaves_out: tree.skip_problems, accepts_loss };
        self.jobs.spawn_blocking(move || {
            let made = Draft::make(&store, &tree.directory, publishing);
            Done::Drafted(Drafted { namespace, made, reply })
        });
    }

    /// Says that nothing is published, to who has asked or to the admin.
    fn refuse(&mut self, tree: &Name, reply: Reply, why: String, now: Duration) {
        match reply {
            Some(reply) => drop(reply.send(Err(why))),
            None if self.watching.wrong.get(tree) == Some(&why) => {}
            None => {
                self.notes.add(format!("{tree} is not published: {why}"), now);
                self.watching.wrong.insert(tree.clone(), why);
            }
        }
    }

    pub(super) fn handle_drafted(&mut self, drafted: Drafted, now: Duration) {
        let Drafted { namespace, made, reply } = drafted;
        let draft = match made {
            Ok(draft) => draft,
            Err(error) => {
                self.publishing.remove(&namespace);
                return self.refuse(&namespace.name, reply, said(&error), now);
            }
        };
        self.watching.wrong.remove(&namespace.name);
        let present = self.spaces.get(&namespace).and_then(|it| it.store().current());
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
            reply.map(|it| it.send(Ok(answer)));
            self.jobs.spawn_blocking(move || {
                draft.discard();
                Done::Removed
            });
            return;
        }
        let (bytes, root) = (draft.totals().bytes, draft.root());
        let name = namespace.name;
        let version = Version::sign(&self.identity, name, Kind::Tree, number, bytes, root);
        self.jobs.spawn_blocking(move || {
            let outcome = draft.commit(&version).map(drop);
            Done::Committed(Committed { version, answer, outcome, reply })
        });
    }

    /// The number of the next version: above all that anybody knows of. What this member does not have itself any
    /// more was of an epoch that has ended.
    fn next_number(&self, of: &Namespace) -> Number {
        let held = self.spaces.get(of).and_then(|it| it.store().current());
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
            return self.refuse(&namespace.name, reply, said(&error), now);
        }
        match self.replica.publish(&version, now) {
            Ok(()) => {}
            // It goes out when a group has the tree.
            Err(PublishError::Unlisted) => answer.is_listed = false,
            Err(error @ PublishError::Old(_)) => {
                return self.refuse(&namespace.name, reply, error.to_string(), now);
            }
        }
        tracing::info!(tree = %namespace.name, version = %version.number, "published");
        self.remove_old(&namespace);
        reply.map(|it| it.send(Ok(answer)));
    }
}

/// What is wrong, with the first few things that cannot be replicated.
fn said(error: &Error) -> String {
    let Error::Problems(problems) = error else { return error.to_string() };
    let mut said = format!("{} things cannot be replicated:", problems.count);
    for it in problems.listed.iter().take(PROBLEMS_MAX) {
        said.push_str(&format!("\n  {}: {}", it.path.display(), it.reason));
    }
    said.push_str("\nchange them, or say skip_problems = true to publish without them");
    said
}
