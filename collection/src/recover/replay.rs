//! Replay: brings the key index up to date with the log after a stop, or rebuilds it.
//!
//! Source: docs/collection.md, "The key index".

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use disk::Disk;

use crate::change::{Note, Scanned};
use crate::error::Error;
use crate::keys::{Keys, Watermark};
use crate::log::segment::{Entry, Segment};
use crate::log::{Log, Tail, View};
use crate::member::{MEMBER_BYTES_MAX, Unpacker};
use crate::options::Options;

/// Name of the key index's directory inside the collection's.
pub(crate) const KEYS: &str = "keys";
/// Number of keys at which a replay writes a batch.
const BATCH_KEYS: usize = 20_000;

/// A key index that agrees with the log.
#[derive(Debug)]
pub(crate) struct Indexed {
    pub(crate) keys: Keys,
    pub(crate) live: u64,
    pub(crate) replayed: u64,
    /// The reason for a rebuild; `None` if there was none.
    pub(crate) rebuilt: Option<String>,
}

/// Opens the key index in `dir`, in its last durable state; the error says why to rebuild it.
pub(crate) fn existing(disk: &Disk, dir: &Path, options: &Options) -> Result<Keys, String> {
    let path = dir.join(KEYS);
    if !path.exists() {
        return Err("it is missing".to_owned());
    }
    // sled panics on some damage.
    match catch_unwind(AssertUnwindSafe(|| Keys::open(disk, &path, options))) {
        Ok(Ok(keys)) if keys.watermark().is_none() => Err("it has no watermark".to_owned()),
        Ok(opened) => opened.map_err(|error| error.to_string()),
        Err(_panic) => Err("sled cannot read it".to_owned()),
    }
}

/// Brings the key index in `dir` up to date with the log; rebuilds it if it is missing or unusable.
/// Damaged members that the index had not reached are left out, and the loss is noted first.
///
/// # Errors
///
/// [`Error::Keys`]: a new index cannot be built either. Otherwise the errors of the log.
pub(crate) fn open_keys(
    dir: &Path,
    options: &Options,
    log: &Log,
    tail: &mut Tail,
    existing: Result<Keys, String>,
) -> Result<Indexed, Error> {
    let view = log.view();
    let commit = tail.commit;
    let tail = Mutex::new(tail);
    let note_loss =
        |_damage: Error| tail.lock().unwrap_or_else(PoisonError::into_inner).note_loss(log);
    let why = match existing
        .map_err(CatchUpError::Keys)
        .and_then(|keys| catch_up(keys, dir, &view, &note_loss))
    {
        Ok((keys, replayed)) => {
            let live = keys.watermark().unwrap_or_default().live;
            return Ok(Indexed { keys, live, replayed, rebuilt: None });
        }
        Err(CatchUpError::Log(error)) => return Err(error),
        // A new log has no index yet: that is not reported as a rebuild.
        Err(CatchUpError::Keys(why)) => (commit != 0).then_some(why),
    };
    let (keys, live) = fresh_keys(&log.disk, (dir, KEYS), options, &view, &note_loss, &|| Ok(()))?;
    Ok(Indexed { keys, live, replayed: 0, rebuilt: why })
}

/// Decides about a damaged member or a hole in a replay: after an error the replay fails with it,
/// after `Ok` it goes on without the member.
pub(crate) type OnDamage<'a> = &'a dyn Fn(Error) -> Result<(), Error>;

pub(crate) fn fail(damage: Error) -> Result<(), Error> {
    Err(damage)
}

/// A check at every step; its error ends the work.
pub(crate) type CheckOpen<'a> = &'a dyn Fn() -> Result<(), Error>;

/// The reason why an index cannot be brought up to date.
enum CatchUpError {
    Keys(String),
    Log(Error),
}

fn catch_up(
    keys: Keys,
    dir: &Path,
    view: &View,
    on_damage: OnDamage<'_>,
) -> Result<(Keys, u64), CatchUpError> {
    let unusable = |why: &str| CatchUpError::Keys(why.to_owned());
    let watermark = keys.watermark().unwrap_or_default();
    if watermark.epoch != view.version.epoch {
        return Err(unusable("it is of another epoch"));
    }
    if watermark.commit < view.compacted {
        return Err(unusable("the log has been compacted since"));
    }
    let caught_up = || replay(&keys, dir, view, watermark, on_damage, &|| Ok(()));
    match catch_unwind(AssertUnwindSafe(caught_up)) {
        Ok(Ok(replayed)) => Ok((keys, replayed)),
        Ok(Err(error)) => match error.keys_error() {
            Some(source) => Err(unusable(&source.to_string())),
            None => Err(CatchUpError::Log(error)),
        },
        Err(_panic) => Err(unusable("sled cannot read it")),
    }
}

