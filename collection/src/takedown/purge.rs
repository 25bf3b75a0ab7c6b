//! Purging: removes the bytes of suppressed objects now, instead of at the next compaction.
//!
//! Source: ours.

use std::collections::{BTreeSet, HashSet};
use std::fs;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::Recheck;
use crate::change::{Change, Stamp};
use crate::collection::{Collection, Inner};
use crate::error::Error;
use crate::log::due::CompactionDue;
use crate::log::segment::Segment;
use crate::member::{MEMBER_BYTES_MAX, Unpacker};
use crate::notice::{Notice, Subject};
use crate::recover;
use crate::suppressed::Suppression;

/// The outcome of a purge, and the places where copies may remain.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Purged {
    /// The purged subjects, in their written form.
    pub subjects: Vec<String>,
    /// Bytes of the log before and after.
    pub bytes: (u64, u64),
    /// Records of suppressed objects that are still in the log; 0 unless there is a fault.
    pub left: u64,
    /// Files that are not in the log any more, and are removed when their last reader has finished.
    pub still_read: Vec<PathBuf>,
    /// The serial of the subjects' last tombstone; consumers with a lower cursor may have copies.
    pub told_at: u64,
    /// Sources that held such objects at the takedown; a purge does not inform them.
    pub held_by: Vec<String>,
}

impl Collection {
    /// Rewrites the log and the key index without the bytes of suppressed objects (all of them, or
    /// just those of `only`). Then counts the records of them that are left in the log. Drop
    /// readers of the log first: the files that they read stay.
    ///
    /// # Errors
    ///
    /// [`Error::NotSuppressed`]: only suppressed objects can be purged. [`Error::Damaged`]: a part
    /// of the log is damaged; heal it first. Otherwise as for [`compact`](Self::compact).
    pub fn purge(&self, only: Option<&Subject>, now: Stamp) -> Result<Purged, Error> {
        let inner = &self.inner;
        let meant =
            |it: &Suppression| it.active && only.is_none_or(|only| it.notice.subject == *only);
        let list: Vec<Suppression> =
            self.suppressions().into_iter().filter(|it| meant(it)).collect();
        if let (true, Some(only)) = (list.is_empty(), only) {
            return Err(Error::NotSuppressed { subject: only.to_string() });
        }
        if inner.log.view().has_holes() {
            // A rebuilt key index would lack the missing objects.
            return Err(inner.log.view().gap());
        }
        {
            // Takedowns that were interrupted, or whose effects were lost, are carried out first.
            let mut tail = inner.tail();
            tail.ensure_writable(&inner.log)?;
            inner.apply_list(&mut tail, &HashSet::new(), Recheck::LiveObjects, now)?;
        }
        let compacted = inner.compact(CompactionDue::All, None, now)?;
        inner.remove_damaged()?;
        let made = inner.keys_made();
        inner.rebuild_keys(made, "suppressed objects are purged")?;
        let mut purged = Purged {
            subjects: list.iter().map(|it| it.notice.subject.to_string()).collect(),
            bytes: compacted.bytes,
            still_read: inner.retired()?,
            ..Purged::default()
        };
        let held_by: BTreeSet<&String> = list.iter().flat_map(|it| &it.held_by).collect();
        purged.held_by = held_by.into_iter().cloned().collect();
        inner.search(&list, &mut purged)?;
        if purged.left == 0 {
            inner.note_purged(purged.told_at)?;
        }
        Ok(purged)
    }
}

impl Inner {
    /// Removes damaged segments that an earlier release put aside. The log has their sound members.
    fn remove_damaged(&self) -> Result<(), Error> {
        let failed = |error| Error::io("cannot list", &self.dir, error);
        for entry in fs::read_dir(&self.dir).map_err(failed)? {
            let path = entry.map_err(failed)?.path();
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            if name.starts_with("segment-") && name.ends_with(".gz.damaged") {
                let removed = self.log.disk.remove_file(&path);
                removed.map_err(|error| Error::io("cannot remove", &path, error))?;
            }
        }
        Ok(())
    }

    /// Records durably, for replicas, up to which serial suppressed objects have left the log.
    fn note_purged(&self, told_at: u64) -> Result<(), Error> {
        let mut tail = self.tail();
        if tail.manifest.purged < told_at {
            tail.amend(&self.log, |manifest| manifest.purged = told_at)?;
            self.log.change_view(|view| view.purged = told_at);
        }
        Ok(())
    }

    /// Returns the segments on disk that are not in the log any more.
    pub(crate) fn retired(&self) -> Result<Vec<PathBuf>, Error> {
        let mut found = recover::segments_in(&self.dir)?;
        for segment in self.log.view().segments {
            found.remove(&segment.number);
        }
        Ok(found.into_iter().map(|number| Segment::path_in(&self.dir, number)).collect())
    }

    /// Searches all members for records of listed subjects, and for their last tombstone.
    fn search(&self, list: &[Suppression], purged: &mut Purged) -> Result<(), Error> {
        let is_of = |it: &Notice| list.iter().any(|on| on.notice == *it);
        let mut unpacker = Unpacker::new(MEMBER_BYTES_MAX);
        for segment in self.log.view().segments {
            let entries = segment.entries().clone();
            for entry in entries.iter().filter(|it| !it.local) {
                self.check_open()?;
                let member = segment.read(entry, &mut unpacker)?;
                for scanned in member.changes().map_err(|what| segment.fault(entry, what))? {
                    match &scanned.change {
                        Change::Suppress(_, notice) if is_of(notice) => {
                            purged.told_at = purged.told_at.max(scanned.serial);
                        }
                        Change::Update(_) => {
                            let oid = scanned.change.oid();
                            let covered =
                                oid.is_some_and(|oid| list.iter().any(|it| it.covers(&oid)));
                            purged.left += u64::from(covered);
                        }
                        _ => {}
                    }
                }
            }
        }
        Ok(())
    }
}
