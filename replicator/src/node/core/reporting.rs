//! Reports of a member: for its administrator, its page and metrics.

use daemon::describe::Facts;
use std::time::Duration;

use super::super::group_status::group_status;
use super::Core;
use crate::ready;
use crate::status::{CollectionStatus, FailureStatus, FetchStatus, NoteStatus, Status, TreeStatus};
use crate::tree::folding::FoldFailure;
use crate::version::{Kind, Namespace, Number};

impl Core {
    pub(in super::super) fn status(&self) -> Status {
        let now = self.now();
        let key = self.own.key();
        let ids = self.own.config.groups.iter().map(|it| (it.entry.group(&key), it.entry.name()));
        let groups = ids.filter_map(|(id, name)| {
            let group = self.groups.get(id)?;
            let place = (self.own.me, &self.replica, &self.links);
            Some(group_status(name.to_string(), group, place, now))
        });
        let (groups, trees) = (groups.collect::<Vec<_>>(), self.tree_status(now));
        let at = |it: Duration| (self.own.started_ms + millis(it)) / 1_000;
        let name = format!("Replicator {}", self.own.me);
        let collections = trees.iter().filter_map(|it| it.collection.as_ref());
        let facts = Facts {
            objects: collections.map(|it| it.objects).sum(),
            ..Facts::new(&name, &self.own.config.daemon, None)
        };
        Status {
            id: self.own.me.to_string(),
            key: self.own.identity.key().to_owned(),
            address: self.own.config.address.to_string(),
            site: self.own.config.site.to_string(),
            software: env!("CARGO_PKG_VERSION").to_owned(),
            started: self.own.started_ms / 1_000,
            ready: ready::readiness(&groups, &trees),
            groups,
            trees,
            links: self.links.status(now),
            notes: self
                .notes
                .newest()
                .map(|it| NoteStatus {
                    text: it.text.clone(),
                    count: it.count,
                    at: at(it.last),
                    ago: now.saturating_sub(it.last).as_secs(),
                })
                .collect(),
            notes_total: self.notes.total,
            facts,
        }
    }

    fn tree_status(&self, now: Duration) -> Vec<TreeStatus> {
        let mut all = self.replica.flood().namespaces();
        all.extend(self.spaces.stores().map(|it| it.0.clone()));
        all.extend(self.sources.following.names().map(|it| self.own.namespace(it)));
        all.sort_unstable_by(|a, b| (&a.name, a.origin).cmp(&(&b.name, b.origin)));
        all.dedup();
        all.iter().map(|it| self.one_tree(it, now)).collect()
    }

    fn one_tree(&self, of: &Namespace, now: Duration) -> TreeStatus {
        let shown = |it: Number| it.to_string();
        let store = self.spaces.store(of);
        let held = store.and_then(|it| it.current());
        let totals = held.as_ref().map(|it| it.meta().totals).unwrap_or_default();
        let damaged = store.map(|it| it.damaged()).unwrap_or_default();
        let flood = self.replica.flood();
        let fetching = self.replica.progress(of).map(|it| FetchStatus {
            version: shown(it.version.number),
            came: it.came,
            missing: it.missing.saturating_sub(it.came.min(it.missing)),
        });
        let held_by = self.links.members().filter_map(|it| {
            let number = self.replica.held_by(it, of)?;
            Some((it.to_string(), shown(number)))
        });
        let collection = self.collection_status(of, now);
        let kind = if collection.is_some() { "collection" } else { "tree" };
        TreeStatus {
            kind: kind.to_owned(),
            name: of.name.to_string(),
            writer: of.origin.to_string(),
            is_mine: of.origin == self.own.me,
            held: held.map(|it| shown(it.meta().number)),
            newest: flood.newest(of).map(|it| shown(it.number)),
            is_listed: flood.is_listed(of),
            is_contradicted: flood.contradiction(of).is_some(),
            fetching,
            failure: self.spaces.failures.get(of).cloned(),
            path: store.map(|it| it.current_link().display().to_string()).unwrap_or_default(),
            entries: totals.entries,
            bytes: totals.bytes,
            damaged: damaged.iter().map(|it| it.display().to_string()).collect(),
            held_by: held_by.collect(),
            watch: self.sources.watching.status(&of.name).filter(|_| of.origin == self.own.me),
            collection,
        }
    }

    /// Returns the status of a collection; `None` for a tree.
    fn collection_status(&self, of: &Namespace, now: Duration) -> Option<CollectionStatus> {
        let is_mine = of.origin == self.own.me;
        let report = self.sources.following.report(&of.name, now).filter(|_| is_mine);
        let kind = self.spaces.store(of).map(|it| it.kind());
        let kind = kind.or_else(|| self.replica.flood().newest(of).map(|it| it.kind));
        if report.is_none() && kind != Some(Kind::Collection) {
            return None;
        }
        let reached = self.feeding.feeds().reached(of);
        let (feed, problem, unfolded) =
            report.map_or((None, None, None), |it| (Some(it.feed), it.problem, it.unfolded));
        let here = || self.spaces.store(of).and_then(|it| it.fold_failure());
        let unfolded = unfolded.or_else(|| {
            let FoldFailure { why, at_ms } = here()?;
            let ago = net::clock::now_ms().saturating_sub(at_ms) / 1_000;
            let remedy = "all of it came from others; free some room, or `verify` it";
            Some(FailureStatus { text: format!("{why}; {remedy}"), ago })
        });
        let base_url = self.own.config.daemon.base_url.as_ref();
        Some(CollectionStatus {
            reached: reached.map(|it| it.version.to_string()),
            objects: reached.map_or(0, |it| it.objects),
            path: format!("/collections/{of}/feed"),
            url: base_url.map(|it| format!("{it}collections/{of}/")),
            served: reached.map(|it| it.counters.into()).unwrap_or_default(),
            feed,
            problem,
            unfolded,
            unpurged: self.unpurged(of, reached.is_some_and(|it| it.holds_purged)),
        })
    }

    /// Returns why data purged at the origin of a collection may still be here.
    fn unpurged(&self, of: &Namespace, holds_purged: bool) -> Option<String> {
        if holds_purged {
            return Some("it goes with the next version: the origin folds its log".to_owned());
        }
        let left = self.spaces.old(of)?;
        Some(format!("{left} former versions are in use by readers: end them"))
    }
}

fn millis(it: Duration) -> u64 {
    u64::try_from(it.as_millis()).unwrap_or(u64::MAX)
}
