//! The identifiers and tokens that a list has brought so far, and the records that the harvest has
//! counted, in bounded memory.

use std::collections::HashSet;

use super::settings::short_sum;

/// Maximum number of remembered identifiers of one list, and of one harvest; later ones count as
/// new.
const DISTINCT_MAX: usize = 262_144;

/// Maximum number of remembered tokens of one list. A loop of at most this number of tokens is
/// noticed wherever it begins.
const TOKENS_MAX: usize = 65_536;

/// The identifiers and tokens of one list, and the counted records of the harvest.
#[derive(Clone, Debug, Default)]
pub(super) struct Seen {
    identifiers: HashSet<u64>,
    tokens: HashSet<u64>,
    counted: HashSet<u64>,
}

impl Seen {
    /// Begins a list; `token` has been handed out already.
    pub(super) fn begin(&mut self, token: Option<&str>) {
        self.identifiers.clear();
        self.tokens.clear();
        if let Some(token) = token {
            self.is_new_token(token);
        }
    }

    /// Adds an item; returns true if the list brings it for the first time.
    pub(super) fn is_new(&mut self, identifier: &str) -> bool {
        is_added(&mut self.identifiers, identifier)
    }

    /// Counts a record; returns true if the harvest has not counted it before. A page may come
    /// again: by another token, after a restart of its window, or in another set.
    pub(super) fn is_uncounted(&mut self, identifier: &str) -> bool {
        is_added(&mut self.counted, identifier)
    }

    /// Adds a token; returns true if the list hands it out for the first time.
    pub(super) fn is_new_token(&mut self, token: &str) -> bool {
        if self.tokens.len() == TOKENS_MAX && !self.tokens.contains(&short_sum(token.as_bytes())) {
            self.tokens.clear();
        }
        self.tokens.insert(short_sum(token.as_bytes()))
    }
}

fn is_added(all: &mut HashSet<u64>, identifier: &str) -> bool {
    let sum = short_sum(identifier.as_bytes());
    if all.len() < DISTINCT_MAX { all.insert(sum) } else { !all.contains(&sum) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_loop_is_noticed_wherever_it_begins() {
        let mut seen = Seen::default();
        seen.begin(Some("0"));
        let begin = 3 * TOKENS_MAX / 2;
        assert!((1..begin).all(|it| seen.is_new_token(&it.to_string())));
        let round: Vec<bool> = (begin..begin + 1_000)
            .cycle()
            .take(2_000)
            .map(|it| seen.is_new_token(&it.to_string()))
            .collect();
        assert_eq!(round.iter().position(|it| !it), Some(1_000));
    }

    #[test]
    fn items_are_remembered_up_to_a_bound() {
        let mut seen = Seen::default();
        assert!((0..DISTINCT_MAX).all(|it| seen.is_new(&it.to_string())));
        assert!(!seen.is_new("7"));
        assert!(seen.is_new("more") && seen.is_new("more"));
        seen.begin(None);
        assert!(seen.is_new("7"));
    }
}
