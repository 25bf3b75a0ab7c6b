//! Reads trees to see whether they are as they were written, and has what is damaged fetched again.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::oneshot;

use super::core::{Core, Done};
use crate::status::Report;
use crate::tree::error::Error;
use crate::tree::store::Store;
use crate::tree::verify;
use crate::version::Namespace;

type Reply = oneshot::Sender<Result<Vec<Report>, String>>;

/// What was found, for who has asked.
pub(super) struct Verified {
    found: Vec<(Namespace, Result<verify::Verified, Error>)>,
    reply: Reply,
}

impl Core {
    /// Reads the tree of this name, that of one writer (`NAME@WRITER`), or all of them.
    pub(super) fn verify(&mut self, tree: Option<&str>, reply: Reply) {
        let is_meant = |it: &Namespace| {
            tree.is_none_or(|tree| it.name.as_str() == tree || it.to_string() == tree)
        };
        let meant: Vec<(Namespace, Arc<Store>)> = self
            .spaces
            .iter()
            .filter(|it| is_meant(it.0))
            .map(|(namespace, space)| (namespace.clone(), space.store().clone()))
            .collect();
        if meant.is_empty() {
            // Who has gone away need not know.
            drop(reply.send(Err(
                "there is no such tree here yet; `status` has all there are".to_owned(),
            )));
            return;
        }
        self.jobs.spawn_blocking(move || {
            let found = meant.into_iter().map(|(of, store)| (of, store.verify())).collect();
            Done::Verified(Verified { found, reply })
        });
    }

    pub(super) fn handle_verified(&mut self, verified: Verified, now: Duration) {
        let mut reports = Vec::new();
        let mut failed = None;
        for (of, found) in verified.found {
            match found {
                Ok(found) => reports.push(Report {
                    tree: of.name.to_string(),
                    writer: of.origin.to_string(),
                    entries: found.entries,
                    bytes: found.bytes,
                    damaged: found.damaged.iter().map(|it| it.display().to_string()).collect(),
                    damaged_total: found.damaged_count,
                }),
                Err(error) => failed = Some(format!("{of}: {error}")),
            }
        }
        self.heal(now);
        drop(verified.reply.send(failed.map_or(Ok(reports), Err)));
    }

    /// Has what is damaged fetched again.
    pub(super) fn heal(&mut self, now: Duration) {
        let is_damaged = |it: &Arc<Store>| !it.damaged().is_empty();
        let damaged: Vec<Namespace> = self
            .spaces
            .iter()
            .filter(|it| is_damaged(it.1.store()))
            .map(|it| it.0.clone())
            .collect();
        for of in damaged {
            if of.origin == self.own.me && self.publish_again(&of, now) {
                self.notes.add(format!("{of} is damaged here: it is published again"), now);
            } else if of.origin == self.own.me {
                self.notes.add(format!("{of} is damaged here: publish it again"), now);
            } else if self.replica.held(&of).is_some() {
                self.notes.add(format!("{of} is damaged here: it is fetched again"), now);
                self.replica.handle_damaged(&of, now);
            }
        }
    }
}