/// Builds a key index in the directory `name` of `dir`, which is removed first; returns it and the
/// number of live objects. A failure removes the directory. After a stop it stays, and the next
/// opening continues from its state.
pub(crate) fn fresh_keys(
    disk: &Disk,
    (dir, name): (&Path, &str),
    options: &Options,
    view: &View,
    on_damage: OnDamage<'_>,
    check_open: CheckOpen<'_>,
) -> Result<(Keys, u64), Error> {
    let path = dir.join(name);
    let failed = |source| Error::keys(path.clone(), source);
    Keys::remove(&path).map_err(failed)?;
    let make = || {
        let keys = Keys::open(disk, &path, options).map_err(failed)?;
        let start = Watermark { epoch: view.version.epoch, ..Watermark::default() };
        replay(&keys, dir, view, start, on_damage, check_open)?;
        keys.flush().map_err(failed)?;
        let live = keys.watermark().unwrap_or_default().live;
        Ok((keys, live))
    };
    make().inspect_err(|error| {
        if !matches!(error, Error::Stopped { .. }) {
            // The index is unusable, and the disk may be full.
            let _ = Keys::remove(&path);
        }
    })
}

/// Brings an index up to date with the log, which must not have been compacted since the index was
/// built; returns the number of live objects.
pub(crate) fn follow(
    keys: &Keys,
    dir: &Path,
    view: &View,
    check_open: CheckOpen<'_>,
) -> Result<u64, Error> {
    let from = keys.watermark().unwrap_or_default();
    replay(keys, dir, view, from, &fail, check_open)?;
    Ok(keys.watermark().unwrap_or_default().live)
}

/// Indexes the commits after the watermark; returns the number of their changes.
fn replay(
    keys: &Keys,
    dir: &Path,
    view: &View,
    from: Watermark,
    on_damage: OnDamage<'_>,
    check_open: CheckOpen<'_>,
) -> Result<u64, Error> {
    let failed = |source| Error::keys(dir.join(KEYS), source);
    if view.missing.iter().any(|it| from.commit < it.commit) {
        on_damage(view.gap())?;
    }
    let epoch = view.version.epoch;
    let mut unpacker = Unpacker::new(MEMBER_BYTES_MAX);
    let mut writes = keys.writes();
    let mut done = from;
    let mut replayed = 0;
    for segment in &view.segments {
        for entry in after(segment, from.commit) {
            if let Err(stopped) = check_open() {
                // The next opening continues from this state.
                keys.flush().map_err(failed)?;
                return Err(stopped);
            }
            if done.commit < entry.commit && BATCH_KEYS <= writes.len() {
                writes.commit(epoch, done.commit, done.serial);
                keys.maintain(&|| check_open().is_ok()).map_err(failed)?;
                writes = keys.writes();
            }
            let (changes, notes) = match content(segment, &entry, &mut unpacker) {
                Err(damage @ Error::Damaged { .. }) => {
                    on_damage(damage)?;
                    Default::default()
                }
                content => content?,
            };
            for scanned in changes {
                writes.change(scanned.serial, scanned.stamp, &scanned.change).map_err(failed)?;
                replayed += 1;
            }
            for note in notes {
                writes.note(&note).map_err(failed)?;
            }
            done.commit = entry.commit;
            done.serial = entry.last;
        }
    }
    // Compaction may have dropped all of the last commit.
    let missing = view.missing.iter().map(|it| it.commit).max().unwrap_or(0);
    let commit = done.commit.max(view.compacted).max(missing);
    let serial = done.serial.max(view.version.serial);
    writes.commit(epoch, commit, serial);
    keys.maintain(&|| check_open().is_ok()).map_err(failed)?;
    Ok(replayed)
}

fn content(
    segment: &Segment,
    entry: &Entry,
    unpacker: &mut Unpacker,
) -> Result<(Vec<Scanned>, Vec<Note>), Error> {
    let member = segment.read(entry, unpacker)?;
    let damaged = |what| segment.fault(entry, what);
    Ok((member.changes().map_err(damaged)?, member.notes().map_err(damaged)?))
}

fn after(segment: &Segment, commit: u64) -> Vec<Entry> {
    segment.entries().iter().filter(|it| commit < it.commit).copied().collect()
}
