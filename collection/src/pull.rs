//! Pulling a source: the client of [`feed`](crate::feed).
//!
//! A pull requests the changes after its cursor and applies them as they come, with the cursor. So
//! it can end anywhere, even by a kill, and the next one continues without losing or repeating a
//! change: deltas by serial, snapshots by byte range under their ETag. A snapshot is applied under
//! a generation of its own. After the snapshot the pull requests the later changes. Objects that
//! neither the snapshot nor these changes name are released only at the end mark of the changes,
//! because a snapshot may be older than earlier pulls.
//!
//! A stream that breaks off or does not match its checksums is requested again from the last good
//! member on. After three attempts in a row without progress the pull fails, with an error that
//! names source and offset.
//!
//! A source with a hole in its log sends only the changes before the hole, or a snapshot without
//! the changes in it. The answer is applied, but nothing is released, and the pull ends with
//! [`Error::Missing`].
//!
//! The changes and the losses of a source are limited: [`PullLimits`],
//! [`restraint`](crate::restraint).
//!
//! Source: docs/collection.md, "On the wire".

mod first_changes;
mod in_place;
pub(crate) mod intake;

use std::time::{Duration, Instant};

use http::{StatusCode, header};
use net::client::{Request, Response};
use net::{clock, identity};
use tokio::sync::mpsc;
use tokio::task::spawn_blocking;
use tokio::time::sleep;

use crate::change::{Epoch, Stamp, Version};
use crate::collection::Collection;
use crate::error::Error;
use crate::holders::{Cursor, Owner, Progress};
use crate::report::Applied;
use crate::wire::client::{Answer, PIECES_AHEAD, forward, is_transfer_error, range_start};
use crate::wire::{self, joined, site, value};

pub use crate::wire::client::{FeedClient, Kind, PullLimits};
use intake::{Intake, Stream, Tally};

/// Number of attempts in a row without progress that end a pull.
const FRUITLESS_MAX: u32 = 3;

/// Maximum number of requests of one pull.
const REQUESTS_MAX: u32 = 10_000;

/// Maximum number of snapshots, complete or not, in one pull.
const SNAPSHOTS_MAX: u32 = 16;

/// Pause before the next attempt after one without progress; it grows with each such attempt.
const PAUSE: Duration = Duration::from_millis(200);

/// The outcome of a pull.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Summary {
    /// Whether a snapshot was among the answers.
    pub kind: Kind,
    /// Number of updates and deletes received.
    pub changes: u64,
    /// Number of these updates, in deltas, that brought a new record of an object whose content
    /// (`MD5`) is as it was: they say nothing about how often the source changes.
    pub remade: u64,
    /// Mean age of the other changes at the end of the pull, in seconds, by the source's stamps and
    /// our clock; 0 if there were none. It is negative if the source's clock is ahead.
    pub age_secs: f64,
    /// Number of objects that changed in deltas: an object's later changes do not count.
    pub changed: u64,
    /// Mean age of those first changes, computed as for `age_secs`, in seconds.
    pub changed_age_secs: f64,
    /// Compressed bytes of the bodies.
    pub bytes: u64,
    /// Number of live objects at the source, as its answer claims, but at most `records_max`, and
    /// at most the objects held before plus the records received. 0 if no answer came.
    pub objects: u64,
    /// The source's version that the pull has reached or, if it failed, should have reached.
    pub version: Version,
    /// Number of times that the pull went on after a break.
    pub resumed: u32,
    /// The changes to the collection.
    pub applied: Applied,
    /// Whether the source says that its feed is at another URL than the one that was asked.
    pub is_elsewhere: bool,
}

/// A client that pulls one source into a collection.
#[derive(Clone, Debug)]
pub struct Puller {
    feed: FeedClient,
    collection: Collection,
    limits: PullLimits,
    confirmed: bool,
    is_replica: bool,
}

/// The next step after a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Next {
    Done,
    /// Request the newer changes.
    Again,
    /// Request a snapshot: the one in progress is gone, or the source was forgotten.
    Anew,
}

