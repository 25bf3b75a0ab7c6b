//! Purging: the bytes of what is suppressed leave the disk now, instead of at the next compaction.
//!
//! Source: ours.

use std::collections::{BTreeSet, HashSet};
use std::fs;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::Doubt;
use crate::change::{Change, Stamp};
use crate::collection::{Collection, Inner};
use crate::error::Error;
use crate::log::due::Due;
use crate::member::{MEMBER_BYTES_MAX, Unpacker};
use crate::notice::{Notice, Subject};
use crate::suppressed::Suppression;

/// What a purge did, and where copies may remain.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Purged {
    /// What is suppressed and was purged: subjects as they are written.
    pub subjects: Vec<String>,
    /// Bytes of the log before and after.
    pub bytes: (u64, u64),
    /// Records of what is suppressed that the log still has; 0 unless something is wrong.
    pub left: u64,
    /// Files that are no part of the log any more and go with the last who reads them.
    pub still_read: Vec<PathBuf>,
    /// The serial of the last tombstone of it: who has read less far may have a copy.
    pub told_at: u64,
    /// Sources that held some of it when it was taken down, and have been told nothing by this.
    pub held_by: Vec<String>,
}

impl Collection {
    /// Rewrites the log and the key index without the bytes of what is suppressed (all of it, or
    /// just `only`), and looks through all of the log whether any are left. What is pinned must have
    /// been let go.
    ///
    /// # Errors
    ///
    /// [`Error::NotSuppressed`]: only what is suppressed can be purged. [`Error::Damaged`]: a part of the log is, and is
    /// to be healed first. Otherwise as for
    /// [`compact`](Self::compact).
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
            // A key index that is made anew would not know what is missing.
            return Err(inner.log.view().gap());
        }
        {
            // What has not been done for want of space, or came back, is done first.
            let mut tail = inner.tail();
            tail.go_on(&inner.log)?;
            inner.settle(&mut tail, &HashSet::new(), Doubt::Live, now)?;
        }
        let compacted = inner.compact(Due::All, None, now)?;
        inner.remove_damaged()?;
        let made = inner.keys_made();
        inner.rebuild_keys(made, "what is suppressed is purged")?;
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
    /// Removes segments that an opening has put aside because they were damaged: what is good of them
    /// is in the log.
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

    /// Notes, durably, that what was suppressed up to a serial has left the log: replicas of it are to know.
    fn note_purged(&self, told_at: u64) -> Result<(), Error> {
        let mut tail = self.tail();
        tail.go_on(&self.log)?;
        let mut manifest = tail.manifest_now();
        if manifest.purged < told_at {
            manifest.purged = told_at;
            tail.replace(manifest, &self.log)?;
            self.log.change_view(|view| view.purged = told_at);
        }
        Ok(())
    }

    /// Returns the segments on disk that are no part of the log any more.
    pub(crate) fn retired(&self) -> Result<Vec<PathBuf>, Error> {
        let failed = |error| Error::io("cannot list", &self.dir, error);
        let view = self.log.view();
        let mut found = Vec::new();
        for entry in fs::read_dir(&self.dir).map_err(failed)? {
            let path = entry.map_err(failed)?.path();
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            let is_segment = name.starts_with("segment-") && name.ends_with(".gz");
            if is_segment && !view.segments.iter().any(|it| it.path == path) {
                found.push(path);
            }
        }
        found.sort();
        Ok(found)
    }

    /// Looks through all members for records of what is on the list, and for its last tombstone.
    fn search(&self, list: &[Suppression], purged: &mut Purged) -> Result<(), Error> {
        let is_of = |it: &Notice| list.iter().any(|on| on.notice == *it);
        let mut unpacker = Unpacker::new(MEMBER_BYTES_MAX);
        for segment in self.log.view().segments {
            let entries = segment.entries().clone();
            for entry in entries.iter().filter(|it| !it.local) {
                self.go_on()?;
                let member = segment.read(entry, &mut unpacker)?;
                let damaged = |what| Error::Damaged {
                    path: segment.path.clone(),
                    offset: entry.offset,
                    what,
                };
                for scanned in member.changes().map_err(damaged)? {
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
