//! Excess: what brokers claim beyond what can be. It does not count, and administrators and clients are shown it.
//!
//! Sans-I/O.

use std::collections::{BTreeMap, BTreeSet};

/// Maximum number of brokers of which it is remembered.
const BROKERS_MAX: usize = 4_096;

/// Of a summary: objects.
pub(super) const OBJECTS: &str = "it claims more objects than any broker has";
/// Of a summary: objects that have a word.
pub(super) const WORD: &str = "it claims that more objects have a word than there are";
/// Of a summary: what a word scores.
pub(super) const SCORE: &str = "it claims a higher score than a word can have";
/// Of a summary: words with their counts.
pub(super) const TERMS: &str = "its summary has more words than are read";
/// Of a summary: its filter, which then counts as none. An honest one is as full if it is of very many words.
pub(super) const FILTER: &str = "its filter has nearly all words, which tells nothing";
/// Of statistics.
pub(super) const STATISTICS: &str = "its statistics have more than there can be";
/// Of an answer: the number of objects that are found.
pub(super) const TOTAL: &str =
    "it claims to find more objects than it has by its summary, which may be older";
/// Of an answer: the number of hits.
pub(super) const HITS: &str = "it sends more hits than it is asked for";
/// Of an answer: scores.
pub(super) const NUMBERS: &str = "it sends scores that no object can have";
/// Of a feed: who it is of. Its summary then does not count.
pub(super) const OTHER_ID: &str =
    "its feed is of another id than the settings give it, so its summary is not believed";
/// All that an answer may claim.
pub(super) const OF_ANSWERS: [&str; 3] = [TOTAL, HITS, NUMBERS];

/// What each broker has claimed in its last answers, by their addresses.
#[derive(Debug, Default)]
pub(super) struct Excess {
    known: BTreeMap<String, BTreeSet<&'static str>>,
}

impl Excess {
    /// Takes what the broker at an address has claimed in an answer, of what is `judged` by such answers; what it has
    /// claimed of these before is past, since its summary may have been older than what it has.
    pub(super) fn set(
        &mut self,
        url: &str,
        judged: &[&'static str],
        claims: impl IntoIterator<Item = &'static str>,
    ) {
        let mut known = self.known.remove(url).unwrap_or_default();
        known.retain(|it| !judged.contains(it));
        known.extend(claims);
        if !known.is_empty() && self.known.len() < BROKERS_MAX {
            self.known.insert(url.to_owned(), known);
        }
    }

    /// Returns what the broker at an address has claimed.
    pub(super) fn of(&self, url: &str) -> BTreeSet<&'static str> {
        self.known.get(url).cloned().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_claim_is_remembered_until_the_next_answer_and_of_few_brokers() {
        let mut excess = Excess::default();
        excess.set("http://a/", &OF_ANSWERS, [HITS, TOTAL]);
        excess.set("http://a/", &[STATISTICS], [STATISTICS]);
        assert_eq!(excess.of("http://a/"), BTreeSet::from([HITS, TOTAL, STATISTICS]));
        excess.set("http://a/", &OF_ANSWERS, [HITS]);
        assert_eq!(excess.of("http://a/"), BTreeSet::from([HITS, STATISTICS]));
        assert!(excess.of("http://b/").is_empty());
        (0..2 * BROKERS_MAX)
            .for_each(|it| excess.set(&format!("http://{it}/"), &OF_ANSWERS, [HITS]));
        assert_eq!(excess.known.len(), BROKERS_MAX);
        (0..2 * BROKERS_MAX).for_each(|it| excess.set(&format!("http://{it}/"), &OF_ANSWERS, []));
        assert_eq!(excess.known.len(), 1, "who claims nothing takes no room");
    }
}
