//! The end of the route: commits records with the notes of their files, in batches, and at the end of
//! an order the deletion of what has vanished.
//!
//! A batch holds whole files: their records and their notes are committed together or not at all.

use std::sync::atomic::Ordering::Relaxed;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use collection::{Batch, Change, Note, Oid, Stamp};
use net::clock;

use super::prepare::prepare;
use super::run::{Candidate, Order, Prepared, Run, Seen};
use crate::known::{Losses, Top, hold};
use crate::lock::lock;
use crate::note::{self, ObjectNote, RootNote};
use crate::problems::ROOT_PROBLEM;
use crate::progress::Hold;
use crate::site::root_note;
use crate::validator::Validator;

/// Most changes of one commit, beyond the file that reaches it. A commit takes many times the memory
/// of its records while it is written.
const CHANGES_MAX: usize = 1_024;

/// Most bytes of memory that one commit's records and notes take, beyond the file that reaches it.
const BATCH_BYTES_MAX: usize = 8 * 1024 * 1024;

/// How long a record waits for others to be committed with.
const WAIT_MAX: Duration = Duration::from_secs(1);

/// A file that waits to be committed with others.
#[derive(Debug)]
enum Waiting {
    /// What it gave, and its note.
    Prepared(Prepared),
    /// It has vanished: its note is to be forgotten, and all records that it gave.
    Vanished { url: String, key: Vec<u8> },
}

/// Collects and commits.
pub(crate) struct Committer<'a> {
    run: &'a Run<'a>,
    waiting: Vec<Waiting>,
    /// What goes with the next commit and belongs to no file.
    extra: Batch,
    /// Changes waiting, about.
    changes: usize,
    /// Bytes waiting, about.
    bytes: usize,
    /// When the oldest of the waiting came.
    since: Option<Instant>,
}

impl<'a> Committer<'a> {
    pub(crate) fn new(run: &'a Run<'a>) -> Self {
        let (waiting, extra) = (Vec::new(), Batch::default());
        Self { run, waiting, extra, changes: 0, bytes: 0, since: None }
    }

