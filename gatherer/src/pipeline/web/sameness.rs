//! Mass sameness: many known pages that turn to one page in a pass, such as a login, a notice of
//! maintenance or a parked domain, are held as mass deletion is.
//!
//! The first page of its kind is taken. Those that turn to the same one wait for the end of the pass:
//! if they are few, they are asked for again and taken.
//!
//! Sans-I/O.

use std::collections::{HashMap, HashSet};

use url::Url;

use crate::known::{LOST_FILES_MAX, LOST_PERCENT_MAX};
use crate::progress::Hold;

/// What known pages of a site have turned to.
#[derive(Debug, Default)]
pub(super) struct Sameness {
    /// Those that turned to a page that was there before, by the fingerprint of that page.
    waiting: HashMap<u64, Vec<Url>>,
    /// Fingerprints that are no matter.
    released: HashSet<u64>,
    is_released: bool,
    /// Whether the pass before was held: then not even the first is taken.
    is_held: bool,
}

impl Sameness {
    /// Lets all pages pass: an administrator has confirmed the hold.
    pub(super) fn release_all(&mut self) {
        self.is_released = true;
    }

    /// Notes that the pass before was held for this.
    pub(super) fn note_held(&mut self) {
        self.is_held = true;
    }

    /// Returns whether a known page may turn to that with this fingerprint now.
    pub(super) fn take(&mut self, fingerprint: u64, url: &Url) -> bool {
        if self.is_released || self.released.contains(&fingerprint) {
            return true;
        }
        match self.waiting.get_mut(&fingerprint) {
            None => {
                let waiting = if self.is_held { vec![url.clone()] } else { Vec::new() };
                self.waiting.insert(fingerprint, waiting);
                !self.is_held
            }
            Some(waiting) => {
                waiting.push(url.clone());
                false
            }
        }
    }

    /// Returns the hold, if too many of `of` pages have turned to one.
    pub(super) fn hold(&self, of: u64) -> Option<Hold> {
        let most = self.waiting.values().map(|it| it.len() as u64 + 1).max().unwrap_or_default();
        let is_many = LOST_FILES_MAX < most && of * LOST_PERCENT_MAX < most * 100;
        is_many.then_some(Hold::Alike { alike: most, of })
    }

    /// Lets the pages pass that wait, and returns them.
    pub(super) fn release(&mut self) -> Vec<Url> {
        let waiting = std::mem::take(&mut self.waiting);
        let mut urls = Vec::new();
        for (fingerprint, waited) in waiting {
            self.released.insert(fingerprint);
            urls.extend(waited);
        }
        urls
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_pages_that_turn_to_one_are_held_and_few_are_taken_later() {
        let url = |it: u64| Url::parse(&format!("http://h.example/{it}")).unwrap();
        let mut same = Sameness::default();
        let taken = |same: &mut Sameness, kind, count| {
            (0..count).filter(|it| same.take(kind, &url(*it))).count()
        };
        assert_eq!(taken(&mut same, 1, 100), 1);
        assert_eq!(same.hold(100), None, "no more than 100");
        assert_eq!(taken(&mut same, 1, 1), 0);
        assert_eq!(same.hold(300), Some(Hold::Alike { alike: 101, of: 300 }));
        assert_eq!(same.hold(400), None, "no more than 30 %");
        assert_eq!(taken(&mut same, 2, 1), 1);
        assert_eq!(same.release().len(), 100);
        assert_eq!((taken(&mut same, 1, 3), same.release().len()), (3, 0));
        let mut held = Sameness::default();
        held.note_held();
        assert_eq!(taken(&mut held, 1, 100), 0);
        assert_eq!(
            held.hold(101),
            Some(Hold::Alike { alike: 101, of: 101 }),
            "one was taken before"
        );
        let mut confirmed = Sameness::default();
        confirmed.release_all();
        assert_eq!(taken(&mut confirmed, 1, 200), 200);
    }
}
