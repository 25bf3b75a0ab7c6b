//! Bringing the key index up to the log: by the tail after a stop, as a whole if it is of no use.
//!
//! Source: DESIGN.md, "Keys".

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use crate::change::{Note, Scanned, Stamp};
use crate::collection::millis;
use crate::disk::Disk;
use crate::error::Error;
use crate::keys::{Keys, Watermark};
use crate::log::{Log, Tail, View};
use crate::member::{MEMBER_BYTES_MAX, Unpacker};
use crate::options::Options;
use crate::segment::{Entry, Segment};

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

/// Opens the key index and brings it up to the log.
///
/// # Errors
///
/// [`Error::Keys`]: not even a new one works. The log's.
pub(crate) fn open_keys(
    dir: &Path,
    options: &Options,
    log: &Log,
    tail: &mut Tail,
    anew: bool,
    now: Stamp,
) -> Result<Indexed, Error> {
    let mut view = log.view();
    let mut ahead = false;
    let why = if anew {
        Some("it was asked for".to_owned())
    } else {
        match catch_up(&log.disk, dir, options, &view, tail) {
            Ok((keys, replayed)) => {
                let live = keys.watermark().unwrap_or_default().live;
                return Ok(Indexed { keys, live, replayed, rebuilt: None });
            }
            Err(Useless::Log(error)) => return Err(error),
            Err(Useless::Keys(why, is_ahead)) => {
                ahead = is_ahead;
                // There is none yet beside a new log, which is nothing to tell.
                (tail.commit != 0).then_some(why)
            }
        }
    };
    if ahead && !tail.manifest.lost {
        // The log had commits that somebody may have been told of.
        tail.lose(log, now)?;
        view = log.view();
    }
    let (keys, live) = fresh_keys(&log.disk, dir, options, &view, OnDamage::Fail, &|| Ok(()))?;
    Ok(Indexed { keys, live, replayed: 0, rebuilt: why })
}

/// What becomes of a replay that meets a damaged member.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OnDamage {
    /// It fails.
    Fail,
    /// It goes on as if the member were not there.
    LeaveOut,
}

/// Asked at every step whether to go on; its error ends the work.
pub(crate) type GoOn<'a> = &'a dyn Fn() -> Result<(), Error>;

/// Why an index cannot be caught up.
enum Useless {
    Keys(String, bool),
    Log(Error),
}

fn catch_up(
    disk: &Disk,
    dir: &Path,
    options: &Options,
    view: &View,
    tail: &Tail,
) -> Result<(Keys, u64), Useless> {
    let useless = |why: &str| Useless::Keys(why.to_owned(), false);
    let path = dir.join(KEYS);
    if !path.exists() {
        return Err(useless("it is missing"));
    }
    let (table, ttl) = (options.keys_table_bytes_max, millis(options.ttl_default));
    // sled panics on some damage.
    let opened = catch_unwind(AssertUnwindSafe(|| Keys::open(disk, &path, table, ttl)));
    let keys = match opened {
        Ok(Ok(keys)) => keys,
        Ok(Err(error)) => return Err(useless(&error.to_string())),
        Err(_panic) => return Err(useless("sled cannot read it")),
    };
    let Some(watermark) = keys.watermark() else { return Err(useless("it has no watermark")) };
    if watermark.epoch != tail.manifest.epoch {
        return Err(useless("it is of another epoch"));
    }
    if tail.commit < watermark.commit {
        return Err(Useless::Keys("it has commits that the log lacks".to_owned(), true));
    }
    if watermark.commit < tail.manifest.compacted {
        return Err(useless("the log has been compacted since"));
    }
    let caught_up = || replay(&keys, dir, view, watermark, OnDamage::Fail, &|| Ok(()));
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
/// As for [`open_keys`].
pub(crate) fn fresh_keys(
    disk: &Disk,
    dir: &Path,
    options: &Options,
    view: &View,
    on_damage: OnDamage,
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
    on_damage: OnDamage,
    go_on: GoOn<'_>,
) -> Result<(Keys, u64), Error> {
    let path = dir.join(name);
    let failed = |source| Error::keys(path.clone(), source);
    Keys::remove(&path).map_err(failed)?;
    let make = || {
        let (table, ttl) = (options.keys_table_bytes_max, millis(options.ttl_default));
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
    replay(keys, dir, view, from, OnDamage::Fail, go_on)?;
    Ok(keys.watermark().unwrap_or_default().live)
}

/// Puts the commits after the watermark in the index; returns how many changes they had.
fn replay(
    keys: &Keys,
    dir: &Path,
    view: &View,
    from: Watermark,
    on_damage: OnDamage,
    go_on: GoOn<'_>,
) -> Result<u64, Error> {
    let failed = |source| Error::keys(dir.join(KEYS), source);
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
                Err(Error::Damaged { .. }) if on_damage == OnDamage::LeaveOut => Default::default(),
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
    let (commit, serial) = (done.commit.max(view.compacted), done.serial.max(view.version.serial));
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
