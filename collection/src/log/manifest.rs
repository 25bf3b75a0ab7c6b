//! The manifest: the list of a collection's segments, replaced as a whole. Files that it does not
//! list are not part of the log.
//!
//! Each line is a fact; the last one is the checksum of the lines before it. A new manifest is
//! written to another file, synced, and renamed over the old one, so a crash leaves either the old
//! or the new one. Before that, the copy of the manifest is replaced in the same way.
//!
//! Source: ours.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use disk::{Disk, File};
use xxhash_rust::xxh3::xxh3_64;

use crate::change::Epoch;
use crate::error::Error;
use crate::log::holes::{Missing, Skip};

const NAME: &str = "MANIFEST";
/// A copy that is used if the manifest is damaged or missing. It is written before the manifest, so
/// it is never older.
const COPY: &str = "MANIFEST.copy";
const TITLE: &str = "harvest collection 1";

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Manifest {
    pub(crate) epoch: Epoch,
    /// Deletes at or below this serial may be forgotten.
    pub(crate) horizon: u64,
    /// Commits up to this one have been compacted: an older key index has to be rebuilt.
    pub(crate) compacted: u64,
    /// Number of changes that the last full compaction kept in addition to the live objects'
    /// updates.
    pub(crate) residue: u64,
    /// Subjects suppressed up to this serial have been purged.
    pub(crate) purged: u64,
    /// Whether unknown changes were lost and the repair has not begun yet.
    pub(crate) lost: bool,
    /// Any changes up to this serial may be missing until everything has been fetched or gathered
    /// again; 0: none is missing.
    pub(crate) doubt: u64,
    /// The length of the active segment at the time of writing, in bytes.
    pub(crate) end: u64,
    /// Upper bound of the serials given to changes while this manifest is in force; 0: unknown.
    pub(crate) reserved: u64,
    /// Whether the collection was closed in order: the log ends with `serial` and `commit`.
    pub(crate) closed: bool,
    /// The last serial when this manifest was written. Compaction may have dropped its change.
    pub(crate) serial: u64,
    /// The last stamp at that time, in Unix milliseconds.
    pub(crate) stamp: u64,
    /// The number of the last commit at that time.
    pub(crate) commit: u64,
    /// The time of the last sweep for expiry, in Unix milliseconds; 0: never.
    pub(crate) swept: u64,
    /// The time until which nothing expires, after a jump of the clock or a long time without
    /// sweeps, in Unix milliseconds.
    pub(crate) unswept_until: u64,
    /// Numbers of the segments, in log order; the last one is active.
    pub(crate) segments: Vec<u64>,
    /// Lengths of the sealed segments, in bytes: they show a file cut at a member's end.
    pub(crate) sealed: BTreeMap<u64, u64>,
    /// Members that were found damaged: their segments' numbers, and their offsets there.
    pub(crate) damaged: Vec<(u64, u64)>,
    /// Holes without bytes, in log order.
    pub(crate) missing: Vec<Missing>,
    /// The serials skipped since the horizon, in ascending order.
    pub(crate) skips: Vec<Skip>,
}

impl Manifest {
    pub(crate) fn path_in(dir: &Path) -> PathBuf {
        dir.join(NAME)
    }

    /// Reads the manifest; `None` if there is none.
    ///
    /// # Errors
    ///
    /// [`Error::Manifest`]: it is damaged.
    pub(crate) fn read(dir: &Path) -> Result<Option<Self>, Error> {
        Self::read_at(Self::path_in(dir))
    }

    /// Reads the copy; `None` if there is none.
    pub(crate) fn read_copy(dir: &Path) -> Result<Option<Self>, Error> {
        Self::read_at(dir.join(COPY))
    }