impl Puller {
    /// Returns a puller of `feed` into `collection`.
    #[must_use]
    pub fn new(feed: FeedClient, collection: Collection, limits: PullLimits) -> Self {
        let feed = FeedClient { bytes_max: limits.bytes_max, ..feed };
        Self { feed, collection, limits, confirmed: false, is_replica: false }
    }

    /// Sets whether an administrator has confirmed that the source may lose most of its objects, or
    /// be at an older epoch than before.
    #[must_use]
    pub fn confirmed(mut self, confirmed: bool) -> Self {
        self.confirmed = confirmed;
        self
    }

    /// Sets whether the feed is one of several replicas of the source: one that lags behind what another has sent is no
    /// reason to go back.
    #[must_use]
    pub fn one_of_several(mut self, is_replica: bool) -> Self {
        self.is_replica = is_replica;
        self
    }

    /// Pulls the new changes. With `wait`, a source without new changes delays its answer for up to
    /// that time (whole seconds, at most 60). The future may be dropped at any point. Run only one
    /// pull of a source at a time.
    ///
    /// # Errors
    ///
    /// [`Error::Source`], [`Error::Missing`], [`Error::Corrupt`]: try again later; the changes so
    /// far are kept. [`Error::NotAFeed`], [`Error::Format`], [`Error::OverLimit`],
    /// [`Error::Swollen`]: an administrator has to correct something. [`Error::Loss`],
    /// [`Error::EpochBack`]: look at the source, and pull [`confirmed`](Self::confirmed) if that is
    /// intended. Any other error is the collection's own.
    pub async fn pull(&self, wait: Option<Duration>) -> Result<Summary, Error> {
        let mut summary = Summary::default();
        self.pull_into(wait, &mut summary).await?;
        Ok(summary)
    }

    /// Pulls the new changes; `summary` gets the outcome, also if the pull fails. If the pull is
    /// dropped, the answer in progress is not counted.
    pub async fn pull_into(
        &self,
        wait: Option<Duration>,
        summary: &mut Summary,
    ) -> Result<(), Error> {
        *summary = Summary::default();
        let mut tally = Tally::default();
        let deadline = clock::monotonic() + self.limits.time_max + wait.unwrap_or_default();
        let (mut wait, mut anew, mut fruitless) = (wait.unwrap_or_default(), false, 0);
        let (mut snapshots, mut held) = (0, self.held().await?);
        let held_before = held;
        if self.limits.records_max < held {
            return Err(self.feed.over_limit(format!("{held} objects"), "records_max"));
        }
        for _ in 0..REQUESTS_MAX {
            let before = self.cursor().await?;
            let from = (before.clone(), held);
            let step = Box::pin(self.step(from, (wait, deadline), anew, summary, &mut tally));
            let outcome = step.await;
            sum_up(summary, &tally, held_before, clock::now_ms());
            let error = match outcome {
                Ok(Next::Done) => return Ok(()),
                Ok(_) if snapshots == SNAPSHOTS_MAX => break,
                Ok(next) => {
                    (snapshots, held) = (snapshots + 1, self.held().await?);
                    (wait, anew) = (Duration::ZERO, next == Next::Anew);
                    continue;
                }
                Err(error) if !is_transfer_error(&error) => return Err(error),
                Err(error) => error,
            };
            fruitless = if self.cursor().await? == before { fruitless + 1 } else { 0 };
            if FRUITLESS_MAX <= fruitless {
                return Err(error);
            }
            tracing::info!(source = %self.feed.source, %error, "a pull goes on after a break");
            summary.resumed += 1;
            wait = Duration::ZERO;
            sleep(PAUSE * fruitless).await;
        }
        let what = format!("{REQUESTS_MAX} requests did not bring all of it");
        Err(self.feed.no_feed(&self.feed.base, what))
    }

