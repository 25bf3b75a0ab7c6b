//! A gatherer's annotations: read before each pass, and compared with what there is after it.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use collection::Oid;
use essence::annotations::Annotations;
use net::clock;

use crate::lock::lock;
use crate::note::{self, ObjectNote};
use crate::site::Site;
use crate::spec;

/// Kind of the problem of a file of annotations.
const WRONG: &str = "annotation";

/// Kind of the problem of a URL that no object has.
const UNMATCHED: &str = "annotation-unmatched";

/// Most annotations about nothing that are named.
const UNMATCHED_MAX: usize = 100;

impl Site {
    /// Reads what has changed of the annotations at `paths`, and returns whether they say something else than
    /// before. Blocks.
    pub(crate) fn read_annotations(&self, paths: &[PathBuf]) -> bool {
        let own = &self.annotating;
        let looked = lock(&own.sources).look(paths, clock::now_ms());
        own.again.store(looked.again, Relaxed);
        let is_new = looked.annotations.is_some();
        if let Some(annotations) = looked.annotations {
            *lock(&own.current) = Arc::new(annotations);
        }
        let current = own.current();
        let mut counts = lock(&own.counts);
        (counts.files, counts.wrong) = (looked.files, looked.wrong.len());
        counts.annotations = current.len();
        drop(counts);
        let wrong = looked.wrong.into_iter().map(|it| (spec::file_url(&it.path), it.message));
        self.tell(WRONG, wrong.collect());
        is_new
    }

    /// Says which annotations are about nothing, after a pass over all roots. Blocks.
    ///
    /// # Errors
    ///
    /// The collection cannot be read.
    pub(crate) fn match_annotations(&self) -> Result<(), collection::Error> {
        let current = self.annotating.current();
        self.seek_members(&current)?;
        let unmatched = current.unmatched(|url| {
            let oid = Oid::new(&self.id, url);
            self.collection.serial(&oid).map(|serial| serial.is_some())
        })?;
        lock(&self.annotating.counts).unmatched = unmatched.len();
        let mut places = BTreeMap::<&str, Vec<String>>::new();
        for it in unmatched.into_iter().take(UNMATCHED_MAX) {
            places.entry(it.about()).or_default().push(it.to_string());
        }
        let said = |(url, places): (&str, Vec<String>)| {
            let message = format!(
                "{}: no object has the URL {url} that is gathered from files and published: correct \
                 it, or delete it",
                places.join(", ")
            );
            (url.to_owned(), message)
        };
        self.tell(UNMATCHED, places.into_iter().map(said).collect());
        Ok(())
    }

    /// Looks for members that patterns are about among all that are published.
    fn seek_members(&self, annotations: &Annotations) -> Result<(), collection::Error> {
        let mut sought = annotations.sought();
        if sought == 0 {
            return Ok(());
        }
        for root in self.known_roots()? {
            for entry in self.collection.notes(&note::objects_prefix(&root)) {
                let file = note::from_bytes::<ObjectNote>(&entry?.1);
                let records = file.map(|it| it.records).unwrap_or_default();
                for record in records {
                    sought -= annotations.find(&record.url).min(sought);
                }
                if sought == 0 {
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    /// Puts problems of one kind on the list, and takes those off that are no more.
    fn tell(&self, kind: &'static str, now: Vec<(String, String)>) {
        let mut told = lock(&self.annotating.told);
        let is_now = |object: &str| now.iter().any(|(it, _)| it == object);
        told.retain(|(object, of)| {
            let stays = *of != kind || is_now(object);
            if !stays {
                lock(&self.problems).cure(object, kind);
            }
            stays
        });
        for (object, message) in now {
            told.insert((object.clone(), kind));
            self.problem(object, kind, message);
        }
    }
}
