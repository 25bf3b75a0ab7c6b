//! The entry points of fuzz targets; compiled only by `cargo fuzz`, which sets `cfg(fuzzing)`.

use std::path::Path;

use bytes::Bytes;
use disk::Disk;
use soif::Record;
use tokio::sync::mpsc;

use crate::change::{Batch, Change, GATHERER_ID, Stamp, Version};
use crate::collection::Collection;
use crate::error::Error;
use crate::log::served;
use crate::member;
use crate::options::Options;
use crate::pull::intake::{Intake, Stream};
use crate::replica::CHAIN;
use crate::replica::writer::{self as log, Writer};
use crate::wire::client::Piece;

/// The source's name in [`take_in`].
pub const SOURCE: &str = "source";

/// Takes in `pieces` as the stream of [`SOURCE`] up to `to`: as a snapshot of the generation
/// `snapshot`, if one is given, otherwise as a delta. Blocks: do not call it from async code.
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
        // The channel has room for all pieces.
        drop(sender.try_send(piece));
    }
    intake.run(waiting).1
}

/// Makes a log folder of a few objects in `dir`. Returns its `CHAIN`, and its files in the order in
/// which `CHAIN` names them.
pub fn log_folder(dir: &Path) -> Result<(Vec<u8>, Vec<Vec<u8>>), Error> {
    let options = Options { member_bytes_max: 256, ..Options::default() };
    let (collection, _) = Collection::open(&dir.join("collection"), options, Stamp(5))?;
    let log = dir.join("log");
    let mut writer = Writer::open(&Disk::System, &log)?;
    let mut since = 0;
    for round in 0..3_u64 {
        for n in 0..4_u64 {
            let mut record = Record::new("FILE", format!("http://h/{n}"));
            record.push(GATHERER_ID, "g");
            record.push("Round", round.to_string());
            let changes = vec![Change::Update(record)];
            collection.commit(Batch { changes, notes: Vec::new() }, Stamp(6 + round))?;
        }
        let view = collection.inner.log.view();
        let (parts, to) = (view.parts(since), view.version);
        let tail = Bytes::from(member::end_mark(to));
        let length = served::bytes_of(&parts) + tail.len() as u64;
        let mut pieces = served::pieces(&parts, &tail, 0, length);
        // The channel has room for all pieces of so few changes.
        let (sender, waiting) = mpsc::channel(16);
        while let Ok(Some(piece)) = pieces() {
            drop(sender.try_send(Piece::Bytes(piece)));
        }
        drop(sender.try_send(Piece::End));
        let life = (round == 0).then_some(7);
        writer.take(
            &log::Stream { life, to, objects: collection.len(), owner: None, purged: 0 },
            waiting,
        )?;
        since = to.serial;
    }
    let read = |name: &str| std::fs::read(log.join(name)).unwrap_or_default();
    let files = writer.chain().map(|it| it.files.clone()).unwrap_or_default();
    Ok((read(CHAIN), files.iter().map(|it| read(&it.name())).collect()))
}
