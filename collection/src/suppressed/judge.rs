//! Judging the notices that sources send: whose word they are, for which objects it counts, and how
//! much of it is taken.
//!
//! A notice is the word of a gatherer if it is signed with the key that the gatherer's id is made of:
//! then it counts for that gatherer's objects, whoever passes it on. It is the word of a source whose
//! takedowns count for all if it is signed with the key that the source says is its own. All others are
//! deletes like any other. What a source may have on the list, and have checked in an hour, is
//! bounded, so that none can take up the room or the time of the others.
//!
//! Source: ours.
//!
//! Sans-I/O.

use std::collections::{BTreeSet, HashMap};

use super::{Scope, Share, Suppressed};
use crate::change::{Oid, Stamp};
use crate::notice::Notice;

/// Most notices on the list before no new ones are taken from others; what an administrator says here
/// is always taken, and so is a later word on what is on the list.
const NOTICES_MAX: usize = 100_000;
/// Most of them that one source may have brought, unless its takedowns count for all.
const NOTICES_PER_SOURCE_MAX: usize = 10_000;
/// Most patterns among them: each is compared with every record of its gatherer, or of all.
const PATTERNS_MAX: usize = 1_000;
/// Most patterns that one source may have brought, unless its takedowns count for all.
const PATTERNS_PER_SOURCE_MAX: usize = 100;
/// Longest pattern that such a source may bring, in bytes.
const PATTERN_BYTES_MAX: usize = 1_000;
/// Most `*` in it.
const STARS_MAX: usize = 8;
/// Most signatures that are checked for such a source in an hour (about two seconds' work).
const CHECKS_AN_HOUR_MAX: u32 = 20_000;
/// Most of those that are of patterns: for each one all objects may have to be looked through.
const PATTERNS_AN_HOUR_MAX: u32 = 200;
/// An hour, in milliseconds.
const HOUR_MS: u64 = 3_600_000;
/// How far ahead of the clock a notice may be dated, in milliseconds: a day. What is dated later could
/// not be taken back before then.
const AHEAD_MS_MAX: u64 = 24 * HOUR_MS;

/// What is to be done about a notice that a source sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// It is on the list, in force, and counts for the object.
    Known,
    /// It is to be put on the list.
    Take(Scope),
    /// The tombstone is like any other.
    Plain,
}

/// What is known of the sources.
#[derive(Debug, Default)]
pub(crate) struct Watched {
    /// Those whose takedowns count for all.
    pub(crate) trusted: BTreeSet<String>,
    /// The keys that they say are theirs; ours under no name.
    pub(crate) keys: HashMap<String, String>,
    hours: HashMap<String, Hour>,
}

/// What a source has done in an hour.
#[derive(Clone, Copy, Debug, Default)]
struct Hour {
    began: Stamp,
    checks: u32,
    patterns: u32,
    /// Whether the log has been told that something is wrong with what it sends.
    is_told: bool,
}

impl Watched {
    /// Whether what `key` has signed counts for all.
    fn trusts(&self, key: &str) -> bool {
        let mut sources = self.trusted.iter().map(String::as_str).chain([""]);
        sources.any(|it| self.keys.get(it).is_some_and(|it| it == key))
    }

    fn hour(&mut self, source: &str, now: Stamp) -> &mut Hour {
        let hour = self.hours.entry(source.to_owned()).or_default();
        // A clock that was set back begins another hour, too.
        if now < hour.began || HOUR_MS <= now.0 - hour.began.0 {
            *hour = Hour { began: now, ..Hour::default() };
        }
        hour
    }
}

