//! The redirects of a pass, by which those that lead in a circle are noticed, and the known pages that are redirected.
//!
//! Sans-I/O.

use std::collections::HashMap;

use url::{Position, Url};

use super::Kept;
use crate::validator::Validator;

/// Maximum number of redirects that are remembered.
const MOVED_MAX: usize = 100_000;

/// Maximum number of redirects in a circle that is noticed.
const CIRCLE_MAX: usize = 10;

/// Number of known pages from which on, if they lead to one place, that is no page to which they have moved, but one
/// that stands before all of them, such as a login.
const ALIKE_MIN: usize = 3;

/// A page with records that was only elsewhere when it was asked for. What becomes of them is decided at the end of
/// the pass.
#[derive(Debug)]
pub(super) struct Redirected {
    pub(super) url: Url,
    pub(super) depth: u16,
    pub(super) at_ms: u64,
    pub(super) validator: Validator,
    /// Whether its host says that this is for good.
    pub(super) is_permanent: bool,
    /// The answer, in words.
    pub(super) without: Option<String>,
    /// Keeps the answer in the spool.
    pub(super) kept: Option<Kept>,
}

/// The redirects of a pass.
#[derive(Debug, Default)]
pub(super) struct Moved {
    to: HashMap<Url, Url>,
    waiting: Vec<Redirected>,
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

    /// Lets a page wait for the end of the pass; returns whether its redirect is remembered.
    pub(super) fn wait(&mut self, page: Redirected) -> bool {
        let is_remembered = self.to.contains_key(&page.url);
        if is_remembered {
            self.waiting.push(page);
        }
        is_remembered
    }

    /// Returns the pages that wait.
    pub(super) fn take(&mut self) -> Vec<Redirected> {
        std::mem::take(&mut self.waiting)
    }

    /// Returns where `url` is redirected.
    pub(super) fn next_of(&self, url: &Url) -> Option<&Url> {
        self.to.get(url)
    }

    /// Returns where redirects lead from `url` in the end; `None`: nowhere.
    pub(super) fn end_of(&self, url: &Url) -> Option<&Url> {
        let mut at = self.to.get(url)?;
        for _ in 0..CIRCLE_MAX {
            let Some(next) = self.to.get(at) else { return Some(at) };
            at = next;
        }
        None
    }

    /// Returns the places, without their queries, to which so many of these pages lead that they count as turned to
    /// one, each with their number.
    pub(super) fn alike(&self, pages: &[Redirected]) -> HashMap<String, usize> {
        let mut counts: HashMap<String, usize> = HashMap::new();
        for end in pages.iter().filter_map(|it| self.end_of(&it.url)) {
            *counts.entry(place(end).to_owned()).or_default() += 1;
        }
        counts.retain(|_, it| ALIKE_MIN <= *it);
        counts
    }
}

/// Returns a URL without its query and fragment: those of a login name the page that was asked for.
pub(super) fn place(url: &Url) -> &str {
    &url[..Position::AfterPath]
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

    #[test]
    fn known_pages_that_lead_to_one_place_are_counted() {
        let url = |path: &str| Url::parse(&format!("http://h.example/{path}")).unwrap();
        let page = |path: &str| Redirected {
            url: url(path),
            depth: 1,
            at_ms: 1,
            validator: Validator::Http { etag: None, last_modified: None, md5: String::new() },
            is_permanent: false,
            without: None,
            kept: None,
        };
        let mut moved = Moved::default();
        let redirects =
            [("a", "login?a"), ("b", "sso"), ("sso", "login?b"), ("c", "login#c"), ("d", "new")];
        for (from, to) in redirects.iter().chain(&[("e", "f"), ("f", "e")]) {
            moved.note(&url(from), &url(to));
        }
        assert!(!moved.wait(page("unknown")));
        for path in ["a", "b", "c", "d", "e"] {
            assert!(moved.wait(page(path)));
        }
        let waiting = moved.take();
        assert_eq!((waiting.len(), moved.take().len()), (5, 0));
        let alike = moved.alike(&waiting);
        assert_eq!(alike.len(), 1, "{alike:?}");
        assert_eq!(alike.get(place(&url("login?x"))), Some(&3));
        assert!(moved.alike(&waiting[1..]).is_empty(), "two may have moved");
        assert_eq!(moved.next_of(&url("b")), Some(&url("sso")));
        assert_eq!(moved.end_of(&url("b")), Some(&url("login?b")));
        assert_eq!(moved.end_of(&url("e")), None, "in a circle");
    }
}
