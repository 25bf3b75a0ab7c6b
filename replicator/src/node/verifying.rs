//! Verifying: jobs that read trees and compare them with their manifests.

use std::sync::Arc;

use tokio::sync::oneshot;

use crate::status::Report;
use crate::tree::error::Error;
use crate::tree::store::Store;
use crate::tree::verify;
use crate::version::Namespace;

type Reply = oneshot::Sender<Result<Vec<Report>, String>>;

/// Job: verify trees for a caller.
#[derive(Debug)]
pub(super) struct Verifying {
    stores: Vec<(Namespace, Arc<Store>)>,
    reply: Reply,
}

#[derive(Debug)]
pub(super) struct Verified {
    found: Vec<(Namespace, Result<verify::Verified, Error>)>,
    reply: Reply,
}

impl Verifying {
    /// Returns the job that verifies all trees of this name, the tree of one writer
    /// (`NAME@WRITER`), or, without a name, all trees. If there is no such tree, answers the
    /// caller, and returns `None`.
    pub(super) fn new<'a>(
        all: impl Iterator<Item = (&'a Namespace, &'a Arc<Store>)>,
        tree: Option<&str>,
        reply: Reply,
    ) -> Option<Self> {
        let is_meant = |it: &Namespace| {
            tree.is_none_or(|tree| it.name.as_str() == tree || it.to_string() == tree)
        };
        let meant = all.filter(|it| is_meant(it.0));
        let stores: Vec<_> = meant.map(|(of, store)| (of.clone(), store.clone())).collect();
        if stores.is_empty() {
            drop(reply.send(Err(
                "there is no such tree here yet; `status` lists all of them".to_owned(),
            )));
            return None;
        }
        Some(Self { stores, reply })
    }

    /// Reads the trees. Blocks.
    pub(super) fn run(self) -> Verified {
        let found = self.stores.into_iter().map(|(of, store)| (of, store.verify())).collect();
        Verified { found, reply: self.reply }
    }
}

impl Verified {
    pub(super) fn answer(self) {
        let mut reports = Vec::new();
        let mut failed = None;
        for (of, found) in self.found {
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
        drop(self.reply.send(failed.map_or(Ok(reports), Err)));
    }
}
