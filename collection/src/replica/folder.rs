//! A log folder on disk: `CHAIN` and the files that it names, with their checks.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use disk::Disk;

use super::chain::{CHAIN_BYTES_MAX, Chain, Link, LogFile, LogPart};
use crate::error::Error;
use crate::log::segment::{Entry, SERIAL_MAX, Segment, Stretch};
use crate::member::MEMBER_BYTES_MAX;

/// The file that lists a folder's contents.
pub const CHAIN: &str = "CHAIN";
/// The next list, before it replaces `CHAIN`.
pub(super) const CHAIN_NEW: &str = "CHAIN.new";

/// Makes the error for a folder that is wrong.
pub(super) fn wrong(dir: &Path, what: impl Into<String>) -> Error {
    Error::LogFolder { dir: dir.to_owned(), what: what.into() }
}

/// Reads the list of a folder; `None` if it has none.
///
/// # Errors
///
/// [`Error::LogFolder`]: the file is not a `CHAIN`. Otherwise the system's error.
pub(super) fn read_chain(disk: &Disk, dir: &Path) -> Result<Option<Chain>, Error> {
    let path = dir.join(CHAIN);
    let failed = |error| Error::io("cannot read", &path, error);
    let file = match disk.open_to_read(&path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        opened => opened.map_err(failed)?,
    };
    let mut bytes = vec![0; CHAIN_BYTES_MAX + 1];
    let (read, error) = file.read_up_to(&mut bytes, 0);
    if let Some(error) = error {
        return Err(failed(error));
    }
    bytes.truncate(read);
    Chain::parse(&bytes).map(Some).map_err(|error| wrong(dir, format!("{CHAIN}: {error}")))
}

/// Opens a file of a folder and finds its members, whose serials are above `after`.
///
/// # Errors
///
/// [`Error::LogFolder`]: the file is not the one that is listed. Otherwise the system's error.
pub(super) fn open_file(
    disk: &Disk,
    dir: &Path,
    file: &LogFile,
    after: u64,
) -> Result<Segment, Error> {
    let path = dir.join(file.name());
    let segment = Segment::open_to_read(disk, path, file.number)?;
    let refuse = |what: &str| Err(wrong(dir, format!("{}: {what}", file.name())));
    if segment.file_bytes()? != file.bytes {
        return refuse("it is longer or shorter than CHAIN says");
    }
    let survey = segment.survey(false, after, file.bytes, SERIAL_MAX)?;
    if let Some((offset, _, why)) = survey.iter().find_map(Stretch::damage) {
        return refuse(&format!("{why} at byte {offset}"));
    }
    let entries: Vec<Entry> = survey.iter().filter_map(Stretch::entry).copied().collect();
    let is_served =
        |it: &Entry| !it.local && it.changes != 0 && it.bytes as usize <= MEMBER_BYTES_MAX;
    if !entries.iter().all(is_served) {
        return refuse("it has a member that no feed serves, or that is too large");
    }
    if entries.last().is_none_or(|it| it.last != file.to) {
        return refuse("it reaches another serial than CHAIN says");
    }
    segment.extend(entries);
    Ok(segment)
}

/// Returns the chain's value after each member of a file, with the member's last serial.
pub(super) fn links(segment: &Segment, mut link: Link) -> Result<Vec<(u64, Link)>, Error> {
    let entries = segment.entries().clone();
    let mut links = Vec::with_capacity(entries.len());
    for entry in &entries {
        let bytes = segment.raw(entry)?;
        segment.check(entry, &bytes)?;
        link = link.after(&bytes);
        links.push((entry.last, link));
    }
    Ok(links)
}

