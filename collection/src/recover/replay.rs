//! Bringing the key index up to the log: by the tail after a stop, as a whole if it is of no use.
//!
//! Source: DESIGN.md, "Keys".

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

/// The key index's directory in that of the collection.
pub(crate) const KEYS: &str = "keys";
/// A replay writes a batch once it has so many keys.
const BATCH_KEYS: usize = 20_000;

/// A key index that agrees with the log.
#[derive(Debug)]
pub(crate) struct Indexed {
    pub(crate) keys: Keys,
    pub(crate) live: u64,
    /// Changes replayed.
    pub(crate) replayed: u64,
    /// Why it was made anew.
    pub(crate) rebuilt: Option<String>,
}

/// Opens the key index that is in `dir`, as it was last made durable; or says why that is of no use.
///
/// # Errors
///
/// Why it has to be made anew.
pub(crate) fn existing(disk: &Disk, dir: &Path, options: &Options) -> Result<Keys, String> {
    let path = dir.join(KEYS);
    if !path.exists() {
        return Err("it is missing".to_owned());
    }
    let (table, ttl) = (options.keys_table_bytes_max, options.ttl_default_ms());
    // sled panics on some damage.
    match catch_unwind(AssertUnwindSafe(|| Keys::open(disk, &path, table, ttl))) {
        Ok(Ok(keys)) if keys.watermark().is_none() => Err("it has no watermark".to_owned()),
        Ok(opened) => opened.map_err(|error| error.to_string()),
        Err(_panic) => Err("sled cannot read it".to_owned()),
    }
}

/// Brings the key index in `dir` up to the log; makes it anew if there is none, or it is of no use. What
/// is damaged is left out: where the index had not come so far, that is noted first.
///
/// # Errors
///
/// [`Error::Keys`]: not even a new one works. The log's.
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
    let lose = |_damage: Error| tail.lock().unwrap_or_else(PoisonError::into_inner).lose(log);
    let why =
        match existing.map_err(Useless::Keys).and_then(|keys| catch_up(keys, dir, &view, &lose)) {
            Ok((keys, replayed)) => {
                let live = keys.watermark().unwrap_or_default().live;
                return Ok(Indexed { keys, live, replayed, rebuilt: None });
            }
            Err(Useless::Log(error)) => return Err(error),
            // There is none yet beside a new log, which is nothing to tell.
            Err(Useless::Keys(why)) => (commit != 0).then_some(why),
        };
    let (keys, live) = fresh_keys(&log.disk, dir, options, &view, &lose, &|| Ok(()))?;
    Ok(Indexed { keys, live, replayed: 0, rebuilt: why })
}

/// Asked what becomes of a replay that meets a damaged member or a hole: it fails with the error that is
/// returned, or goes on as if the member were not there.
pub(crate) type OnDamage<'a> = &'a dyn Fn(Error) -> Result<(), Error>;

/// The replay fails.
pub(crate) fn fail(damage: Error) -> Result<(), Error> {
    Err(damage)
}

/// Asked at every step whether to go on; its error ends the work.
pub(crate) type GoOn<'a> = &'a dyn Fn() -> Result<(), Error>;

/// Why an index cannot be caught up.
enum Useless {
    Keys(String),
    Log(Error),
}

fn catch_up(
    keys: Keys,
    dir: &Path,
    view: &View,
    on_damage: OnDamage<'_>,
) -> Result<(Keys, u64), Useless> {
    let useless = |why: &str| Useless::Keys(why.to_owned());
    let watermark = keys.watermark().unwrap_or_default();
    if watermark.epoch != view.version.epoch {
        return Err(useless("it is of another epoch"));
    }
    if watermark.commit < view.compacted {
        return Err(useless("the log has been compacted since"));
    }
    let caught_up = || replay(&keys, dir, view, watermark, on_damage, &|| Ok(()));
    match catch_unwind(AssertUnwindSafe(caught_up)) {
        Ok(Ok(replayed)) => Ok((keys, replayed)),
        Ok(Err(error)) => match error.of_keys() {
            Some(source) => Err(useless(&source.to_string())),
            None => Err(Useless::Log(error)),
        },
        Err(_panic) => Err(useless("sled cannot read it")),
    }
}

