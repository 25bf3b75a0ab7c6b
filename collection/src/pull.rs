//! Pulling a source: the client of [`feed`](crate::feed).
//!
//! A pull asks for what is newer than its cursor and applies it as it comes, cursor included, so
//! that it can end anywhere, by a kill too, and the next one goes on without losing or repeating a
//! change: deltas by serial, snapshots by byte range under their ETag. A snapshot is applied under
//! a generation of its own. After it the pull asks for what has happened meanwhile, and at the end mark of that,
//! and not before, what neither has named is released: a snapshot may be older than what was taken before it.
//!
//! A stream that breaks off or does not match its checksums is fetched again from the last good
//! member on; if that brings nothing twice more, the error names source and offset.
//!
//! A source that has a hole in its log tells what comes before it, or a snapshot without it. That is taken
//! in, releases nothing, and the source stays due for the rest ([`Error::Missing`]).
//!
//! What a source may bring, and take away, is bounded: [`PullLimits`], [`restraint`](crate::restraint).
//!
//! Source: DESIGN.md, "Feed", "Snapshot" and "Cursors".

mod firsts;
mod in_place;
pub(crate) mod intake;
mod pushed;

use std::time::{Duration, Instant};

use http::{StatusCode, header};
use net::client::{Request, Response};
use net::clock;
use tokio::sync::mpsc;
use tokio::time::sleep;
use url::Url;

use crate::change::{Epoch, Stamp, Version};
use crate::collection::Collection;
use crate::error::{Damage, Error};
use crate::holders::{Cursor, Progress};
use crate::report::Applied;
use crate::wire::asking::{Answer, forward, is_of_transfer, range_start};
use crate::wire::{self, value};

pub use crate::wire::asking::{Asking, Kind, PullLimits};
use intake::{Intake, Stream, Tally};
pub use pushed::Pushed;

/// Pieces of a body that wait to be taken in; each is at most 256 KiB.
const PIECES_AHEAD: usize = 4;

/// So many attempts in a row that bring nothing end a pull.
const FRUITLESS_MAX: u32 = 3;

/// Requests of one pull.
const REQUESTS_MAX: u32 = 10_000;

/// Snapshots, begun or ended, of one pull.
const SNAPSHOTS_MAX: u32 = 16;

/// Pause before an attempt after a fruitless one; longer after each.
const PAUSE: Duration = Duration::from_millis(200);

/// What a pull did.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Summary {
    /// Whether a snapshot was among the answers.
    pub kind: Kind,
    /// Updates and deletes that came.
    pub changes: u64,
    /// Their mean age when the pull ended, in seconds, by the source's stamps and our clock; 0 if
    /// there were none, below 0 if the clocks differ.
    pub age_secs: f64,
    /// Objects that changed: of several changes of one, the first counts. 0 of a snapshot.
    pub changed: u64,
    /// The mean time since then, in seconds, as `age_secs`.
    pub changed_age_secs: f64,
    /// Bytes of the bodies, compressed as they are.
    pub bytes: u64,
    /// Live objects at the source, as it says; at most as many as it may bring, and as it held here
    /// before together with what it brought. 0 before it said.
    pub objects: u64,
    /// The source's version that was reached; of a pull that failed, that it was to reach.
    pub version: Version,
    /// How often the pull went on after a break.
    pub resumed: u32,
    /// What it did to the collection.
    pub applied: Applied,
}

/// Pulls one source into a collection.
#[derive(Clone, Debug)]
pub struct Puller {
    ask: Asking,
    collection: Collection,
    limits: PullLimits,
    confirmed: bool,
}

/// What to do after a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Next {
    Done,
    /// Ask for what is newer.
    Again,
    /// The snapshot is gone: ask for another.
    Anew,
}

impl Puller {
    /// Returns a puller of what `ask` asks into `collection`.
    #[must_use]
    pub fn new(ask: Asking, collection: Collection, limits: PullLimits) -> Self {
        let ask = Asking { bytes_max: limits.bytes_max, ..ask };
        Self { ask, collection, limits, confirmed: false }
    }

    /// Sets whether an administrator has confirmed that the source may lose most of what it brought,
    /// or be at an older epoch than before.
    #[must_use]
    pub fn confirmed(mut self, confirmed: bool) -> Self {
        self.confirmed = confirmed;
        self
    }