    async fn step(
        &self,
        (cursor, held): (Option<Cursor>, u64),
        times: (Duration, Instant),
        anew: bool,
        summary: &mut Summary,
        tally: &mut Tally,
    ) -> Result<Next, Error> {
        let asked = self.feed.asked();
        let asks_same = |it: &Cursor| it.part.as_ref().map_or("", |it| &it.asked) == asked;
        let is_new_part = cursor.as_ref().is_some_and(|it| !asks_same(it));
        let known = cursor.clone().filter(|it| !anew && asks_same(it));
        let response = self.feed.client.send(self.request(known.as_ref(), times, summary)).await;
        let mut response = response.map_err(|error| self.feed.failed(error))?;
        let in_part = |it: &Cursor| it.snapshot.as_ref().is_some_and(Progress::is_in_part);
        let known = known.filter(|it| !in_part(it));
        let progress = known.as_ref().and_then(Cursor::fetching);
        match (response.status, progress) {
            (StatusCode::OK | StatusCode::PARTIAL_CONTENT, _) => {}
            (
                StatusCode::NOT_FOUND | StatusCode::GONE | StatusCode::RANGE_NOT_SATISFIABLE,
                Some(_),
            ) => {
                return Ok(Next::Anew);
            }
            _ => return Err(self.feed.refused(response).await),
        }
        let (answer, missing) = (self.feed.answer(&response)?, self.feed.missing(&response));
        if let Some(have) = cursor.as_ref().filter(|it| answer.to.epoch < it.epoch) {
            self.forget_newer_epoch(&response.url, have.epoch, answer.to.epoch).await?;
            return Ok(Next::Anew);
        }
        self.refuse_behind(&response, answer, cursor.as_ref())?;
        let (id, mut part) = (self.note_key(&response, summary), self.feed.part_of(&response)?);
        if let Some(part) = &mut part {
            let before = cursor.as_ref().and_then(|it| it.part.as_ref());
            // That a source limits us is not what the administrator here has asked for.
            let is_asked = is_new_part && !part.asked.is_empty();
            part.is_new = is_asked || before.is_some_and(|it| it.is_new);
        }
        let mut intake = match (answer.kind, &known) {
            // The source limits us no more: the rest is wanted, too.
            (Kind::Delta, Some(have)) if part.is_none() && have.part.is_some() => {
                return Ok(Next::Anew);
            }
            (Kind::Delta, Some(have)) => self.delta(&response, answer, have)?,
            (Kind::Delta, None) => {
                return Err(self.feed.no_feed(&response.url, "a delta to nothing".to_owned()));
            }
            (Kind::Snapshot, _) => {
                let mut intake = self.snapshot(&response, answer, known.as_ref())?;
                intake.begin_after(cursor.as_ref().filter(|_| progress.is_none()));
                intake
            }
        };
        if answer.kind == Kind::Snapshot {
            summary.kind = Kind::Snapshot;
        }
        (intake.epoch, intake.to, intake.stored) = (answer.to.epoch, answer.to.serial, cursor);
        (intake.held, intake.in_part, intake.id) = (held, missing.is_some(), id);
        if part.is_some() {
            let now_ms = clock::now_ms();
            intake.released = self.blocking(move |it, of| it.released(of, now_ms)).await?;
        }
        intake.confirmed |= part.as_ref().is_some_and(|it| it.is_new);
        intake.part = part;
        intake.url = response.url.to_string();
        intake.tally = std::mem::take(tally);
        // The source chooses this number freely, and all sources' schedules depend on it.
        summary.objects = answer.objects.min(self.limits.records_max);
        summary.version = answer.to;
        let outcome = self.transfer(&mut response, intake, tally).await;
        summary.bytes += response.received();
        outcome?;
        if let Some(missing) = missing {
            return Err(missing);
        }
        Ok(if answer.kind == Kind::Snapshot { Next::Again } else { Next::Done })
    }

    /// Refuses a replica that lags behind what another one has sent.
    fn refuse_behind(
        &self,
        response: &Response,
        answer: Answer,
        cursor: Option<&Cursor>,
    ) -> Result<(), Error> {
        let (at, epoch) = (answer.to.serial, answer.to.epoch);
        match cursor.filter(|it| self.is_replica && it.epoch == epoch && at < it.serial) {
            Some(Cursor { serial, .. }) => {
                let what = format!("it lags behind: it is at serial {at}, another one at {serial}");
                Err(self.feed.no_feed(&response.url, what))
            }
            None => Ok(()),
        }
    }