/// Makes the key index in `dir` anew; returns it and the number of live objects.
///
/// # Errors
///
/// As for [`open_keys`]; that of `on_damage`.
pub(crate) fn fresh_keys(
    disk: &Disk,
    dir: &Path,
    options: &Options,
    view: &View,
    on_damage: OnDamage<'_>,
    go_on: GoOn<'_>,
) -> Result<(Keys, u64), Error> {
    fresh_keys_in(disk, (dir, KEYS), options, view, on_damage, go_on)
}

/// Makes a key index anew in a directory under a name of its own. Where that fails, nothing of it stays; where it
/// is stopped, what is there stays as it is, for the next opening to go on from.
pub(crate) fn fresh_keys_in(
    disk: &Disk,
    (dir, name): (&Path, &str),
    options: &Options,
    view: &View,
    on_damage: OnDamage<'_>,
    go_on: GoOn<'_>,
) -> Result<(Keys, u64), Error> {
    let path = dir.join(name);
    let failed = |source| Error::keys(path.clone(), source);
    Keys::remove(&path).map_err(failed)?;
    let make = || {
        let (table, ttl) = (options.keys_table_bytes_max, options.ttl_default_ms());
        let keys = Keys::open(disk, &path, table, ttl).map_err(failed)?;
        let start = Watermark { epoch: view.version.epoch, ..Watermark::default() };
        replay(&keys, dir, view, start, on_damage, go_on)?;
        keys.flush().map_err(failed)?;
        let live = keys.watermark().unwrap_or_default().live;
        Ok((keys, live))
    };
    make().inspect_err(|error| {
        if !matches!(error, Error::Stopped { .. }) {
            // Of no use, and it may be the disk that is full. What stays is removed the next time.
            let _ = Keys::remove(&path);
        }
    })
}

/// Brings an index up to the log, which has not been compacted since it was made; returns the
/// number of live objects.
///
/// # Errors
///
/// As for [`open_keys`].
pub(crate) fn follow(keys: &Keys, dir: &Path, view: &View, go_on: GoOn<'_>) -> Result<u64, Error> {
    let from = keys.watermark().unwrap_or_default();
    replay(keys, dir, view, from, &fail, go_on)?;
    Ok(keys.watermark().unwrap_or_default().live)
}

/// Puts the commits after the watermark in the index; returns how many changes they had.
fn replay(
    keys: &Keys,
    dir: &Path,
    view: &View,
    from: Watermark,
    on_damage: OnDamage<'_>,
    go_on: GoOn<'_>,
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
            if let Err(stopped) = go_on() {
                // The next opening goes on from there.
                keys.flush().map_err(failed)?;
                return Err(stopped);
            }
            if done.commit < entry.commit && BATCH_KEYS <= writes.len() {
                writes.commit(epoch, done.commit, done.serial);
                keys.tend(&|| go_on().is_ok()).map_err(failed)?;
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
    // Compaction may have dropped the last commit whole.
    let missing = view.missing.iter().map(|it| it.commit).max().unwrap_or(0);
    let commit = done.commit.max(view.compacted).max(missing);
    let serial = done.serial.max(view.version.serial);
    writes.commit(epoch, commit, serial);
    keys.tend(&|| go_on().is_ok()).map_err(failed)?;
    Ok(replayed)
}

fn content(
    segment: &Segment,
    entry: &Entry,
    unpacker: &mut Unpacker,
) -> Result<(Vec<Scanned>, Vec<Note>), Error> {
    let member = segment.read(entry, unpacker)?;
    let damaged = |what| Error::Damaged { path: segment.path.clone(), offset: entry.offset, what };
    Ok((member.changes().map_err(damaged)?, member.notes().map_err(damaged)?))
}

fn after(segment: &Segment, commit: u64) -> Vec<Entry> {
    segment.entries().iter().filter(|it| commit < it.commit).copied().collect()
}