    /// Pulls what is new. With `wait`, a source that has nothing new holds its answer for so long
    /// (whole seconds, at most 60). May be dropped at any point; one pull of a source at a time.
    ///
    /// # Errors
    ///
    /// [`Error::Source`], [`Error::Missing`], [`Error::Corrupt`]: try again later; what came is kept.
    /// [`Error::NotAFeed`], [`Error::Format`], [`Error::OverLimit`], [`Error::Swollen`]: something must
    /// be changed by hand. [`Error::Loss`], [`Error::EpochBack`]: look at the source, and pull
    /// [`confirmed`](Self::confirmed) if that is meant. Any other: the collection's own.
    pub async fn pull(&self, wait: Option<Duration>) -> Result<Summary, Error> {
        let mut summary = Summary::default();
        self.pull_into(wait, &mut summary).await?;
        Ok(summary)
    }

    /// The same; `summary` says what came, also of a pull that fails. Of one that is dropped it leaves
    /// out the answer that was being taken in.
    ///
    /// # Errors
    ///
    /// Those of [`pull`](Self::pull).
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
            return Err(self.ask.over_limit(format!("{held} objects"), "records_max"));
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
                Err(error) if !is_of_transfer(&error) => return Err(error),
                Err(error) => error,
            };
            fruitless = if self.cursor().await? == before { fruitless + 1 } else { 0 };
            if FRUITLESS_MAX <= fruitless {
                return Err(error);
            }
            tracing::info!(source = %self.ask.source, %error, "a pull goes on after a break");
            summary.resumed += 1;
            wait = Duration::ZERO;
            sleep(PAUSE * fruitless).await;
        }
        Err(self.ask.no_feed(&self.ask.base, "it keeps us asking".to_owned()))
    }

    /// Makes one request and takes in its answer.
    async fn step(
        &self,
        (cursor, held): (Option<Cursor>, u64),
        times: (Duration, Instant),
        anew: bool,
        summary: &mut Summary,
        tally: &mut Tally,
    ) -> Result<Next, Error> {
        let known = cursor.clone().filter(|_| !anew);
        let response = self.ask.client.send(self.request(known.as_ref(), times, summary)).await;
        let mut response = response.map_err(|error| self.ask.failed(error))?;
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
            _ => return Err(self.ask.refused(response).await),
        }
        let (answer, missing) = (self.ask.answer(&response)?, self.ask.missing(&response));
        if let Some(have) = cursor.as_ref().filter(|it| answer.to.epoch < it.epoch) {
            return self.go_back(&response.url, have.epoch, answer.to.epoch).await;
        }
        self.note_key(&response);
        let mut intake = match (answer.kind, &known) {
            (Kind::Delta, Some(have)) => self.delta(&response, answer, have)?,
            (Kind::Delta, None) => {
                return Err(self.ask.no_feed(&response.url, "a delta to nothing".to_owned()));
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
        (intake.held, intake.confirmed) = (held, self.confirmed);
        intake.url = response.url.to_string();
        intake.go_on_from(std::mem::take(tally));
        intake.records_max = self.limits.records_max;
        intake.in_part = missing.is_some();
        // Just a number that it says: schedules are made by it, those of other sources too.
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
            None if known.is_some() => Asking::path(None, wait),
            None => {
                let have = cursor.map(|it| Version { epoch: it.epoch, serial: it.serial });
                Asking::path(have, wait)
            }
        };
        let total = deadline.saturating_duration_since(clock::monotonic());
        let mut request = self.ask.get(&path, wait, total);
        if let Some(progress) = progress.filter(|it| it.offset != 0) {
            request = request
                .header(header::RANGE, value(format!("bytes={}-", progress.offset)))
                .header(header::IF_RANGE, value(format!("\"{}\"", progress.id)));
        }
        if let Some(known) = known {
            // It may still be the newest.
            request = request.header(header::IF_NONE_MATCH, value(format!("\"{}\"", known.id)));
        }
        request.response_bytes_max = Some(self.limits.bytes_max.saturating_sub(summary.bytes));
        request
    }

    /// Notes which key the source says is its own: what it signs is known by it.
    fn note_key(&self, response: &Response) {
        self.note_owner(response.headers.get(wire::KEY).and_then(|it| it.to_str().ok()));
    }

    fn note_owner(&self, owner: Option<&str>) {
        if let Some((_id, key)) = owner.and_then(|it| it.split_once(' ')) {
            self.collection.source_key(&self.ask.source, key);
        }
    }

    fn delta(&self, response: &Response, answer: Answer, have: &Cursor) -> Result<Intake, Error> {
        if (answer.to.epoch, answer.from) != (have.epoch, have.serial)
            || answer.to.serial < have.serial
        {
            let what = format!("we asked for what follows {} and got another delta", have.serial);
            return Err(self.ask.no_feed(&response.url, what));
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
            return Err(self.ask.over_limit(what, "records_max"));
        }
        let progress = cursor.and_then(|it| Some((it, it.fetching()?)));
        if let Some((cursor, progress)) = progress {
            if (cursor.epoch, progress.to) != (answer.to.epoch, answer.to.serial) {
                return Err(self.ask.no_feed(&response.url, "the snapshot has changed".to_owned()));
            }
            let (id, generation) = (progress.id.clone(), progress.generation);
            let offset = progress.offset;
            let mut intake = self.intake(Stream::Snapshot { id, generation, offset });
            intake.serial = cursor.serial;
            if response.status == StatusCode::OK {
                intake.skip = offset;
            } else if range_start(response) != Some(offset) {
                let what = format!("we asked for what follows byte {offset} and got another part");
                return Err(self.ask.no_feed(&response.url, what));
            }
            return Ok(intake);
        }
        let id = response.url.path_segments().and_then(|mut it| it.next_back()).unwrap_or_default();
        let generation = clock::now_ms().max(1);
        Ok(self.intake(Stream::Snapshot { id: id.to_owned(), generation, offset: 0 }))
    }

    fn intake(&self, stream: Stream) -> Intake {
        Intake::new(self.collection.clone(), self.ask.source.clone(), stream)
    }

    /// Takes in a body, off the async threads; what came before an error is applied.
    async fn transfer(
        &self,
        response: &mut Response,
        intake: Intake,
        tally: &mut Tally,
    ) -> Result<(), Error> {
        let (pieces, waiting) = mpsc::channel(PIECES_AHEAD);
        let worker = tokio::task::spawn_blocking(move || intake.run(waiting));
        let fetched = forward(response, &pieces).await;
        let (found, taken) = match worker.await {
            Ok(done) => done,
            Err(panic) => std::panic::resume_unwind(panic.into_panic()),
        };
        *tally = found;
        match (taken, fetched) {
            (Ok(()), _) => Ok(()),
            // Cut short because the transfer broke off: that is the reason to name.
            (Err(Error::Stream { what: Damage::Truncated, .. }), Err(error)) => {
                Err(self.ask.failed(error))
            }
            (Err(Error::Stream { offset, what }), _) => {
                let url = response.url.to_string();
                Err(Error::Corrupt { name: self.ask.source.clone(), url, offset, what })
            }
            (Err(error), _) => Err(error),
        }
    }

    /// Has a source that is at an older epoch read anew, if that is confirmed.
    async fn go_back(&self, url: &Url, known: Epoch, told: Epoch) -> Result<Next, Error> {
        if !self.confirmed {
            let (name, url) = (self.ask.source.clone(), url.to_string());
            return Err(Error::EpochBack { name, url, known, told });
        }
        // What it says now is older than what it said: of the two the newer would win.
        let now = Stamp(clock::now_ms());
        self.blocking(move |collection, source| collection.remove_source(source, now)).await?;
        Ok(Next::Anew)
    }

    async fn cursor(&self) -> Result<Option<Cursor>, Error> {
        self.blocking(Collection::cursor).await
    }

    async fn held(&self) -> Result<u64, Error> {
        self.blocking(Collection::held_by).await
    }

    /// Asks the collection about the source, off the async threads.
    async fn blocking<T: Send + 'static>(
        &self,
        ask: impl FnOnce(&Collection, &str) -> Result<T, Error> + Send + 'static,
    ) -> Result<T, Error> {
        let (collection, source) = (self.collection.clone(), self.ask.source.clone());
        match tokio::task::spawn_blocking(move || ask(&collection, &source)).await {
            Ok(answer) => answer,
            Err(panic) => std::panic::resume_unwind(panic.into_panic()),
        }
    }
}

/// Writes down what a pull has brought by `now_ms` of a source that held so many objects before.
fn sum_up(summary: &mut Summary, tally: &Tally, held: u64, now_ms: u64) {
    let age_secs = |stamps_ms: u128, count: u64| match count {
        0 => 0.0,
        count => (now_ms as f64 - stamps_ms as f64 / count as f64) / 1_000.0,
    };
    summary.changes = tally.changes;
    summary.age_secs = age_secs(tally.stamps_ms, tally.changes);
    summary.changed = tally.firsts;
    summary.changed_age_secs = age_secs(tally.first_stamps_ms, tally.firsts);
    summary.applied = tally.applied;
    // A source that says that it holds more than it ever brought would have a weight that it has not.
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