impl Suppressed {
    /// Says what is to be done about a notice that `source` sends on the tombstone of `oid`.
    pub(crate) fn judge(
        &mut self,
        source: &str,
        notice: &Notice,
        oid: &Oid,
        now: Stamp,
    ) -> Verdict {
        let is_carrier = *oid == notice.carrier();
        let trusts = self.watched.trusts(&notice.key);
        if let Some(known) = self.of(notice).filter(|it| notice.at <= it.notice.at) {
            let is_same = known.notice == *notice && notice.is_at_home(oid);
            return match () {
                () if is_same && known.active && trusts && known.scope < Scope::All => {
                    Verdict::Take(Scope::All)
                }
                () if is_same && known.active && (is_carrier || known.covers(oid)) => {
                    Verdict::Known
                }
                () => Verdict::Plain,
            };
        }
        let is_bounded = !self.watched.trusted.contains(source);
        let (checks, patterns) = {
            let hour = self.watched.hour(source, now);
            hour.checks = hour.checks.saturating_add(1);
            hour.patterns = hour.patterns.saturating_add(u32::from(notice.subject.is_pattern()));
            (hour.checks, hour.patterns)
        };
        if is_bounded && (CHECKS_AN_HOUR_MAX < checks || PATTERNS_AN_HOUR_MAX < patterns) {
            return self.surplus(source, "too many notices in an hour", now);
        }
        let wrong = match () {
            () if !notice.is_at_home(oid) => Some("it is about something else"),
            () if !notice.is_genuine() => Some("its signature is wrong"),
            () if now.0.saturating_add(AHEAD_MS_MAX) < notice.at.0 => {
                Some("it is dated more than a day ahead")
            }
            () if !trusts && !notice.is_of_signer() => {
                Some("it is not signed with the key that its signer's id is made of")
            }
            () => None,
        };
        if let Some(why) = wrong {
            return self.forged(source, oid, why, now);
        }
        let is_own = is_carrier || oid.gatherer == notice.by;
        if !trusts && !is_own {
            return Verdict::Plain;
        }
        if let Some(of_what) = self.excess(source, notice, is_bounded) {
            return self.surplus(source, of_what, now);
        }
        Verdict::Take(if trusts { Scope::All } else { Scope::Own })
    }

    /// Says of what there would be too much on the list with this notice; `None` if there is room.
    fn excess(&self, source: &str, notice: &Notice, is_bounded: bool) -> Option<&'static str> {
        let known = self.of(notice);
        let share = self.shares.get(source).copied().filter(|_| is_bounded);
        let share = share.unwrap_or(Share { notices: 0, patterns: 0 });
        let is_full = NOTICES_MAX <= self.list.len() || NOTICES_PER_SOURCE_MAX <= share.notices;
        if known.is_none() && is_full {
            return Some("too many notices on the list");
        }
        if notice.lifted || !notice.subject.is_pattern() {
            return None;
        }
        let url = &notice.subject.url;
        let stars = url.bytes().filter(|it| *it == b'*').count();
        if is_bounded && (PATTERN_BYTES_MAX < url.len() || STARS_MAX < stars) {
            return Some("a pattern of more than 1,000 bytes or 8 `*`");
        }
        let all: usize = self.shares.values().map(|it| it.patterns).sum();
        let is_full = PATTERNS_MAX <= all || PATTERNS_PER_SOURCE_MAX <= share.patterns;
        let is_new = known.is_none_or(|it| it.notice.lifted);
        (is_new && is_full).then_some("too many patterns on the list")
    }

    fn forged(&mut self, source: &str, oid: &Oid, why: &str, now: Stamp) -> Verdict {
        self.counts.forged += 1;
        self.counts.last_forged = Some(format!("{oid}: {why}"));
        if self.is_to_tell(source, now) {
            tracing::warn!(source, %oid, why, "a notice is not genuine; it is a delete like any other");
        }
        Verdict::Plain
    }

    fn surplus(&mut self, source: &str, of_what: &str, now: Stamp) -> Verdict {
        self.counts.surplus += 1;
        self.counts.last_surplus = Some(format!("source {source}: {of_what}"));
        if self.is_to_tell(source, now) {
            tracing::warn!(source, of_what, "a notice is not taken; it is a delete like any other");
        }
        Verdict::Plain
    }

    /// Whether the log is to be told of what a source does: once in an hour.
    fn is_to_tell(&mut self, source: &str, now: Stamp) -> bool {
        !std::mem::replace(&mut self.watched.hour(source, now).is_told, true)
    }
}