    fn request(
        &self,
        cursor: Option<&Cursor>,
        (wait, deadline): (Duration, Instant),
        summary: &Summary,
    ) -> Request {
        let progress = cursor.and_then(|it| it.snapshot.as_ref());
        let known = progress.filter(|it| it.is_in_part());
        let progress = cursor.and_then(Cursor::fetching);
        let path = match progress {
            Some(progress) => format!("snapshot/{}", progress.id),
            None if known.is_some() => self.feed.path(None, wait),
            None => self.feed.path(cursor.map(Cursor::version), wait),
        };
        let total = deadline.saturating_duration_since(clock::monotonic());
        let mut request = self.feed.get(&path, wait, total);
        if let Some(progress) = progress.filter(|it| it.offset != 0) {
            request = request
                .header(header::RANGE, value(format!("bytes={}-", progress.offset)))
                .header(header::IF_RANGE, value(format!("\"{}\"", progress.id)));
        }
        if let Some(part) = cursor.and_then(|it| it.part.as_ref()) {
            request = request.header(wire::VIEW, value(&part.name));
        }
        if let Some(known) = known {
            // The snapshot fetched before may still be the newest.
            request = request.header(header::IF_NONE_MATCH, value(format!("\"{}\"", known.id)));
        }
        request.response_bytes_max = Some(self.limits.bytes_max.saturating_sub(summary.bytes));
        request
    }

    /// Notes the key that the source names as its own: its notices are recognized by it. Returns
    /// who it is, if its id is made of the key.
    fn note_key(&self, response: &Response, summary: &mut Summary) -> Option<Owner> {
        let proof = response.header(wire::SITE.as_str());
        let owner = self.note_owner(response.header(wire::KEY.as_str()), proof);
        summary.is_elsewhere = proof.is_some() && owner.as_ref().is_some_and(|it| !it.is_shown);
        owner
    }

    fn note_owner(&self, owner: Option<&str>, proof: Option<&str>) -> Option<Owner> {
        let (id, key) = owner?.split_once(' ')?;
        self.collection.source_key(&self.feed.source, key);
        // Of several URLs of a source, the one that was asked counts.
        let is_shown = proof.is_some_and(|it| site::is_shown(key, it, &self.feed.base));
        if let Some(proof) = proof.filter(|_| !is_shown) {
            let (source, asked) = (&self.feed.source, &self.feed.base);
            tracing::debug!(%source, %asked, proof, "the feed is not shown to be its owner's own");
        }
        (identity::id_of(key) == id).then(|| Owner { id: id.to_owned(), is_shown })
    }

    fn delta(&self, response: &Response, answer: Answer, have: &Cursor) -> Result<Intake, Error> {
        if (answer.to.epoch, answer.from) != (have.epoch, have.serial)
            || answer.to.serial < have.serial
        {
            let what = format!("the delta does not begin at serial {}, as requested", have.serial);
            return Err(self.feed.no_feed(&response.url, what));
        }
        let mut intake = self.intake(Stream::after(have));
        intake.serial = have.serial;
        Ok(intake)
    }

    fn snapshot(
        &self,
        response: &Response,
        answer: Answer,
        cursor: Option<&Cursor>,
    ) -> Result<Intake, Error> {
        if self.limits.records_max < answer.objects {
            let what = format!("a snapshot of {} objects", answer.objects);
            return Err(self.feed.over_limit(what, "records_max"));
        }
        let progress = cursor.and_then(|it| Some((it, it.fetching()?)));
        if let Some((cursor, progress)) = progress {
            if (cursor.epoch, progress.to) != (answer.to.epoch, answer.to.serial) {
                return Err(self
                    .feed
                    .no_feed(&response.url, "the snapshot has changed".to_owned()));
            }
            let (id, generation) = (progress.id.clone(), progress.generation);
            let offset = progress.offset;
            let mut intake = self.intake(Stream::Snapshot { id, generation, offset });
            intake.serial = cursor.serial;
            if response.status == StatusCode::OK {
                intake.skip = offset;
            } else if range_start(response) != Some(offset) {
                let what = format!("the answer does not begin at byte {offset}, as requested");
                return Err(self.feed.no_feed(&response.url, what));
            }
            return Ok(intake);
        }
        let id = response.url.path_segments().and_then(|mut it| it.next_back()).unwrap_or_default();
        let generation = clock::now_ms().max(1);
        Ok(self.intake(Stream::Snapshot { id: id.to_owned(), generation, offset: 0 }))
    }

