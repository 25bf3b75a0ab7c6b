//! Pushed changes: a part of a source's feed in a notification.
//!
//! Source: Liu et al. §3 (the push model).
//!
//! # Differences from the paper
//!
//! In the paper the data provider remembers each consumer's state, and a consumer takes everything
//! that it sends. Here the consumer's cursor decides: changes after a gap are not taken, and the
//! source is pulled as usual.

use bytes::Bytes;
use net::clock;
use tokio::sync::mpsc;
use tokio::task::spawn_blocking;

use super::intake::Stream;
use super::{Puller, Summary, sum_up};
use crate::change::Version;
use crate::collection::Collection;
use crate::error::Error;
use crate::holders::Cursor;
use crate::log::served;
use crate::member;
use crate::wire::client::Piece;
use crate::wire::joined;

/// A part of a feed: the changes after one serial, up to a version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pushed {
    /// The serial after which the part begins.
    pub from: u64,
    /// The version that the part reaches.
    pub to: Version,
    /// Live objects at the source.
    pub objects: u64,
    /// The members, and the end mark.
    pub members: Bytes,
}

impl Pushed {
    /// Returns whether the part begins at the cursor and has new changes.
    fn follows(&self, cursor: &Cursor) -> bool {
        let known = cursor.epoch == self.to.epoch && cursor.snapshot.is_none();
        known && self.from == cursor.serial && cursor.serial < self.to.serial
    }
}

impl Collection {
    /// Returns the changes since `have`, as a feed would send them; `None` if the feed would send a
    /// snapshot, or if the changes exceed `bytes_max` bytes. Blocks.
    ///
    /// # Errors
    ///
    /// A segment cannot be read, or is damaged.
    pub fn changes_since(&self, have: Version, bytes_max: u64) -> Result<Option<Pushed>, Error> {
        let view = self.inner.log.view();
        if !view.continues_from(have) {
            return Ok(None);
        }
        view.is_sound(have.serial)?;
        let parts = view.parts(have.serial);
        let tail = Bytes::from(member::end_mark(view.version));
        let length = served::bytes_of(&parts) + tail.len() as u64;
        if bytes_max < length {
            return Ok(None);
        }
        let mut members = Vec::with_capacity(usize::try_from(length).unwrap_or(0));
        let mut pieces = served::pieces(&parts, &tail, 0, length);
        let failed = |error| Error::io("cannot read a segment in", &self.inner.dir, error);
        while let Some(piece) = pieces().map_err(failed)? {
            members.extend_from_slice(&piece);
        }
        let (from, to, objects) = (have.serial, view.version, self.len());
        Ok(Some(Pushed { from, to, objects, members: members.into() }))
    }
}

impl Puller {
    /// Takes pushed changes if they begin at the cursor; returns whether they do. As with
    /// [`pull`](Self::pull), only one call for a source at a time. `summary` gets the outcome.
    ///
    /// # Errors
    ///
    /// Those of [`pull`](Self::pull), except transfer errors; the good part is kept.
    pub async fn take(&self, pushed: &Pushed, summary: &mut Summary) -> Result<bool, Error> {
        *summary = Summary::default();
        let cursor = self.cursor().await?;
        let Some(have) = cursor.filter(|it| pushed.follows(it)) else { return Ok(false) };
        let held = self.held().await?;
        if self.limits.records_max < held {
            return Err(self.feed.over_limit(format!("{held} objects"), "records_max"));
        }
        let mut intake = self.intake(Stream::Delta);
        intake.serial = have.serial;
        (intake.epoch, intake.to) = (pushed.to.epoch, pushed.to.serial);
        (intake.stored, intake.held) = (Some(have), held);
        intake.url = self.feed.base.to_string();
        let (pieces, waiting) = mpsc::channel(2);
        for piece in [Piece::Bytes(pushed.members.clone()), Piece::End] {
            // The channel has room for both pieces.
            drop(pieces.try_send(piece));
        }
        let (tally, taken) = joined(spawn_blocking(move || intake.run(waiting))).await;
        summary.objects = pushed.objects.min(self.limits.records_max);
        summary.version = pushed.to;
        summary.bytes = pushed.members.len() as u64;
        sum_up(summary, &tally, held, clock::now_ms());
        taken.map(|()| true).map_err(|error| self.feed.corrupt(&self.feed.base, error))
    }
}