/// Checks that `new` is a log folder, whole and without other files, and that it continues `old`,
/// if there is one. Files that are the same in both are not read again. Blocks.
///
/// A log that was begun anew, or folded beyond the end of the old one, is not compared with it.
///
/// # Errors
///
/// [`Error::LogFolder`]: it is not a log folder, is damaged, or has another history than the old
/// one: the origin has to begin its log anew. Otherwise the system's error.
pub fn check(new: &Path, old: Option<&Path>) -> Result<(), Error> {
    let disk = Disk::System;
    let chain = read_chain(&disk, new)?.ok_or_else(|| wrong(new, "it has no CHAIN"))?;
    check_names(new, &chain)?;
    let old = match old {
        Some(old) => read_chain(&disk, old)?,
        None => None,
    };
    let is_same = |it: &Chain| (it.life, it.version.epoch) == (chain.life, chain.version.epoch);
    let old = old.filter(is_same);
    let first = Link::first(chain.life, chain.version.epoch);
    let until = old.as_ref().map_or(0, |it| it.version.serial);
    let follow = |part, start, after| follow_chain(new, &chain, old.as_ref(), (part, start, after));
    follow(LogPart::Base, first, 0)?;
    let there = follow(LogPart::Log, chain.base_link, chain.base)?;
    let Some(old) = old else { return Ok(()) };
    if chain.version.serial < old.version.serial {
        let what = format!("it ends at {}, before {until}, where it was", chain.version.serial);
        return Err(wrong(new, what));
    }
    if chain.base <= until && there != old.link() {
        let what = format!("it is not the log that reached {until} before, under the same name");
        return Err(wrong(new, what));
    }
    Ok(())
}

/// Returns whether the log folder `old` may have bytes that were purged according to `newer`, a
/// folder of the same collection. Blocks.
///
/// # Errors
///
/// [`Error::LogFolder`]: one of them is not a log folder. Otherwise the system's error.
pub fn holds_purged(old: &Path, newer: &Path) -> Result<bool, Error> {
    let read =
        |dir: &Path| read_chain(&Disk::System, dir)?.ok_or_else(|| wrong(dir, "it has no CHAIN"));
    Ok(read(old)?.holds_purged(&read(newer)?))
}

/// Follows the chain through the files of a part; returns its value where the old log ends.
fn follow_chain(
    dir: &Path,
    chain: &Chain,
    old: Option<&Chain>,
    (part, start, after): (LogPart, Link, u64),
) -> Result<Link, Error> {
    let until = old.map_or(0, |it| it.version.serial);
    let (mut link, mut after, mut there) = (start, after, start);
    for file in chain.files.iter().filter(|it| it.part == part) {
        let is_known = old.is_some_and(|it| it.files.contains(file));
        let links = if is_known {
            vec![(file.to, file.link)]
        } else {
            links(&open_file(&Disk::System, dir, file, after)?, link)?
        };
        link = links.last().map_or(link, |it| it.1);
        if link != file.link {
            let what = format!("{}: its members are not those of the chain", file.name());
            return Err(wrong(dir, what));
        }
        let upto = links.iter().rfind(|it| it.0 <= until);
        there = upto.map_or(there, |it| it.1);
        after = file.to;
    }
    Ok(there)
}

/// Checks that a folder has no other files.
fn check_names(dir: &Path, chain: &Chain) -> Result<(), Error> {
    let mut names: Vec<String> = chain.files.iter().map(LogFile::name).collect();
    names.push(CHAIN.to_owned());
    for name in list(dir)? {
        if !names.contains(&name) {
            return Err(wrong(dir, format!("it has the file {name}, which CHAIN does not name")));
        }
    }
    Ok(())
}

pub(super) fn list(dir: &Path) -> Result<Vec<String>, Error> {
    let failed = |error| Error::io("cannot list", dir, error);
    let entries = fs::read_dir(dir).map_err(failed)?;
    let name = |it: io::Result<fs::DirEntry>| {
        it.map(|it| it.file_name().to_string_lossy().into_owned()).map_err(failed)
    };
    entries.map(name).collect()
}

/// Replaces `CHAIN`, durably: a crash leaves either the old one or the new one.
pub(super) fn write_chain(disk: &Disk, dir: &Path, chain: &Chain) -> Result<(), Error> {
    let (path, new): (PathBuf, PathBuf) = (dir.join(CHAIN), dir.join(CHAIN_NEW));
    // The listed files must be durable before the list.
    let synced = disk.sync(dir);
    let replaced =
        synced.and_then(|()| disk.replace(&path, &new, disk::MODE, chain.to_string().as_bytes()));
    replaced.map(drop).map_err(|error| Error::io("cannot replace", &path, error))
}
