//! The end of the route: commits records together with the notes of their files, in batches, and
//! deletes vanished files at the end of an order.
//!
//! A batch holds whole files: the records and the note of a file are committed together or not at
//! all.

use std::sync::atomic::Ordering::Relaxed;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use collection::{Batch, Change, Note, Oid, Stamp};
use net::clock;

use super::prepare::prepare;
use super::refused::commit;
use super::run::{Access, Candidate, Order, Prepared, Run, WalkResult};
use crate::known::{Losses, Top, hold};
use crate::lock::lock;
use crate::note::{self, ObjectNote, RootNote};
use crate::problems::ROOT_PROBLEM;
use crate::progress::Hold;
use crate::validator::Validator;

/// Maximum number of changes in one commit; the file that reaches it is not split. While a commit
/// is written, it takes many times the memory of its records.
const CHANGES_MAX: usize = 1_024;

/// Maximum memory of the records and notes of one commit, in bytes; the file that reaches it is not
/// split.
const BATCH_BYTES_MAX: usize = 8 * 1024 * 1024;

/// Maximum time that a record waits for others of its batch.
const WAIT_MAX: Duration = Duration::from_secs(1);

/// The same if somebody waits for the commit; also the time between two checks of whether a commit is due.
const LOOK: Duration = Duration::from_millis(50);

#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "nearly all that wait are prepared")]
enum Waiting {
    /// The file's records and its note.
    Prepared(Prepared),
    /// The file has vanished: its note and all its records are deleted. Of a page stays why it has none.
    Vanished { url: String, key: Vec<u8> },
}

pub(crate) struct Committer<'a> {
    run: &'a Run<'a>,
    waiting: Vec<Waiting>,
    /// Changes and notes of the next commit that do not belong to a file.
    extra: Batch,
    /// Estimated number of waiting changes.
    changes: usize,
    /// Estimated number of waiting bytes.
    bytes: usize,
    /// Time of arrival of the oldest waiting file.
    since: Option<Instant>,
}

impl<'a> Committer<'a> {
    pub(crate) fn new(run: &'a Run<'a>) -> Self {
        let (waiting, extra) = (Vec::new(), Batch::default());
        Self { run, waiting, extra, changes: 0, bytes: 0, since: None }
    }

