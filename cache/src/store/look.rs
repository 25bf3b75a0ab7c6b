//! A look through the store: all that it has, for its administrator.

use std::sync::mpsc;

use super::index::{Place, UNIT};
use super::list::front_and_head;
use super::{Job, Store, record};
use crate::policy::freshness::Rules;
use crate::policy::storing::Head;

/// Number of passes for what is moved or stored during the one before.
const PASSES_MAX: usize = 4;

impl Store {
    /// Returns the lengths of all records, in bytes.
    pub fn lengths(&self) -> Vec<u64> {
        self.known().index.all().map(|it| u64::from(it.length) * UNIT).collect()
    }

    /// Shows `see` what is stored, and what waited to be: each URL that `fits`, with its head and the
    /// length of its body, until it returns false. Damaged ones are left out; what is moved meanwhile may
    /// come twice. Blocks.
    pub fn look_through(
        &self,
        fits: impl Fn(&str) -> bool,
        rules: impl Fn(&str) -> Rules,
        mut see: impl FnMut(&str, Head, u64) -> bool,
    ) {
        let (written, receiver) = mpsc::channel();
        self.send(Job::Tell(written));
        // It fails when the writer has ended: then nothing waits.
        let _ = receiver.recv();
        let mut seen: Vec<Place> = Vec::new();
        for _ in 0..PASSES_MAX {
            let is_new = |it: &Place| seen.binary_search(it).is_err();
            let mut places: Vec<Place> = self.known().index.all().filter(is_new).collect();
            if places.is_empty() {
                return;
            }
            // Files are read from their start to their end.
            places.sort_unstable();
            for place in &places {
                let read = self.head_at(*place, &fits, &rules);
                if read.is_some_and(|(url, head, bytes)| !see(&url, head, bytes)) {
                    return;
                }
            }
            seen.extend(places);
            seen.sort_unstable();
        }
    }

    /// Reads the URL and the head of an object whose URL `fits`, and the length of its body.
    fn head_at(
        &self,
        place: Place,
        fits: impl Fn(&str) -> bool,
        rules: impl Fn(&str) -> Rules,
    ) -> Option<(String, Head, u64)> {
        let file = self.known().file(place.segment)?;
        let [at, length] = [place.at, place.length].map(|it| u64::from(it) * UNIT);
        let (front, head) = front_and_head(&file, at, at + length).ok().flatten()?;
        // Most do not fit; their heads are not read.
        if !fits(record::read_url(&head)?) || !self.known().index.has(front.hash, place) {
            return None;
        }
        let (url, head, _) = record::read_head(&head, rules)?;
        Some((url, head, front.body_bytes))
    }
}
