//! Folding: makes a new base of a log from its base and its log, without superseded changes.
//!
//! The result depends only on the members: every replica with the same log makes the same files,
//! and none of them has to be sent. It is computed in parts, by ranges of identifiers, to limit the
//! memory: each part takes a pass over the log.
//!
//! # Differences from a compaction
//!
//! Deletes are dropped at once, since consumers with a cursor below the end of the new base begin
//! anew with the base. Members are cut after changes with certain serials, so that old and new
//! files are the same where nothing was superseded.
//!
//! Source: ours.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use disk::Disk;
use roaring::RoaringTreemap;

use super::chain::{Chain, Link, LogFile, LogPart};
use super::folder::{self, open_file, wrong};
use super::writer::{BASE_FILE_BYTES, OpenFile};
use crate::change::{Change, Scanned};
use crate::error::Error;
use crate::log::segment::Segment;
use crate::member::content::Drafter;
use crate::member::pack;
use crate::member::{Header, MEMBER_BYTES_MAX, Unpacker};

/// Number of bytes by which a log must be longer than its base to be folded.
pub const FOLD_BYTES_MIN: u64 = 16 << 20;
/// Compression level of the result: the highest.
const LEVEL_FOLD: u32 = 9;
/// About the maximum number of identifiers in memory at once, of 40 bytes each.
const PART_CHANGES_MAX: u64 = 2_000_000;
/// Maximum number of plain bytes of a member, unless a record is larger.
const MEMBER_BYTES: usize = 64 << 10;
/// Once a member has the first number of plain bytes, it is cut after the next serial divisible by
/// the second number.
const CUT: (usize, u64) = (32 << 10, 8);
/// Number of complete drafts at which they are compressed together and written.
const DRAFTS_MAX: usize = 16;

/// The key of an object, or of a root.
type Key = [u8; 16];

/// Returns whether a log is longer than its base by [`FOLD_BYTES_MIN`], or has purged changes.
pub(crate) fn is_due(chain: &Chain) -> bool {
    chain.clean < chain.purged
        || chain.bytes(LogPart::Base) + FOLD_BYTES_MIN <= chain.bytes(LogPart::Log)
}

/// Makes the files that the log folder `dir` will have after a folding, due or not, in the
/// directory `out`. The files are synced, the directory is not. If the log is folded somewhat later
/// instead, most files are the same, byte by byte. Blocks.
///
/// # Errors
///
/// [`Error::LogFolder`], [`Error::Damaged`]: the folder is not a log folder, or is damaged.
/// Otherwise the system's error.
pub fn fold_into(dir: &Path, out: &Path) -> Result<Vec<PathBuf>, Error> {
    let disk = Disk::System;
    let chain = folder::read_chain(&disk, dir)?.ok_or_else(|| wrong(dir, "it has no CHAIN"))?;
    let folded = fold(&disk, dir, &chain, out)?;
    Ok(folded.files.iter().map(|it| out.join(it.name())).collect())
}

/// Folds the log in `dir` into files in `out` (perhaps the same); returns the new contents.
pub(super) fn fold(disk: &Disk, dir: &Path, chain: &Chain, out: &Path) -> Result<Chain, Error> {
    let mut segments = Vec::with_capacity(chain.files.len());
    let mut after = 0;
    for file in &chain.files {
        segments.push(open_file(disk, dir, file, after)?);
        after = file.to;
    }
    let live = live(&segments)?;
    let mut writer = FoldWriter::new(disk, out, chain);
    scan(&segments, |scanned, commit| {
        if !live.contains(scanned.serial) {
            return Ok(());
        }
        writer.push(&scanned, commit).map_err(|reason| wrong(dir, reason))?;
        writer.flush(DRAFTS_MAX)
    })?;
    let files = writer.finish()?;
    let (base, base_link) = (chain.version.serial, chain.link());
    Ok(Chain { base, base_link, clean: base, files, ..chain.clone() })
}

/// Calls `each` with every change and the number of its commit.
fn scan(
    segments: &[Segment],
    mut each: impl FnMut(Scanned, u64) -> Result<(), Error>,
) -> Result<(), Error> {
    let mut unpacker = Unpacker::new(MEMBER_BYTES_MAX);
    for segment in segments {
        let entries = segment.entries().clone();
        for entry in &entries {
            let member = segment.read(entry, &mut unpacker)?;
            for scanned in member.changes().map_err(|what| segment.fault(entry, what))? {
                each(scanned, member.header.commit)?;
            }
        }
    }
    Ok(())
}