    /// Stage 4: commits files until the channel is closed.
    pub(crate) fn commit_all(
        &mut self,
        prepared: &Receiver<Prepared>,
    ) -> Result<(), collection::Error> {
        loop {
            match prepared.recv_timeout(LOOK) {
                Ok(file) => {
                    self.run.room.leave(file.bytes());
                    self.add(file);
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return self.flush(),
            }
            let wait_max = if self.run.is_awaited.load(Relaxed) { LOOK } else { WAIT_MAX };
            let due =
                self.since.is_some_and(|it| wait_max <= clock::monotonic().duration_since(it));
            if due || CHANGES_MAX <= self.changes || BATCH_BYTES_MAX <= self.bytes {
                self.flush()?;
            }
        }
    }

    fn add(&mut self, file: Prepared) {
        self.run.site.metrics.commit.enter(1);
        self.since.get_or_insert_with(clock::monotonic);
        self.bytes += file.bytes();
        self.changes += file.updated.len() + file.deleted.len();
        self.waiting.push(Waiting::Prepared(file));
    }

    /// Commits the batch, except files that a later walk has committed meanwhile.
    fn flush(&mut self) -> Result<(), collection::Error> {
        let (run, stage) = (self.run, &self.run.site.metrics.commit);
        let _one_at_a_time = lock(&run.root.commit);
        let mut batch = std::mem::take(&mut self.extra);
        let (mut files, mut gathered) = (Vec::new(), 0);
        let is_prepared = |it: &&Waiting| matches!(it, Waiting::Prepared(_));
        let prepared = self.waiting.iter().filter(is_prepared).count();
        for file in self.waiting.drain(..) {
            let url = match &file {
                Waiting::Prepared(file) => &file.url,
                Waiting::Vanished { url, .. } => url,
            };
            let overtaken = lock(&run.root.known).is_overtaken(url, run.walk);
            let file = if overtaken { None } else { refreshed(run, file) };
            match file {
                Some(file) => {
                    gathered += u64::from(matches!(file, Waiting::Prepared(_)));
                    files.push(add_to_batch(run, file, &mut batch)?);
                }
                None => {
                    stage.drop_one("overtaken");
                    run.site.counts.done.fetch_add(1, Relaxed);
                }
            }
        }
        (self.changes, self.bytes, self.since) = (0, 0, None);
        if let Err(error) = commit(run, &mut batch) {
            for _file in &files {
                stage.drop_one("failed");
            }
            return Err(error);
        }
        count(run, &batch, (files.len() as u64, gathered));
        let mut known = lock(&run.root.known);
        for (url, committed) in files {
            match committed {
                Some((validator, basis)) => known.learn(&url, validator.as_ref(), basis, run.walk),
                None => known.forget(&url, run.walk),
            }
        }
        drop(known);
        run.uncommitted.leave(prepared);
        if let Access::Web(web) = &run.access {
            web.spool.sweep(&|| run.is_stopped());
        }
        Ok(())
    }

    /// Ends an order whose walk has finished: deletes vanished files, unless their deletion is
    /// held. If the order is for a whole root, confirms the root.
    pub(crate) fn finish(
        &mut self,
        order: &Order,
        seen: &WalkResult,
    ) -> Result<(), collection::Error> {
        let (root, url) = (self.run.root, self.run.plan.url.as_str());
        let _one_at_a_time = lock(&root.finish);
        let before = lock(&root.note).clone();
        if let Some(gone) = &seen.gone {
            lock(&root.known).settle(gone, seen.walk);
        }
        let vanished = self.count_vanished(order, seen)?;
        let left = lock(&root.known).len().saturating_sub(vanished);
        let lost = if self.run.counts_on_balance(order) {
            before.files.saturating_sub(left)
        } else {
            before.lost + vanished
        };
        let decision = hold(&Losses {
            top: seen.top,
            device: before.device,
            of: before.files.max(left),
            lost,
            now: vanished,
            held: before.hold.as_ref(),
            confirmed: order.confirmed,
        });
        let decision = decision.or_else(|| seen.alike.clone());
        let mut after = RootNote { held: 0, hold: decision.clone(), ..before.clone() };
        if let Some(hold) = &decision {
            let stage = &self.run.site.metrics.vanish;
            stage.enter(vanished);
            stage.drop_many("held", vanished);
            // A walk over a part of a root says nothing about the rest.
            after.held = match hold {
                Hold::Alike { alike, .. } => *alike,
                _ if order.whole => vanished,
                _ => before.held.max(vanished),
            };
            self.report_hold(hold, after.held);
        } else if !order.whole {
            (after.hold, after.held) = (before.hold.clone(), before.held);
        }
        if decision.is_none() {
            (after.lost, after.files) = (lost, before.files.max(left));
            if 0 < vanished {
                self.delete_vanished(order, seen)?;
            }
        }
        let ended = if order.whole { self.end_pass(seen, &mut after) } else { None };
        for url in &seen.empty {
            self.forget(url)?;
        }
        if let Some(from_ms) = seen.answered_from {
            self.refresh_answered(from_ms)?;
        }
        // Growth alone needs no commit: the next pass counts the files again.
        if after != (RootNote { files: after.files, ..before }) {
            let value = Some(note::to_bytes(&after));
            self.extra.notes.push(Note { key: note::root_key(url), value });
        }
        self.flush()?;
        if ended == Some(true) {
            self.run.site.handle_finished_root(url)?;
        }
        *lock(&root.note) = after;
        lock(&self.run.site.problems).settle(seen.walk, |url| seen.has_looked_at(url));
        if ended.is_some() {
            self.run.site.end_pass();
        }
        Ok(())
    }

    /// Ends a pass over the whole root: confirms all its live objects with one change, unless its
    /// top is missing or unreadable (`None`). Returns whether nothing is held.
    fn end_pass(&mut self, seen: &WalkResult, after: &mut RootNote) -> Option<bool> {
        let plan = self.run.plan;
        let Top::Present { device, .. } = seen.top else {
            let message = "the root is not there: mount it, or correct the settings".to_owned();
            self.run.site.problem_from_walk(self.run.walk, plan.url.clone(), ROOT_PROBLEM, message);
            return None;
        };
        if seen.unread.contains(&plan.url) {
            return None;
        }
        let at = clock::now_ms();
        if after.hold.is_none() {
            after.device = Some(device);
            let forgotten = self.waiting.len() as u64;
            after.files = lock(&self.run.root.known).len().saturating_sub(forgotten);
            after.lost = 0;
        }
        after.confirmed = Some(at);
        after.crawl_began = None;
        // If the pass began before records were lost, it has not published everything again.
        after.regather &= !self.run.regather;
        if seen.answered_from.is_none() {
            self.extra.changes.push(Change::Confirm {
                gatherer: self.run.site.id.clone(),
                root: plan.url.clone(),
                at: Stamp(at),
            });
        }
        Some(after.hold.is_none())
    }

    /// Deletes the note of an object that has no records.
    fn forget(&mut self, url: &str) -> Result<(), collection::Error> {
        let key = note::object_key(&self.run.plan.url, url);
        let metrics = &self.run.site.metrics;
        metrics.vanish.enter(1);
        metrics.vanish.leave(1);
        metrics.commit.enter(1);
        self.waiting.push(Waiting::Vanished { url: url.to_owned(), key });
        self.changes += 1;
        if CHANGES_MAX <= self.changes { self.flush() } else { Ok(()) }
    }

    /// Refreshes the records of all objects that were answered since `from_ms`, one by one: others
    /// of the root may be gone.
    fn refresh_answered(&mut self, from_ms: u64) -> Result<(), collection::Error> {
        let run = self.run;
        for entry in run.site.collection.notes(&note::objects_prefix(&run.plan.url)) {
            let Some(object) = note::from_bytes::<ObjectNote>(&entry?.1) else { continue };
            let crawled = object.crawled.as_ref();
            if crawled.is_some_and(|it| it.gone.is_none() && from_ms <= it.answered_ms) {
                let oid = |it: &note::Published| Oid::new(&run.site.id, &it.url);
                let refreshed = object.records.iter().map(|it| Change::Refresh(oid(it), None));
                self.extra.changes.extend(refreshed);
            }
            if CHANGES_MAX <= self.extra.changes.len() {
                self.flush()?;
            }
        }
        Ok(())
    }

    fn report_hold(&self, hold: &Hold, held: u64) {
        let why = match hold {
            Hold::Missing => "the root is not there".to_owned(),
            Hold::Empty => "the root is empty".to_owned(),
            Hold::OtherDevice => "the root is on another device than before".to_owned(),
            Hold::Lost { lost, of } => format!("{lost} of {of} files are gone at once"),
            Hold::Alike { alike, of } => format!("{alike} of {of} pages have become one page"),
            Hold::Removed => "the root is no longer in the settings".to_owned(),
        };
        let url = &self.run.plan.url;
        let (until, what) = match hold {
            Hold::Alike { .. } => ("differ again", "this is meant"),
            _ => ("are back", "they are gone"),
        };
        let message = format!(
            "{why}: {held} files are kept until they {until}, or `harvest gatherer confirm` (of \
             `harvest up`: `--confirm`) says that {what}"
        );
        tracing::warn!(root = url, held, "{why}: nothing is deleted");
        self.run.site.problem_from_walk(self.run.walk, url.clone(), "held", message);
    }

    /// Returns the number of vanished files, without files below unreadable paths.
    fn count_vanished(&self, order: &Order, seen: &WalkResult) -> Result<u64, collection::Error> {
        if order.whole && lock(&self.run.root.known).unseen(seen.walk) == 0 {
            return Ok(0);
        }
        let mut count = 0;
        for_each_vanished(self.run, order, seen, &mut |_, _| {
            count += 1;
            Ok(())
        })?;
        Ok(count)
    }

    fn delete_vanished(
        &mut self,
        order: &Order,
        seen: &WalkResult,
    ) -> Result<(), collection::Error> {
        let run = self.run;
        for_each_vanished(run, order, seen, &mut |url, key| {
            run.site.metrics.vanish.enter(1);
            run.site.metrics.vanish.leave(1);
            run.site.resolve(&url, &run.public_url(&url));
            run.site.metrics.commit.enter(1);
            self.waiting.push(Waiting::Vanished { url, key });
            self.changes += 1;
            if CHANGES_MAX <= self.changes { self.flush() } else { Ok(()) }
        })
    }
}

/// Returns the file with current data; `None` if there is nothing left to commit.
///
/// An earlier walk may have committed the file after its note was read here. As the records were
/// compared with the older note, members published by the other walk would stay forever. Such a
/// file is read again now, while no other thread commits.
fn refreshed(run: &Run<'_>, file: Waiting) -> Option<Waiting> {
    let Waiting::Prepared(file) = file else { return Some(file) };
    // A crawl asks for a page only once.
    let is_page = file.note.crawled.is_some();
    if is_page || lock(&run.root.known).committed(&file.url) == file.against {
        return Some(Waiting::Prepared(file));
    }
    run.site.metrics.fetch.enter(1);
    let validator = file.note.brief.validator;
    let candidate = Candidate { url: file.url, validator, got: None };
    prepare(run, &candidate).map(Waiting::Prepared)
}

/// A committed object's validator, if it can be relied on, and the fingerprint of the basis of its
/// records.
type Committed = (Option<Validator>, u64);

/// Adds a file to a batch. Returns its URL and its new entry in the known set (`None`: it is
/// forgotten).
fn add_to_batch(
    run: &Run<'_>,
    file: Waiting,
    batch: &mut Batch,
) -> Result<(String, Option<Committed>), collection::Error> {
    let delete = |url: &str| Change::Delete(Oid::new(&run.site.id, url));
    match file {
        Waiting::Prepared(file) => {
            batch.changes.extend(file.updated.into_iter().map(Change::Update));
            batch.changes.extend(file.deleted.iter().map(|url| delete(url)));
            batch.notes.push(Note { key: file.key, value: Some(note::to_bytes(&file.note)) });
            let validator = file.note.brief.sure_validator().cloned();
            Ok((file.url, Some((validator, file.note.brief.basis_fingerprint()))))
        }
        Waiting::Vanished { url, key } => {
            let stored = run.site.collection.note(&key)?;
            let note: Option<ObjectNote> = stored.as_deref().and_then(note::from_bytes);
            let records = note.as_ref().map(|it| it.records.as_slice()).unwrap_or_default();
            run.site.let_go(&run.plan.url, &url, records, batch)?;
            let left = note.and_then(ObjectNote::left);
            batch.notes.push(Note { key, value: left.as_ref().map(note::to_bytes) });
            Ok((url, left.map(|it| (None, it.brief.basis_fingerprint()))))
        }
    }
}

/// Calls `each` with the URL and key of every known object within the order that the walk has not
/// seen, except objects below unreadable paths.
fn for_each_vanished(
    run: &Run<'_>,
    order: &Order,
    seen: &WalkResult,
    each: &mut dyn FnMut(String, Vec<u8>) -> Result<(), collection::Error>,
) -> Result<(), collection::Error> {
    let (collection, root) = (&run.site.collection, run.plan.url.as_str());
    let mut consider = |key: Vec<u8>| {
        let Some(url) = note::url_of(root, &key) else { return Ok(()) };
        let mut known = lock(&run.root.known);
        if !known.is_unseen(&url, seen.walk) {
            return Ok(());
        }
        if seen.spares(&url) {
            known.spare(&url, seen.walk);
            return Ok(());
        }
        drop(known);
        each(url, key)
    };
    if order.whole {
        for entry in collection.notes(&note::objects_prefix(root)) {
            consider(entry?.0)?;
        }
        return Ok(());
    }
    for scope in &seen.scopes {
        let key = note::object_key(root, scope);
        if collection.note(&key)?.is_some() {
            consider(key)?;
        }
        for entry in collection.notes(&note::below_prefix(root, scope)) {
            consider(entry?.0)?;
        }
    }
    Ok(())
}

fn count(run: &Run<'_>, batch: &Batch, (files, gathered): (u64, u64)) {
    let of =
        |wanted: fn(&Change) -> bool| batch.changes.iter().filter(|it| wanted(it)).count() as u64;
    let updated = of(|it| matches!(it, Change::Update(_)));
    let deleted = of(|it| matches!(it, Change::Delete(_)));
    run.site.count_changes(updated, deleted);
    run.site.counts.done.fetch_add(gathered, Relaxed);
    run.site.metrics.commit.leave(files);
}
