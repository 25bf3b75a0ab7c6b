//! A way in for fuzz targets; compiled for nothing else (`cargo fuzz` sets `cfg(fuzzing)`).

use bytes::Bytes;
use tokio::sync::mpsc;

use crate::change::Version;
use crate::collection::Collection;
use crate::error::Error;
use crate::intake::{Intake, Piece, Stream};

/// The name under which [`take_in`] takes in.
pub const SOURCE: &str = "source";

/// Takes in `pieces` as what a source has sent to bring [`SOURCE`] to `to`: as a snapshot of that
/// generation, or else as a delta. Blocks; not from async code.
///
/// # Errors
///
/// Those of a pull.
pub fn take_in(
    collection: &Collection,
    snapshot: Option<u64>,
    to: Version,
    pieces: &[&[u8]],
) -> Result<(), Error> {
    let cursor = collection.cursor(SOURCE)?;
    let stream = snapshot.map_or(Stream::Delta, |generation| Stream::Snapshot {
        id: generation.to_string(),
        generation,
        offset: 0,
    });
    let mut intake = Intake::new(collection.clone(), SOURCE.to_owned(), stream);
    (intake.epoch, intake.to) = (to.epoch, to.serial);
    if let (None, Some(cursor)) = (snapshot, &cursor) {
        intake.serial = cursor.serial;
    }
    intake.begin_after(cursor.as_ref());
    intake.stored = cursor;
    let (sender, waiting) = mpsc::channel(pieces.len() + 1);
    let bytes = pieces.iter().map(|piece| Piece::Bytes(Bytes::copy_from_slice(piece)));
    for piece in bytes.chain([Piece::End]) {
        // There is room for all of them.
        drop(sender.try_send(piece));
    }
    intake.run(waiting).1
}
