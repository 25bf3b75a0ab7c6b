//! The redirects of a pass, by which those that lead in a circle are noticed.
//!
//! Sans-I/O.

use std::collections::HashMap;

use url::Url;

/// Maximum number of redirects that are remembered.
const MOVED_MAX: usize = 100_000;

/// Maximum number of redirects in a circle that is noticed.
const CIRCLE_MAX: usize = 10;

/// The redirects of a pass.
#[derive(Debug, Default)]
pub(super) struct Moved {
    to: HashMap<Url, Url>,
}

impl Moved {
    /// Notes a redirect; returns whether redirects lead from `url` back to it.
    pub(super) fn note(&mut self, url: &Url, to: &Url) -> bool {
        if self.to.len() < MOVED_MAX {
            self.to.insert(url.clone(), to.clone());
        }
        let mut at = Some(to);
        for _ in 0..CIRCLE_MAX {
            if at == Some(url) {
                return true;
            }
            at = at.and_then(|it| self.to.get(it));
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn circles_are_noticed_by_the_last_of_their_redirects() {
        let [a, b, c, d] =
            ["a", "b", "c", "d"].map(|it| Url::parse(&format!("http://h.example/{it}")).unwrap());
        let mut moved = Moved::default();
        assert!(moved.note(&d, &d), "alone");
        assert!(!moved.note(&a, &b) && !moved.note(&b, &c));
        assert!(moved.note(&c, &a));
        assert!(!moved.note(&Url::parse("http://h.example/x").unwrap(), &a), "into a circle");
    }
}