    /// Stage 4: commits what comes until nothing comes any more.
    pub(crate) fn commit_all(
        &mut self,
        prepared: &Receiver<Prepared>,
    ) -> Result<(), collection::Error> {
        loop {
            let age = self.since.map(|since| clock::monotonic().duration_since(since));
            match prepared.recv_timeout(WAIT_MAX.saturating_sub(age.unwrap_or_default())) {
                Ok(file) => {
                    self.run.room.leave(file.bytes());
                    self.add(file);
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return self.flush(),
            }
            let due =
                self.since.is_some_and(|it| WAIT_MAX <= clock::monotonic().duration_since(it));
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

    /// Commits what was collected. Files that a later walk has committed meanwhile are left out.
    fn flush(&mut self) -> Result<(), collection::Error> {
        let (run, stage) = (self.run, &self.run.site.metrics.commit);
        let _one_at_a_time = lock(&run.tract.commit);
        let mut batch = std::mem::take(&mut self.extra);
        let mut files = Vec::new();
        for file in self.waiting.drain(..) {
            let url = match &file {
                Waiting::Prepared(file) => &file.url,
                Waiting::Vanished { url, .. } => url,
            };
            let overtaken = lock(&run.tract.known).is_overtaken(url, run.walk);
            let file = if overtaken { None } else { up_to_date(run, file) };
            match file {
                Some(file) => files.push(put(run, file, &mut batch)?),
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
        count(run, &batch, &files);
        let mut known = lock(&run.tract.known);
        for (url, learned) in files {
            match learned {
                Some((validator, print)) => known.learn(&url, validator.as_ref(), print, run.walk),
                None => known.forget(&url, run.walk),
            }
        }
        Ok(())
    }

    /// Ends an order whose walk came to its end: deletes what has vanished, unless that is held, and
    /// confirms a whole root.
    pub(crate) fn finish(&mut self, order: &Order, seen: &Seen) -> Result<(), collection::Error> {
        let (tract, url) = (self.run.tract, self.run.plan.url.as_str());
        let _one_at_a_time = lock(&tract.finish);
        let before = lock(&tract.note).clone();
        let vanished = self.count_vanished(order, seen)?;
        let left = lock(&tract.known).len().saturating_sub(vanished);
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
        let mut after = RootNote { held: 0, hold: decision.clone(), ..before.clone() };
        if let Some(hold) = &decision {
            let stage = &self.run.site.metrics.vanish;
            stage.enter(vanished);
            stage.drop_many("held", vanished);
            // A part of a root says nothing of what is held elsewhere in it.
            after.held = if order.whole { vanished } else { before.held.max(vanished) };
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
        let is_seen = order.whole && self.end_pass(seen, &mut after);
        // Growth alone is not worth a commit: the next pass counts anew.
        if after != (RootNote { files: after.files, ..before }) {
            self.extra.notes.push(root_note(url, &after));
        }
        self.flush()?;
        if is_seen {
            self.run.site.handle_seen(url)?;
        }
        *lock(&tract.note) = after;
        lock(&self.run.site.problems).settle(seen.walk, |url| seen.has_looked_at(url));
        Ok(())
    }

    /// Ends a pass over the whole root: everything that lives there is confirmed at once. Returns whether all that is
    /// there was seen.
    fn end_pass(&mut self, seen: &Seen, after: &mut RootNote) -> bool {
        let plan = self.run.plan;
        let Top::Present { device, .. } = seen.top else {
            let message = "the root is not there: mount it, or correct the settings".to_owned();
            self.run.site.problem_met(self.run.walk, plan.url.clone(), ROOT_PROBLEM, message);
            return false;
        };
        if seen.unread.contains(&plan.url) {
            return false;
        }
        let at = clock::now_ms();
        if after.hold.is_none() {
            after.device = Some(device);
            let forgotten = self.waiting.len() as u64;
            after.files = lock(&self.run.tract.known).len().saturating_sub(forgotten);
            after.lost = 0;
        }
        after.confirmed = Some(at);
        // A pass that had begun before records were lost has not published everything again.
        after.regather &= !self.run.regather;
        self.extra.changes.push(Change::Confirm {
            gatherer: self.run.site.id.clone(),
            root: plan.url.clone(),
            at: Stamp(at),
        });
        self.run.site.metrics.passes.fetch_add(1, Relaxed);
        after.hold.is_none()
    }

    fn report_hold(&self, hold: &Hold, held: u64) {
        let why = match hold {
            Hold::Missing => "the root is not there".to_owned(),
            Hold::Empty => "the root is empty".to_owned(),
            Hold::OtherDevice => "the root is on another device than before".to_owned(),
            Hold::Lost { lost, of } => format!("{lost} of {of} files are gone at once"),
            Hold::Removed => "the root is no longer in the settings".to_owned(),
        };
        let url = &self.run.plan.url;
        let message = format!(
            "{why}: {held} files are kept until they are back or POST /confirm?root={url} says \
             that they are gone"
        );
        tracing::warn!(root = url, held, "{why}: nothing is deleted");
        self.run.site.problem_met(self.run.walk, url.clone(), "held", message);
    }

    /// Counts the files that have vanished; those that could not be looked at are spared.
    fn count_vanished(&self, order: &Order, seen: &Seen) -> Result<u64, collection::Error> {
        if order.whole && lock(&self.run.tract.known).unseen(seen.walk) == 0 {
            return Ok(0);
        }
        let mut count = 0;
        for_each_vanished(self.run, order, seen, &mut |_, _| {
            count += 1;
            Ok(())
        })?;
        Ok(count)
    }

    fn delete_vanished(&mut self, order: &Order, seen: &Seen) -> Result<(), collection::Error> {
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

/// Returns the file as it is to be committed; `None` when there is nothing to commit any more.
///
/// A walk that began earlier may have committed the file between the moment when its note was read and
/// now: compared with that older note, members that the other has published would stay for ever. So
/// such a file is read again, now that nobody else commits.
fn up_to_date(run: &Run<'_>, file: Waiting) -> Option<Waiting> {
    let Waiting::Prepared(file) = file else { return Some(file) };
    if lock(&run.tract.known).committed(&file.url) == file.against {
        return Some(Waiting::Prepared(file));
    }
    run.site.metrics.fetch.enter(1);
    let candidate = Candidate { url: file.url, validator: file.note.validator };
    prepare(run, &candidate).map(Waiting::Prepared)
}

/// What is known of an object once it is committed: what it looked like, if that can be relied on, and the
/// fingerprint of what its records depend on.
type Learned = (Option<Validator>, u64);

/// Puts an object into a batch; returns its URL, and what is known of it once that is committed.
fn put(
    run: &Run<'_>,
    file: Waiting,
    batch: &mut Batch,
) -> Result<(String, Option<Learned>), collection::Error> {
    let delete = |url: &str| Change::Delete(Oid::new(&run.site.id, url));
    match file {
        Waiting::Prepared(file) => {
            batch.changes.extend(file.updated.into_iter().map(Change::Update));
            batch.changes.extend(file.deleted.iter().map(|url| delete(url)));
            batch.notes.push(Note { key: file.key, value: Some(note::to_bytes(&file.note)) });
            Ok((file.url, Some((file.note.known_by().cloned(), file.note.print()))))
        }
        Waiting::Vanished { url, key } => {
            let stored = run.site.collection.note(&key)?;
            let note: Option<ObjectNote> = stored.as_deref().and_then(note::from_bytes);
            let records = note.map(|note| note.records).unwrap_or_default();
            batch.changes.extend(records.iter().map(|record| delete(&record.url)));
            batch.notes.push(Note { key, value: None });
            Ok((url, None))
        }
    }
}

/// Calls `each` with URL and key of every known object within the order that the walk has not
/// seen; those that could not be looked at are spared.
fn for_each_vanished(
    run: &Run<'_>,
    order: &Order,
    seen: &Seen,
    each: &mut dyn FnMut(String, Vec<u8>) -> Result<(), collection::Error>,
) -> Result<(), collection::Error> {
    let (collection, root) = (&run.site.collection, run.plan.url.as_str());
    let mut consider = |key: Vec<u8>| {
        let Some(url) = note::url_of(root, &key) else { return Ok(()) };
        let mut known = lock(&run.tract.known);
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

/// Commits a batch. A record or note that the collection refuses is a problem of its own; the others
/// are committed.
fn commit(run: &Run<'_>, batch: &mut Batch) -> Result<(), collection::Error> {
    while !batch.is_empty() {
        match run.site.collection.commit(&*batch, Stamp(clock::now_ms())) {
            Ok(_version) => {
                run.site.metrics.commits.fetch_add(1, Relaxed);
                break;
            }
            Err(collection::Error::Refused { position, object, reason }) => {
                let is_note = |it: &Note| {
                    object.starts_with("note ")
                        && object.ends_with(&*String::from_utf8_lossy(&it.key))
                };
                if batch.notes.get(position).is_some_and(is_note) {
                    // Without it the file is read again at the next start.
                    batch.notes.remove(position);
                } else if let Some(at) = refused_at(&batch.changes, position, &object) {
                    batch.changes.remove(at);
                } else {
                    return Err(collection::Error::Refused { position, object, reason });
                }
                run.site.problem(object, "refused", reason.to_owned());
            }
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Returns the place of a change that the collection has refused: at `position` or behind it, since what
/// is suppressed is left out before it counts.
fn refused_at(changes: &[Change], position: usize, object: &str) -> Option<usize> {
    let is_it = |change: &Change| match change {
        Change::Update(record) => record.url == object,
        Change::Refresh(oid) | Change::Delete(oid) | Change::Suppress(oid, _) => {
            oid.to_string() == object
        }
        Change::Confirm { root, .. } => root == object,
    };
    let behind = changes.get(position..)?.iter().position(is_it)?;
    Some(position + behind)
}

fn count(run: &Run<'_>, batch: &Batch, files: &[(String, Option<Learned>)]) {
    let (metrics, counts) = (&run.site.metrics, &run.site.counts);
    let of =
        |wanted: fn(&Change) -> bool| batch.changes.iter().filter(|it| wanted(it)).count() as u64;
    let updated = of(|it| matches!(it, Change::Update(_)));
    let deleted = of(|it| matches!(it, Change::Delete(_)));
    metrics.updated.fetch_add(updated, Relaxed);
    metrics.deleted.fetch_add(deleted, Relaxed);
    counts.updated.fetch_add(updated, Relaxed);
    counts.deleted.fetch_add(deleted, Relaxed);
    let gathered = files.iter().filter(|(_, learned)| learned.is_some()).count() as u64;
    counts.done.fetch_add(gathered, Relaxed);
    metrics.commit.leave(files.len() as u64);
}

#[cfg(test)]
mod tests {
    use soif::Record;

    use super::*;

    #[test]
    fn what_is_refused_is_found_behind_what_is_suppressed() {
        let changes: Vec<Change> = vec![
            Change::Update(Record::new("FILE", "file:///a")),
            Change::Update(Record::new("FILE", "file:///b")),
            Change::Delete(Oid::new("g", "file:///c")),
        ];
        assert_eq!(refused_at(&changes, 0, "file:///b"), Some(1));
        assert_eq!(refused_at(&changes, 1, "file:///b"), Some(1));
        let deleted = Oid::new("g", "file:///c").to_string();
        assert_eq!(refused_at(&changes, 0, &deleted), Some(2));
        assert_eq!(refused_at(&changes, 2, "file:///a"), None);
        assert_eq!(refused_at(&changes, 9, "file:///a"), None);
    }
}
