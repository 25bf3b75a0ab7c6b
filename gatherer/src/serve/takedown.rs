//! Takedowns: `harvest collection suppress` and `purge` in a running gatherer.
//!
//! Source: Harvest's own.

use std::collections::HashSet;

use collection::{Error, Notice, Oid, PurgeReport, Stamp, Subject, Suppression, TakenDown};
use exchange::takedown::{Refused, Takedown};
use net::clock;

use super::Admin;
use crate::note::{self, ObjectNote};
use crate::server::Handle;
use crate::shared::blocking;
use crate::site::{Site, commit_note};
use crate::spec;

/// Maximum number of files that are reported as the origin of suppressed objects.
const FILES_MAX: usize = 100;

/// Key of the note with the signatures of the lifts that have been followed up.
const FOLLOWED: &[u8] = b"lifts followed";

impl Site {
    /// Calls `each` with the file's path and the record's URL for every record of a file whose OID
    /// is `wanted`.
    fn for_each_record(
        &self,
        wanted: &dyn Fn(&Oid) -> bool,
        mut each: impl FnMut(String, String),
    ) -> Result<(), Error> {
        for root in self.known_roots()? {
            for entry in self.collection.notes(&note::objects_prefix(&root)) {
                let (key, value) = entry?;
                let Some(file) = note::from_bytes::<ObjectNote>(&value) else { continue };
                for record in file.records {
                    if wanted(&Oid::new(&self.id, &record.url)) {
                        let url = note::url_of(&root, &key).unwrap_or_default();
                        each(spec::file_path(&url).display().to_string(), record.url);
                    }
                }
            }
        }
        Ok(())
    }

    /// Marks the files of lifted objects to be gathered again, which would not happen otherwise,
    /// since the files have not changed. Covers lifts by other processes, too. Blocks.
    pub(crate) fn follow_lifts(&self) -> Result<(), Error> {
        let stored = self.collection.note(FOLLOWED)?;
        let followed: Vec<String> =
            stored.as_deref().and_then(note::from_bytes).unwrap_or_default();
        let mut lifts = self.collection.suppressions();
        lifts.retain(|it| it.notice.lifted);
        let all: Vec<&String> = lifts.iter().map(|it| &it.notice.signature).collect();
        let new: Vec<_> =
            lifts.iter().filter(|it| !followed.contains(&it.notice.signature)).collect();
        if new.is_empty() {
            return Ok(());
        }
        let mut lost = HashSet::new();
        let wanted = |oid: &Oid| new.iter().any(|it| it.notice.subject.covers(oid));
        self.for_each_record(&wanted, |_file, url| {
            lost.insert(url);
        })?;
        for root in self.known_roots()? {
            self.doubt(&root, &mut lost)?;
        }
        commit_note(&self.collection, FOLLOWED.to_vec(), Some(note::to_bytes(&all)))
    }
}

impl Handle {
    /// Suppresses `subject`.
    ///
    /// # Errors
    ///
    /// The collection cannot be written, or the reason is too long.
    pub async fn suppress(&self, subject: Subject, reason: String) -> Result<TakenDown, Error> {
        let shared = self.shared.clone();
        blocking(move || {
            let now = Stamp(clock::now_ms());
            let collection = &shared.site.collection;
            collection.suppress(&shared.author, subject, &reason, now)
        })
        .await
    }

    /// Lifts the takedown of `subject`, and gathers its objects.
    ///
    /// # Errors
    ///
    /// There is no takedown of `subject`, or the collection cannot be written.
    pub async fn lift(&self, subject: Subject) -> Result<Notice, Error> {
        let shared = self.shared.clone();
        let lifted = blocking(move || {
            let site = &shared.site;
            let notice = site.collection.lift(&shared.author, subject, Stamp(clock::now_ms()))?;
            site.follow_lifts()?;
            Ok::<_, Error>(notice)
        });
        let notice = lifted.await?;
        self.gather();
        Ok(notice)
    }
}

impl Takedown for Admin {
    fn suppressions(&self) -> Vec<Suppression> {
        self.handle.shared.site.collection.suppressions()
    }

    async fn suppress(&self, subject: Subject, reason: String) -> Result<TakenDown, Refused> {
        Ok(self.handle.suppress(subject, reason).await?)
    }

    async fn lift(&self, subject: Subject) -> Result<Notice, Refused> {
        Ok(self.handle.lift(subject).await?)
    }

    /// Purges, and adds the files that the suppressed objects come from to the report.
    async fn purge(&self, only: Option<Subject>) -> Result<PurgeReport, Refused> {
        let mut report: PurgeReport = self.feed.purge(only.clone()).await?;
        let site = self.handle.shared.site.clone();
        let files = blocking(move || {
            let mut files = Vec::new();
            let wanted = |oid: &Oid| {
                site.collection.is_suppressed(oid) && only.as_ref().is_none_or(|it| it.covers(oid))
            };
            site.for_each_record(&wanted, |file, _url| {
                if files.len() < FILES_MAX && !files.contains(&file) {
                    files.push(file);
                }
            })?;
            Ok::<_, Error>(files)
        });
        report.purged.held_by.extend(files.await?);
        Ok(report)
    }
}