    fn read_at(path: PathBuf) -> Result<Option<Self>, Error> {
        let text = match fs::read(&path) {
            Ok(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(Error::io("cannot read", &path, error)),
        };
        match Self::parse(&text) {
            Ok(manifest) => Ok(Some(manifest)),
            Err(what) => Err(Error::Manifest { path, what }),
        }
    }

    fn parse(text: &str) -> Result<Self, String> {
        let body_bytes = text.trim_end_matches('\n').rfind('\n').map_or(0, |at| at + 1);
        let (body, last) = text.split_at(body_bytes);
        if last != checksum_line(body) {
            return Err("its checksum does not match".to_owned());
        }
        let mut lines = body.lines();
        if lines.next() != Some(TITLE) {
            return Err("it is of another format; use the release that wrote it".to_owned());
        }
        let mut manifest = Self::default();
        for line in lines {
            let wrong = || format!("`{line}` means nothing to this release");
            let (word, value) = line.split_once(' ').ok_or_else(wrong)?;
            let number = || value.parse::<u64>().map_err(|_error| wrong());
            match word {
                "epoch" => manifest.epoch = value.parse().map_err(|_error| wrong())?,
                "horizon" => manifest.horizon = number()?,
                "compacted" => manifest.compacted = number()?,
                "serial" => manifest.serial = number()?,
                "stamp" => manifest.stamp = number()?,
                "commit" => manifest.commit = number()?,
                "residue" => manifest.residue = number()?,
                "purged" => manifest.purged = number()?,
                "swept" => manifest.swept = number()?,
                "unswept-until" => manifest.unswept_until = number()?,
                "lost" => manifest.lost = number()? != 0,
                "doubt" => manifest.doubt = number()?,
                "end" => manifest.end = number()?,
                "reserved" => manifest.reserved = number()?,
                "closed" => manifest.closed = number()? != 0,
                "damaged" | "missing" | "skipped" => {
                    let numbers: Result<Vec<u64>, _> = value.split(' ').map(str::parse).collect();
                    match (word, numbers.as_deref()) {
                        ("damaged", Ok(&[number, offset])) => {
                            manifest.damaged.push((number, offset));
                        }
                        ("missing", Ok(&[base, last, commit])) => {
                            manifest.missing.push(Missing { base, last, commit });
                        }
                        ("skipped", Ok(&[from, to])) => manifest.skips.push((from, to)),
                        _ => return Err(wrong()),
                    }
                }
                "segment" => {
                    let (segment, bytes) = value
                        .split_once(' ')
                        .map_or((value, None), |(it, bytes)| (it, Some(bytes)));
                    let segment = segment.parse().map_err(|_error| wrong())?;
                    manifest.segments.push(segment);
                    if let Some(bytes) = bytes {
                        manifest.sealed.insert(segment, bytes.parse().map_err(|_error| wrong())?);
                    }
                }
                _ => return Err(wrong()),
            }
        }
        Ok(manifest)
    }

    fn text(&self) -> String {
        let mut text = format!("{TITLE}\nepoch {}\n", self.epoch);
        let facts = [
            ("horizon", self.horizon),
            ("compacted", self.compacted),
            ("residue", self.residue),
            ("purged", self.purged),
            ("serial", self.serial),
            ("stamp", self.stamp),
            ("commit", self.commit),
            ("lost", u64::from(self.lost)),
            ("doubt", self.doubt),
            ("end", self.end),
            ("reserved", self.reserved),
            ("closed", u64::from(self.closed)),
            ("swept", self.swept),
            ("unswept-until", self.unswept_until),
        ];
        // Writing to a string cannot fail.
        for (word, value) in facts {
            let _ = writeln!(text, "{word} {value}");
        }
        for number in &self.segments {
            let _ = match self.sealed.get(number) {
                Some(bytes) => writeln!(text, "segment {number} {bytes}"),
                None => writeln!(text, "segment {number}"),
            };
        }
        for (number, offset) in &self.damaged {
            let _ = writeln!(text, "damaged {number} {offset}");
        }
        for Missing { base, last, commit } in &self.missing {
            let _ = writeln!(text, "missing {base} {last} {commit}");
        }
        for (from, to) in &self.skips {
            let _ = writeln!(text, "skipped {from} {to}");
        }
        let last = checksum_line(&text);
        text + &last
    }

    /// Replaces the manifest in `dir` and its copy, durably.
    ///
    /// # Errors
    ///
    /// The system's error, and whether the new manifest is on the disk all the same.
    pub(crate) fn write(&self, disk: &Disk, dir: &Path) -> Result<(), Unwritten> {
        let kept = |unwritten: Unwritten| Unwritten { replaced: false, ..unwritten };
        self.write_at(disk, dir, COPY).map_err(kept)?;
        self.write_at(disk, dir, NAME)
    }

    fn write_at(&self, disk: &Disk, dir: &Path, name: &str) -> Result<(), Unwritten> {
        let path = dir.join(name);
        let beside = dir.join("MANIFEST.new");
        let stage = || -> io::Result<File> {
            let file = disk.create(&beside)?;
            file.write_all_at(self.text().as_bytes(), 0)?;
            file.sync_all()?;
            // The directory is opened before the rename, so that its sync cannot fail later for
            // lack of a file descriptor.
            let directory = disk.open_to_read(dir)?;
            // The files named in the manifest must be durable before the manifest: a power cut may
            // keep later changes of a directory without the earlier ones.
            directory.sync_all()?;
            disk.rename(&beside, &path)?;
            Ok(directory)
        };
        let failed = |replaced| {
            let path = &path;
            move |error| Unwritten { error: Error::io("cannot replace", path, error), replaced }
        };
        stage().map_err(failed(false))?.sync_all().map_err(failed(true))
    }
}

/// A failed write of a manifest.
#[derive(Debug)]
pub(crate) struct Unwritten {
    pub(crate) error: Error,
    /// Whether the new manifest is on the disk nevertheless; a power cut may still undo that.
    pub(crate) replaced: bool,
}

impl From<Unwritten> for Error {
    fn from(unwritten: Unwritten) -> Self {
        unwritten.error
    }
}

fn checksum_line(body: &str) -> String {
    format!("checksum {:016x}\n", xxh3_64(body.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> Manifest {
        Manifest {
            epoch: Epoch(7),
            horizon: 3,
            compacted: 9,
            residue: 1,
            purged: 4,
            lost: true,
            serial: 12,
            stamp: 1_000,
            commit: 11,
            swept: 13,
            unswept_until: 14,
            segments: vec![4, 2],
            sealed: BTreeMap::from([(4, 70)]),
            closed: true,
            doubt: 8,
            end: 44,
            reserved: 99,
            damaged: vec![(4, 60)],
            missing: vec![Missing { base: 3, last: 5, commit: 6 }],
            skips: vec![(5, 9)],
        }
    }

    #[test]
    fn a_manifest_reads_back() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(Manifest::read(dir.path()).unwrap(), None);
        sample().write(&Disk::System, dir.path()).unwrap();
        assert_eq!(Manifest::read(dir.path()).unwrap(), Some(sample()));
        assert_eq!(Manifest::read_copy(dir.path()).unwrap(), Some(sample()));
    }

    #[test]
    fn any_flipped_byte_is_noticed() {
        let text = sample().text();
        assert_eq!(Manifest::parse(&text), Ok(sample()));
        for at in 0..text.len() {
            let mut bytes = text.clone().into_bytes();
            bytes[at] ^= 1;
            let text = String::from_utf8_lossy(&bytes).into_owned();
            assert!(Manifest::parse(&text).is_err(), "byte {at}");
        }
        assert!(Manifest::parse("").is_err());
    }
}
