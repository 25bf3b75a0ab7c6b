//! Traps: places that have endlessly many URLs, such as calendars, session ids and paths that
//! repeat themselves.
//!
//! New URLs are counted by prefix, with a cap by kind of prefix. What is beyond is refused and
//! reported. Only prefixes' hashes are kept: two with the same 32 bits count together.
//!
//! Sans-I/O.

use std::hash::{BuildHasher as _, RandomState};

use hashbrown::HashTable;
use url::Url;

use crate::key::origin;

/// Maximum number of reported traps.
pub const TRAPS_MAX: usize = 1_000;

/// What a trap is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TrapKind {
    /// Pages of days, weeks or months.
    Calendar,
    /// A path that is too deep, or has the same part too often.
    Endless,
    /// The same page under ever new names of a session.
    Session,
    /// Too many URLs in one folder, or of one page with other queries.
    Crowd,
}

/// Caps on the number of new URLs by prefix; 0: none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TrapLimits {
    /// URLs of one calendar.
    pub calendar_urls_max: u32,
    /// URLs of one page with names of sessions.
    pub session_urls_max: u32,
    /// URLs in one folder, or of one page with other queries.
    pub crowd_urls_max: u32,
    /// Parts of a path.
    pub parts_max: usize,
    /// Equal parts of a path.
    pub equal_parts_max: usize,
}

impl Default for TrapLimits {
    fn default() -> Self {
        Self {
            calendar_urls_max: 1_000,
            session_urls_max: 20,
            crowd_urls_max: 10_000,
            parts_max: 32,
            equal_parts_max: 3,
        }
    }
}

/// A trap in which the crawl no longer goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trap {
    /// What it is made of.
    pub kind: TrapKind,
    /// The beginning that all its URLs have.
    pub prefix: String,
    /// Number of URLs that were refused; a URL counts each time that it is found.
    pub count: u64,
    /// The first of them.
    pub example: String,
}

/// The counts of all prefixes.
#[derive(Debug)]
pub(super) struct Traps {
    limits: TrapLimits,
    /// Hash of a prefix, and number of its URLs.
    counts: HashTable<(u32, u32)>,
    hasher: RandomState,
    found: Vec<Trap>,
}

impl Traps {
    pub(super) fn new(limits: TrapLimits) -> Self {
        let (counts, hasher) = (HashTable::new(), RandomState::new());
        Self { limits, counts, hasher, found: Vec::new() }
    }

    /// Returns the traps, in the order in which they were found.
    pub(super) fn found(&self) -> &[Trap] {
        &self.found
    }

    /// Returns in what kind of trap a new URL is.
    pub(super) fn holds(&self, url: &Url) -> Option<TrapKind> {
        let (kind, prefix) = classify(url, &self.limits);
        let hash = self.hash(&prefix);
        let count = self.counts.find(spread(hash), |it| it.0 == hash).map_or(0, |it| it.1);
        (self.max(kind) <= count).then_some(kind)
    }

    /// Counts a new URL.
    ///
    /// # Errors
    ///
    /// It is in a trap, which is reported.
    pub(super) fn admit(&mut self, url: &Url) -> Result<(), TrapKind> {
        let (kind, prefix) = classify(url, &self.limits);
        let hash = self.hash(&prefix);
        let max = self.max(kind);
        let entry = self.counts.entry(spread(hash), |it| it.0 == hash, |it| spread(it.0));
        let count = &mut entry.or_insert((hash, 0)).into_mut().1;
        if *count < max {
            *count += 1;
            return Ok(());
        }
        let known = self.found.iter_mut().find(|it| it.kind == kind && it.prefix == prefix);
        if let Some(known) = known {
            known.count += 1;
        } else if self.found.len() < TRAPS_MAX {
            self.found.push(Trap { kind, prefix, count: 1, example: url.as_str().to_owned() });
        }
        Err(kind)
    }

