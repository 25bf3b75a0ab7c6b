//! Forgetting: what is changed by a request or purged is gone, also what is on its way.

use std::sync::PoisonError;
use std::time::Instant;

use net::clock;
use regex::Regex;

use super::Fetcher;
use super::coming::Coming;
use crate::policy::invalidation;
use crate::request::Asked;

/// Number of purged patterns that are known.
const PATTERNS_MAX: usize = 100;

impl Fetcher {
    /// Forgets what the answer to a request that changes something makes unusable.
    pub(crate) fn invalidate(&self, asked: &Asked, response: &Coming) {
        let (status, headers) = (response.status, &response.headers);
        for url in invalidation::invalidated(&asked.method, &asked.object.url, status, headers) {
            self.forget(url.as_str());
        }
    }

    /// Forgets what is stored of a URL, and what is on its way. Returns how many objects there were.
    pub(crate) fn forget(&self, url: &str) -> usize {
        self.0.changed.insert(url.to_owned(), clock::monotonic());
        self.flights().remove(url);
        self.0.objects.remove(url, None)
    }

    /// Forgets what is stored of URLs that fit a pattern, and what is on its way. Returns how many objects
    /// there were. Blocks.
    pub(crate) fn forget_all(&self, pattern: &Regex) -> usize {
        {
            let mut purged = self.0.purged.lock().unwrap_or_else(PoisonError::into_inner);
            purged.push_back((clock::monotonic(), pattern.clone()));
            if PATTERNS_MAX < purged.len() {
                purged.pop_front();
            }
        }
        self.flights().retain(|url, _| !pattern.is_match(url));
        self.0.objects.remove_all(|url| pattern.is_match(url))
    }

    /// Returns whether a URL has changed since a request for it began.
    pub(super) fn has_changed(&self, url: &str, began: Instant) -> bool {
        let purged = self.0.purged.lock().unwrap_or_else(PoisonError::into_inner);
        self.0.changed.get(url).is_some_and(|it| began <= it)
            || purged.iter().any(|(at, pattern)| began <= *at && pattern.is_match(url))
    }
}