/// Returns the serials of the changes that stay: those that are not superseded, without deletes,
/// but with all carriers of notices.
fn live(segments: &[Segment]) -> Result<RoaringTreemap, Error> {
    let count = |it: &Segment| it.entries().iter().map(|it| u64::from(it.changes)).sum::<u64>();
    let changes: u64 = segments.iter().map(count).sum();
    let parts = changes.div_ceil(PART_CHANGES_MAX).max(1);
    let mut live = RoaringTreemap::new();
    for part in 0..parts {
        let mut last: HashMap<Key, (u64, Option<u64>)> = HashMap::new();
        scan(segments, |scanned, _| {
            let serial = scanned.serial;
            let key = key(&scanned.change);
            if first_half(&key) % parts != part {
                return Ok(());
            }
            match &scanned.change {
                Change::Update(_) | Change::Confirm { .. } => {
                    last.insert(key, (serial, None));
                }
                Change::Refresh(..) => {
                    last.entry(key).and_modify(|it| it.1 = Some(serial));
                }
                Change::Delete(_) | Change::Withdraw(..) => {
                    last.remove(&key);
                }
                Change::Suppress(oid, notice) => {
                    last.remove(&key);
                    // New consumers, too, must get the notice.
                    if *oid == notice.carrier() {
                        live.insert(serial);
                    }
                }
            }
            Ok(())
        })?;
        live.extend(
            last.values().flat_map(|(update, refresh)| [Some(*update), *refresh]).flatten(),
        );
    }
    Ok(live)
}

fn key(change: &Change) -> Key {
    let mut hasher = blake3::Hasher::new();
    match (change, change.oid()) {
        (Change::Confirm { gatherer, root, .. }, _) => {
            hasher.update(b"root\0").update(root.as_bytes()).update(b"\0");
            hasher.update(gatherer.as_bytes());
        }
        (_, Some(oid)) => drop(hasher.update(b"object\0").update(&oid.key())),
        (_, None) => {}
    }
    let hash = hasher.finalize();
    hash.as_bytes().first_chunk().copied().unwrap_or_default()
}

fn first_half(key: &Key) -> u64 {
    key.first_chunk().map_or(0, |it| u64::from_le_bytes(*it))
}

/// A base under construction.
struct FoldWriter<'a> {
    disk: &'a Disk,
    dir: &'a Path,
    chain: &'a Chain,
    drafter: Drafter,
    link: Link,
    next: u64,
    file: Option<OpenFile>,
    files: Vec<LogFile>,
}

impl<'a> FoldWriter<'a> {
    fn new(disk: &'a Disk, dir: &'a Path, chain: &'a Chain) -> Self {
        Self {
            disk,
            dir,
            chain,
            drafter: Drafter::new(MEMBER_BYTES, MEMBER_BYTES_MAX),
            link: Link::first(chain.life, chain.version.epoch),
            next: chain.files.last().map_or(1, |it| it.number + 1),
            file: None,
            files: Vec::new(),
        }
    }

    fn push(&mut self, scanned: &Scanned, commit: u64) -> Result<(), &'static str> {
        self.drafter.push_scanned(scanned, commit)?;
        if CUT.0 <= self.drafter.open_bytes() && scanned.serial.is_multiple_of(CUT.1) {
            self.drafter.cut();
        }
        Ok(())
    }

    /// Writes the complete drafts if there are at least `least`.
    fn flush(&mut self, least: usize) -> Result<(), Error> {
        if self.drafter.ready() < least {
            return Ok(());
        }
        let drafts = self.drafter.take();
        for (packed, draft) in pack::pack(&drafts, LEVEL_FOLD).iter().zip(drafts) {
            let header = Header {
                start_of_commit: true,
                end_of_commit: true,
                epoch: self.chain.version.epoch,
                commit: draft.commit,
                // The base must not depend on earlier members.
                base: draft.entries.first().map_or(0, |it| it.0 - 1),
                entries: draft.entries,
                ..Header::default()
            };
            let mut bytes = Vec::new();
            header.write(packed, &mut bytes);
            self.append(&bytes, header.last())?;
        }
        Ok(())
    }

    fn append(&mut self, bytes: &[u8], to: u64) -> Result<(), Error> {
        if let Some(full) = self.file.take_if(|it| BASE_FILE_BYTES <= it.entry.bytes) {
            self.files.push(full.close()?);
        }
        self.link = self.link.after(bytes);
        let mut file = match self.file.take() {
            Some(file) => file,
            None => OpenFile::create(self.disk, self.dir, self.next, LogPart::Base)?,
        };
        self.next = file.entry.number + 1;
        file.append(bytes, to, self.link)?;
        self.file = Some(file);
        Ok(())
    }

    fn finish(mut self) -> Result<Vec<LogFile>, Error> {
        self.drafter.cut();
        self.flush(1)?;
        if let Some(file) = self.file.take() {
            self.files.push(file.close()?);
        }
        Ok(self.files)
    }
}
