//! A pull in place: reads a replica's log folder instead of a feed.
//!
//! New changes are taken as from a feed, with the same cursor, so a consumer can change from the
//! feed to the replica and back. An interrupted snapshot begins again from its start: reading it
//! costs no other machine anything. What is read here was copied, so it shows nobody as its owner:
//! its deletes are its gatherer's only as long as no other source says to be that gatherer.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use bytes::Bytes;
use net::clock;
use tokio::sync::mpsc;
use tokio::task::spawn_blocking;
use tokio::time::sleep;

use super::intake::{Intake, Stream, Tally};
use super::{FRUITLESS_MAX, Puller, Summary, sum_up};
use crate::error::Error;
use crate::holders::Cursor;
use crate::log::View;
use crate::log::served;
use crate::member;
use crate::replica::Replica;
use crate::wire::client::{Kind, PIECES_AHEAD, Piece, is_transfer_error};
use crate::wire::joined;

/// Time between two checks for a newer version. A check reads one small file.
const POLL_PERIOD: Duration = Duration::from_secs(1);
/// Maximum number of attempts to open a folder, in case it is removed during the opening.
const OPEN_TRIES: u32 = 3;

impl Puller {
    /// Takes the new changes of the log folder that `link` points to; with `wait`, waits up to that
    /// time for them. The future may be dropped at any point. Run only one pull of a source at a
    /// time, as with [`pull`](Self::pull). `summary` gets the outcome, also after an error.
    ///
    /// # Errors
    ///
    /// [`Error::LogFolder`]: there is no replica, or a damaged one: try again when the replica has
    /// been copied. [`Error::OverLimit`], [`Error::Swollen`], [`Error::Loss`],
    /// [`Error::EpochBack`], [`Error::Corrupt`]: as for [`pull`](Self::pull).
    pub async fn pull_in_place(
        &self,
        link: &Path,
        wait: Option<Duration>,
        summary: &mut Summary,
    ) -> Result<(), Error> {
        let until = clock::monotonic() + wait.unwrap_or_default();
        let mut tries = 1;
        loop {
            match self.take_in_place(link, until, summary).await {
                // An earlier pull that was dropped may still have moved the cursor.
                Err(error) if is_transfer_error(&error) && tries < FRUITLESS_MAX => tries += 1,
                taken => return taken,
            }
        }
    }

    async fn take_in_place(
        &self,
        link: &Path,
        until: Instant,
        summary: &mut Summary,
    ) -> Result<(), Error> {
        *summary = Summary::default();
        let mut cursor = self.cursor().await?;
        let replica = self.newer(link, cursor.as_ref(), until).await?;
        let view = replica.view();
        summary.version = view.version;
        let epoch = view.version.epoch;
        if let Some(have) = cursor.as_ref().filter(|it| epoch < it.epoch) {
            self.forget_newer_epoch(link.display(), have.epoch, epoch).await?;
            cursor = None;
        }
        let id = self.note_owner(replica.owner().as_deref(), None);
        let held = self.held().await?;
        if self.limits.records_max < held.max(replica.objects()) {
            return Err(self.feed.over_limit(format!("{held} objects"), "records_max"));
        }
        let mut intake = self.intake_of(&view, cursor.as_ref());
        if let Stream::Snapshot { .. } = intake.stream {
            summary.kind = Kind::Snapshot;
        }
        (intake.epoch, intake.to, intake.stored) = (epoch, view.version.serial, cursor);
        (intake.held, intake.url, intake.id) = (held, link.display().to_string(), id);
        summary.objects = replica.objects().min(self.limits.records_max);
        let (tally, bytes, taken) = read(view, intake).await;
        summary.bytes = bytes;
        sum_up(summary, &tally, held, clock::now_ms());
        taken.map_err(|error| self.feed.corrupt(link.display(), error))
    }

    /// Makes an intake of the changes after the cursor or, if that is unusable, of all changes.
    fn intake_of(&self, view: &View, cursor: Option<&Cursor>) -> Intake {
        let is_read = |it: &&Cursor| it.snapshot.is_none() || it.taken().is_some();
        // Who had a part needs the rest, too.
        let whole = cursor.filter(|it| it.part.is_none());
        if let Some(have) = whole.filter(is_read).filter(|it| view.continues_from(it.version())) {
            let mut intake = self.intake(Stream::after(have));
            intake.serial = have.serial;
            return intake;
        }
        let generation = clock::now_ms().max(1);
        let id = generation.to_string();
        let mut intake = self.intake(Stream::Snapshot { id, generation, offset: 0 });
        intake.is_newest = true;
        intake.begin_after(cursor);
        intake
    }

    /// Opens the folder once it is newer than the cursor, or at `until`.
    async fn newer(
        &self,
        link: &Path,
        cursor: Option<&Cursor>,
        until: Instant,
    ) -> Result<Replica, Error> {
        let known = cursor.filter(|it| it.snapshot.is_none()).map(Cursor::version);
        let newest = |link: &Path| {
            let link = link.to_owned();
            spawn_blocking(move || Replica::reached(&link).ok())
        };
        // Until there are new changes, only `CHAIN` is read: an opening takes longer.
        while known.is_some()
            && clock::monotonic() < until
            && newest(link).await.unwrap_or_default() == known
        {
            sleep(POLL_PERIOD).await;
        }
        let link = link.to_owned();
        joined(spawn_blocking(move || open(&link))).await
    }
}

/// Opens the folder that a link points to now; the link may change at any moment.
fn open(link: &Path) -> Result<Replica, Error> {
    let lead = |_error| Error::LogFolder {
        dir: link.to_owned(),
        what: "it does not exist: the replica has not come yet, or is kept elsewhere".to_owned(),
    };
    let mut tries = 1;
    loop {
        let dir: PathBuf = fs::canonicalize(link).map_err(lead)?;
        match Replica::open(&dir) {
            Err(_) if tries < OPEN_TRIES && !dir.exists() => tries += 1,
            opened => return opened,
        }
    }
}

/// Takes a view's changes after the intake's position; returns the tally and the bytes.
async fn read(view: View, intake: Intake) -> (Tally, u64, Result<(), Error>) {
    let since = match intake.stream {
        Stream::Delta | Stream::Rest(_) => intake.serial,
        Stream::Snapshot { .. } => 0,
    };
    let parts = view.parts(since);
    let tail = Bytes::from(member::end_mark(view.version));
    let length = served::bytes_of(&parts) + tail.len() as u64;
    // All bytes pass through this task. So if it is dropped, the reader and the intake stop, and do
    // not disturb the next pull.
    let (sender, mut pieces) = mpsc::channel(PIECES_AHEAD);
    let reader = spawn_blocking(move || {
        let mut read = served::pieces(&parts, &tail, 0, length);
        while let Some(piece) = read()? {
            if sender.blocking_send(piece).is_err() {
                break;
            }
        }
        Ok::<(), io::Error>(())
    });
    let (to_intake, waiting) = mpsc::channel(PIECES_AHEAD);
    let worker = spawn_blocking(move || intake.run(waiting));
    while let Some(piece) = pieces.recv().await {
        // The intake stops receiving after an error.
        if to_intake.send(Piece::Bytes(piece)).await.is_err() {
            break;
        }
    }
    drop(pieces);
    // If the intake is gone, it has ended already.
    drop(to_intake.send(Piece::End).await);
    let (read, (tally, taken)) = tokio::join!(joined(reader), joined(worker));
    if let (Err(_), Err(cause)) = (&taken, read) {
        tracing::warn!(%cause, "a replica cannot be read to its end");
    }
    (tally, length, taken)
}