    fn max(&self, kind: TrapKind) -> u32 {
        let max = match kind {
            TrapKind::Endless => return 0,
            TrapKind::Calendar => self.limits.calendar_urls_max,
            TrapKind::Session => self.limits.session_urls_max,
            TrapKind::Crowd => self.limits.crowd_urls_max,
        };
        if max == 0 { u32::MAX } else { max }
    }

    fn hash(&self, prefix: &str) -> u32 {
        // The upper half is as random as the whole.
        u32::try_from(self.hasher.hash_one(prefix) >> 32).unwrap_or_default()
    }

    pub(super) fn bytes(&self) -> usize {
        self.counts.allocation_size()
    }
}

/// Returns the hash by which a table places a short one.
fn spread(hash: u32) -> u64 {
    u64::from(hash).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

/// Returns what a URL is counted as, and under which prefix.
fn classify(url: &Url, limits: &TrapLimits) -> (TrapKind, String) {
    let (path, query) = (url.path(), url.query().unwrap_or_default());
    let origin = origin(url);
    if let Some(end) = endless(path, limits) {
        return (TrapKind::Endless, origin + path.get(..end).unwrap_or(path));
    }
    if let Some((page, _)) = path.to_ascii_lowercase().split_once(";jsessionid=") {
        return (TrapKind::Session, origin + path.get(..page.len()).unwrap_or(path));
    }
    for (name, value) in query.split('&').map(|it| it.split_once('=').unwrap_or((it, ""))) {
        let name = name.to_ascii_lowercase();
        if is_session(&name, value) {
            return (TrapKind::Session, format!("{origin}{path}?{name}"));
        }
        if DATES.contains(&name.as_str()) {
            return (TrapKind::Calendar, format!("{origin}{path}?"));
        }
    }
    if let Some(end) = calendar(path) {
        return (TrapKind::Calendar, origin + path.get(..end).unwrap_or(path));
    }
    if query.is_empty() {
        let end = path.rfind('/').map_or(0, |it| it + 1);
        (TrapKind::Crowd, origin + path.get(..end).unwrap_or_default())
    } else {
        (TrapKind::Crowd, format!("{origin}{path}?"))
    }
}

/// Names of parameters of calendars, in lower case.
const DATES: [&str; 11] = [
    "year",
    "month",
    "day",
    "week",
    "date",
    "yyyy",
    "cal_date",
    "calendar",
    "tribe-bar-date",
    "startdate",
    "time",
];

/// Returns whether a parameter (its name in lower case) names a session.
fn is_session(name: &str, value: &str) -> bool {
    const NAMES: [&str; 8] = [
        "phpsessid",
        "jsessionid",
        "sessionid",
        "session_id",
        "cftoken",
        "zenid",
        "oscsid",
        "sessid",
    ];
    let is_token = || 16 <= value.len() && value.bytes().all(|it| it.is_ascii_alphanumeric());
    NAMES.contains(&name) || name.starts_with("aspsessionid") || (name == "sid" && is_token())
}

/// Returns where the part begins that makes a path too deep, or that it has too often.
fn endless(path: &str, limits: &TrapLimits) -> Option<usize> {
    let mut parts: Vec<(&str, usize)> = Vec::new();
    let mut at = 0;
    for part in path.split('/') {
        if limits.parts_max != 0 && limits.parts_max < parts.len() {
            // What is common to all that goes on from there.
            return parts.get(limits.parts_max / 4).map(|it| it.1);
        }
        let is_name = part.contains(|it: char| it.is_ascii_alphabetic());
        let mut equal = parts.iter().filter(|it| it.0 == part);
        if is_name
            && limits.equal_parts_max != 0
            && let Some(last) = equal.nth(limits.equal_parts_max - 1)
        {
            let first = parts.iter().find(|it| it.0 == part).unwrap_or(last);
            return Some(first.1);
        }
        if !part.is_empty() {
            parts.push((part, at));
        }
        at += part.len() + 1;
    }
    None
}

/// Returns where the year begins in a path with a year and a month.
fn calendar(path: &str) -> Option<usize> {
    let mut at = 0;
    let mut year_at = None;
    for part in path.split('/') {
        let number = part.parse::<u16>().ok().filter(|_| part.len() <= 4);
        match (number, year_at) {
            (Some(1..=12), Some(_)) => return year_at,
            (Some(1900..=2999), _) if part.len() == 4 => year_at = Some(at),
            _ => year_at = None,
        }
        at += part.len() + 1;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(url: &str, kind: TrapKind, prefix: &str) {
        let found = classify(&Url::parse(url).unwrap(), &TrapLimits::default());
        assert_eq!(found, (kind, prefix.to_owned()), "{url}");
    }

    #[test]
    fn prefixes_are_by_kind() {
        use TrapKind::{Calendar, Crowd, Endless, Session};
        check("http://h/", Crowd, "http://h/");
        check("http://h/d/a", Crowd, "http://h/d/");
        check("http://h/d/a?b=c", Crowd, "http://h/d/a?");
        check("http://h/d/?b=c", Crowd, "http://h/d/?");
        check("http://h:81/?b", Crowd, "http://h:81/?");
        check("http://h/e/2026/11/27", Calendar, "http://h/e/");
        check("http://h/e/2026/talk", Crowd, "http://h/e/2026/");
        check("http://h/e/2026/13", Crowd, "http://h/e/2026/");
        check("http://h/e?x=1&Month=3", Calendar, "http://h/e?");
        check("http://h/a;jsessionid=1A", Session, "http://h/a");
        check("http://h/a?PHPSESSID=1", Session, "http://h/a?phpsessid");
        check("http://h/a?sid=0123456789abcdef", Session, "http://h/a?sid");
        check("http://h/a?sid=12", Crowd, "http://h/a?");
        check("http://h/x/a/b/a/b/a/b/a/b", Endless, "http://h/x/");
        check("http://h/x/a/b/a/b/a/b", Crowd, "http://h/x/a/b/a/b/a/");
        check("http://h/1/1/1/1/1/1", Crowd, "http://h/1/1/1/1/1/");
        let deep = (0..40).map(|it| format!("/p{it}")).collect::<String>();
        check(&format!("http://h{deep}"), Endless, "http://h/p0/p1/p2/p3/p4/p5/p6/p7/");
    }

    #[test]
    fn a_trap_is_closed_and_reported_once() {
        let mut traps = Traps::new(TrapLimits { calendar_urls_max: 3, ..TrapLimits::default() });
        let day = |n: u32| Url::parse(&format!("http://h/cal/2026/11/{n}")).unwrap();
        for n in 0..3 {
            assert_eq!(traps.holds(&day(n)), None);
            assert_eq!(traps.admit(&day(n)), Ok(()));
        }
        for n in 3..10 {
            assert_eq!(traps.holds(&day(n)), Some(TrapKind::Calendar));
            assert_eq!(traps.admit(&day(n)), Err(TrapKind::Calendar));
        }
        let other = Url::parse("http://h/other/2026/11/1").unwrap();
        assert_eq!(traps.admit(&other), Ok(()));
        let expected = Trap {
            kind: TrapKind::Calendar,
            prefix: "http://h/cal/".to_owned(),
            count: 7,
            example: "http://h/cal/2026/11/3".to_owned(),
        };
        assert_eq!(traps.found(), [expected]);
    }

    #[test]
    fn no_cap_is_no_trap() {
        let limits = TrapLimits {
            calendar_urls_max: 0,
            session_urls_max: 0,
            crowd_urls_max: 0,
            parts_max: 0,
            equal_parts_max: 0,
        };
        let mut traps = Traps::new(limits);
        let deep = Url::parse(&format!("http://h{}", "/a".repeat(100))).unwrap();
        for _ in 0..100 {
            assert_eq!(traps.admit(&deep), Ok(()));
        }
    }
}
