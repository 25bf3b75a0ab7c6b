//! A gatherer's annotations: read before each pass, and matched with the gatherer's objects after
//! it.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex};

use collection::Oid;
use essence::annotations::Annotations;
use essence::annotations::sources::Sources;
use net::clock;

use crate::lock::lock;
use crate::note::{self, ObjectNote};
use crate::progress::AnnotationCounts;
use crate::site::Site;
use crate::spec;

/// Kind of the problems with annotation files.
const FILE_PROBLEM: &str = "annotation";

/// Kind of the problem that no object has the URL of an annotation.
const UNMATCHED: &str = "annotation-unmatched";

/// Maximum number of annotations without an object that are reported.
const UNMATCHED_MAX: usize = 100;

/// State of the annotations between two reads.
#[derive(Debug, Default)]
pub(crate) struct AnnotationState {
    sources: Mutex<Sources>,
    current: Mutex<Arc<Annotations>>,
    /// Problems on the list, as pairs of object and kind.
    listed: Mutex<BTreeSet<(String, &'static str)>>,
    pub(crate) counts: Mutex<AnnotationCounts>,
    /// Whether a file has changed so recently that it has not been read yet.
    pub(crate) again: AtomicBool,
}

impl AnnotationState {
    pub(crate) fn current(&self) -> Arc<Annotations> {
        lock(&self.current).clone()
    }
}

impl Site {
    /// Reads the annotation files at `paths` that have changed. Returns whether the annotations
    /// have changed. Blocks.
    pub(crate) fn read_annotations(&self, paths: &[PathBuf]) -> bool {
        let own = &self.annotating;
        let outcome = lock(&own.sources).look(paths, clock::now_ms());
        own.again.store(outcome.again, Relaxed);
        let is_new = outcome.annotations.is_some();
        if let Some(annotations) = outcome.annotations {
            *lock(&own.current) = Arc::new(annotations);
        }
        let annotations = own.current().len();
        let mut counts = lock(&own.counts);
        (counts.files, counts.with_mistakes) = (outcome.files, outcome.problems.len());
        counts.annotations = annotations;
        drop(counts);
        let problems =
            outcome.problems.into_iter().map(|it| (spec::file_url(&it.path), it.message));
        self.set_problems(FILE_PROBLEM, problems.collect());
        is_new
    }

    /// Reports annotations without an object, after a pass over all roots. Blocks.
    pub(crate) fn match_annotations(&self) -> Result<(), collection::Error> {
        let current = self.annotating.current();
        self.note_members(&current)?;
        let unmatched = current.unmatched(|url| {
            let oid = Oid::new(&self.id, url);
            self.collection.serial(&oid).map(|serial| serial.is_some())
        })?;
        lock(&self.annotating.counts).unmatched = unmatched.len();
        let mut lines = BTreeMap::<&str, Vec<String>>::new();
        for it in unmatched.into_iter().take(UNMATCHED_MAX) {
            lines.entry(it.about()).or_default().push(it.to_string());
        }
        let problem = |(url, lines): (&str, Vec<String>)| {
            let message = format!(
                "{}: no object has the URL {url} that is gathered from files and published: correct \
                 it, or delete it",
                lines.join(", ")
            );
            (url.to_owned(), message)
        };
        self.set_problems(UNMATCHED, lines.into_iter().map(problem).collect());
        Ok(())
    }

    /// Notes which published members the patterns match.
    fn note_members(&self, annotations: &Annotations) -> Result<(), collection::Error> {
        let mut pending = annotations.pending_members();
        if pending == 0 {
            return Ok(());
        }
        for root in self.known_roots()? {
            for entry in self.collection.notes(&note::objects_prefix(&root)) {
                let file = note::from_bytes::<ObjectNote>(&entry?.1);
                let records = file.map(|it| it.records).unwrap_or_default();
                for record in records {
                    pending -= annotations.note_member(&record.url).min(pending);
                }
                if pending == 0 {
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    /// Puts the problems of one kind on the list, and removes earlier problems of that kind.
    fn set_problems(&self, kind: &'static str, now: Vec<(String, String)>) {
        let mut listed = lock(&self.annotating.listed);
        let is_now = |object: &str| now.iter().any(|(it, _)| it == object);
        listed.retain(|(object, of)| {
            let stays = *of != kind || is_now(object);
            if !stays {
                lock(&self.problems).cure(object, kind);
            }
            stays
        });
        for (object, message) in now {
            listed.insert((object.clone(), kind));
            self.problem(object, kind, message);
        }
    }
}