    fn intake(&self, stream: Stream) -> Intake {
        let (collection, source) = (self.collection.clone(), self.feed.source.clone());
        let mut intake = Intake::new(collection, source, stream);
        (intake.records_max, intake.confirmed) = (self.limits.records_max, self.confirmed);
        intake
    }

    /// Takes in a body, on a blocking thread; the part before an error is applied.
    async fn transfer(
        &self,
        response: &mut Response,
        intake: Intake,
        tally: &mut Tally,
    ) -> Result<(), Error> {
        let (pieces, waiting) = mpsc::channel(PIECES_AHEAD);
        let worker = spawn_blocking(move || intake.run(waiting));
        let fetched = forward(response, &pieces).await;
        let (found, taken) = joined(worker).await;
        *tally = found;
        self.feed.transferred(&response.url, taken, fetched)
    }

    /// Forgets a source that is at an older epoch than before, if an administrator has confirmed
    /// that: everything of it has to be taken anew.
    async fn forget_newer_epoch(
        &self,
        url: impl ToString,
        epoch_before: Epoch,
        epoch: Epoch,
    ) -> Result<(), Error> {
        if !self.confirmed {
            let (name, url) = (self.feed.source.clone(), url.to_string());
            return Err(Error::EpochBack { name, url, epoch_before, epoch });
        }
        // The versions that the source had before are newer than its present ones, and would win.
        let now = Stamp(clock::now_ms());
        let forget =
            move |collection: &Collection, source: &str| collection.remove_source(source, now);
        self.blocking(forget).await.map(drop)
    }

    async fn cursor(&self) -> Result<Option<Cursor>, Error> {
        self.blocking(Collection::cursor).await
    }

    async fn held(&self) -> Result<u64, Error> {
        self.blocking(Collection::held_by).await
    }

    /// Runs `ask` with the collection and the source's name, on a blocking thread.
    async fn blocking<T: Send + 'static>(
        &self,
        ask: impl FnOnce(&Collection, &str) -> Result<T, Error> + Send + 'static,
    ) -> Result<T, Error> {
        let (collection, source) = (self.collection.clone(), self.feed.source.clone());
        joined(spawn_blocking(move || ask(&collection, &source))).await
    }
}

/// Writes a pull's counts at `now_ms` to its summary; the source held `held` objects before.
fn sum_up(summary: &mut Summary, tally: &Tally, held: u64, now_ms: u64) {
    let age_secs = |stamps_ms: u128, count: u64| match count {
        0 => 0.0,
        count => (now_ms as f64 - stamps_ms as f64 / count as f64) / 1_000.0,
    };
    summary.changes = tally.changes;
    summary.remade = tally.remade;
    summary.age_secs = age_secs(tally.stamps_ms, tally.changes - tally.remade);
    summary.changed = tally.firsts;
    summary.changed_age_secs = age_secs(tally.first_stamps_ms, tally.firsts);
    summary.applied = tally.applied;
    // A source must not get more weight by claiming more objects than it ever sent.
    summary.objects = summary.objects.min(held.saturating_add(tally.records));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_age_of_changes_is_their_mean_and_may_be_negative() {
        let tally = |changes, stamps_ms| Tally { changes, stamps_ms, ..Tally::default() };
        let summed = |tally: Tally| {
            let mut summary = Summary::default();
            sum_up(&mut summary, &tally, 0, 10_000);
            summary
        };
        let age = |tally| summed(tally).age_secs;
        assert!((age(tally(2, 4_000 + 8_000)) - 4.0).abs() < 1e-9);
        assert!((age(tally(1, 11_000)) + 1.0).abs() < 1e-9);
        assert!(age(tally(0, 0)).abs() < 1e-9);
        let firsts = Tally { firsts: 2, first_stamps_ms: 2_000 + 4_000, ..tally(3, 15_000) };
        let summary = summed(firsts);
        assert_eq!((summary.changed, summary.changes), (2, 3));
        assert!((summary.changed_age_secs - 7.0).abs() < 1e-9);
    }
}
