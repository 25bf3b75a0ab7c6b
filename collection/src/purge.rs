//! Purging: the bytes of what is suppressed leave the disk now, instead of at the next compaction.
//!
//! Source: ours.

use std::collections::{BTreeSet, HashSet};
use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use net::clock;
use serde::{Deserialize, Serialize};
use tokio::time::sleep;

use crate::change::{Change, Stamp, Version};
use crate::collection::{Collection, Inner};
use crate::error::Error;
use crate::feed::FeedServer;
use crate::feed::consumers::Consumer;
use crate::feed::instance::Instance;
use crate::log::due::Due;
use crate::member::{MEMBER_BYTES_MAX, Unpacker};
use crate::notice::{Notice, Subject};
use crate::suppress::Doubt;
use crate::suppressed::Suppression;

/// How often it is looked whether anybody still reads what is no part of the log any more: who was just
/// about to be answered is done in no time.
const READERS_TRIES: u32 = 10;
/// Pause between two looks.
const READERS_PAUSE: Duration = Duration::from_millis(50);

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

/// All that is known after a purge of a daemon's collection.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PurgeReport {
    /// What was done to the collection.
    pub purged: Purged,
    /// Documents, and old files, that the full-text index still has; `None` where there is no index,
    /// or it will be made anew.
    pub index_left: Option<u64>,
    /// Consumers of the feed that have not asked past the last tombstone yet: they may have copies.
    pub consumers: Vec<Consumer>,
    /// Since when consumers have been noted, in Unix milliseconds; `None`: not at all.
    pub since_ms: Option<u64>,
}

impl FeedServer {
    /// Lets go of all that is kept of former states of a replica, since more has been purged from the present one: who
    /// fetches a snapshot asks for a new one, and who keeps the log hears of it. Blocks.
    pub fn let_go(&self) {
        self.shared.snapshots.blocking_lock().clear();
        self.shared.hot.clear();
        self.shared.purges.notify_waiters();
    }

    /// Purges the collection of what is suppressed (all of it, or just `only`), after letting go of
    /// what is kept of it: who fetches a snapshot asks for a new one. Says who may still have copies.
    ///
    /// # Errors
    ///
    /// As for [`Collection::purge`]. [`Error::LogFolder`]: the feed is of a replica, which has nothing of its
    /// own to purge; purge at its origin.
    pub async fn purge(&self, only: Option<Subject>) -> Result<PurgeReport, Error> {
        let shared = &self.shared;
        let Instance::Own(collection) = &shared.log else {
            let what = "it is another's, and is purged by whoever writes it".to_owned();
            return Err(Error::LogFolder { dir: shared.log.dir(), what });
        };
        shared.snapshots.lock().await.clear();
        shared.hot.clear();
        let mut purged = purge(collection.clone(), only).await?;
        // Who has asked meanwhile was given what was there.
        shared.snapshots.lock().await.clear();
        shared.hot.clear();
        for tries in 0..READERS_TRIES {
            purged.still_read = collection.inner.retired()?;
            if purged.still_read.is_empty() || tries + 1 == READERS_TRIES {
                break;
            }
            sleep(READERS_PAUSE).await;
        }
        shared.purges.notify_waiters();
        let epoch = collection.version().epoch;
        let (consumers, since_ms) =
            shared.consumers.behind(Version { epoch, serial: purged.told_at });
        Ok(PurgeReport { purged, index_left: None, consumers, since_ms: Some(since_ms) })
    }
}

/// [`Collection::purge`] where it holds up nobody.
async fn purge(collection: Collection, only: Option<Subject>) -> Result<Purged, Error> {
    let work = move || collection.purge(only.as_ref(), Stamp(clock::now_ms()));
    match tokio::task::spawn_blocking(work).await {
        Ok(purged) => purged,
        Err(panic) => std::panic::resume_unwind(panic.into_panic()),
    }
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
    fn retired(&self) -> Result<Vec<PathBuf>, Error> {
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
