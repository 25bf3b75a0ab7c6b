//! Judgment of the notices that sources send: signer, scope and limits.
//!
//! A notice belongs to a gatherer if it is signed with the key from which the gatherer's id is
//! derived. Then it counts for that gatherer's objects, whoever passes it on. It counts for all
//! objects if it is signed with the key that a trusted source names as its own. All other notices
//! are treated as plain deletes. Each source has limits on the notices on the list and on those
//! checked in an hour, so no source can use up the space or the time of the others.
//!
//! Source: ours.
//!
//! Sans-I/O.

use std::collections::{BTreeSet, HashMap};

use super::{Scope, Share, Suppressed};
use crate::change::{Oid, Stamp};
use crate::notice::Notice;

/// Maximum number of notices on the list; beyond it new notices from sources are refused. Local
/// notices are always taken, and so are later notices on a listed subject.
const NOTICES_MAX: usize = 100_000;
/// Maximum number of notices from one source, unless its takedowns count for all.
const NOTICES_PER_SOURCE_MAX: usize = 10_000;
/// Maximum number of patterns on the list: each is compared with every record of its gatherer, or
/// with all records.
const PATTERNS_MAX: usize = 1_000;
/// Maximum number of patterns from one source, unless its takedowns count for all.
const PATTERNS_PER_SOURCE_MAX: usize = 100;
/// Maximum length of a pattern from a source whose takedowns do not count for all, in bytes.
const PATTERN_BYTES_MAX: usize = 1_000;
/// Maximum number of `*` in such a pattern.
const STARS_MAX: usize = 8;
/// Maximum number of signatures checked for such a source in an hour (about two seconds of work).
const CHECKS_AN_HOUR_MAX: u32 = 20_000;
/// Maximum number of notices with patterns checked for such a source in an hour: each may require a
/// search through all objects.
const PATTERNS_AN_HOUR_MAX: u32 = 200;
const HOUR_MS: u64 = 3_600_000;
/// Maximum time by which a notice's date may be ahead of the clock, in milliseconds: a day. A
/// notice cannot be lifted before its date.
const AHEAD_MS_MAX: u64 = 24 * HOUR_MS;

/// The decision about a notice from a source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// It is on the list already, in force, and counts for the object.
    Known,
    /// It is added to the list.
    Take(Scope),
    /// It is ignored: the tombstone is a plain delete.
    Plain,
}

/// The keys of sources, and their use of the limits.
#[derive(Debug, Default)]
pub(crate) struct SourceTrust {
    /// Sources whose takedowns count for all.
    pub(crate) trusted: BTreeSet<String>,
    /// The keys that sources name as their own, by source; the empty name has our own key.
    pub(crate) keys: HashMap<String, String>,
    hours: HashMap<String, Hour>,
}

/// A source's use of the limits in an hour.
#[derive(Clone, Copy, Debug, Default)]
struct Hour {
    began: Stamp,
    checks: u32,
    patterns: u32,
    /// Whether the log has a warning about this source in this hour.
    is_logged: bool,
}

impl SourceTrust {
    /// Returns whether notices signed with `key` count for all objects.
    fn trusts(&self, key: &str) -> bool {
        let mut sources = self.trusted.iter().map(String::as_str).chain([""]);
        sources.any(|it| self.keys.get(it).is_some_and(|it| it == key))
    }

    fn hour(&mut self, source: &str, now: Stamp) -> &mut Hour {
        let hour = self.hours.entry(source.to_owned()).or_default();
        // A new hour also begins if the clock was set back.
        if now < hour.began || HOUR_MS <= now.0 - hour.began.0 {
            *hour = Hour { began: now, ..Hour::default() };
        }
        hour
    }
}

impl Suppressed {
    /// Decides about a notice from `source` on the tombstone of `oid`.
    pub(crate) fn judge(
        &mut self,
        source: &str,
        notice: &Notice,
        oid: &Oid,
        now: Stamp,
    ) -> Verdict {
        let is_carrier = *oid == notice.carrier();
        let trusts = self.trust.trusts(&notice.key);
        if let Some(known) = self.latest(notice).filter(|it| notice.at <= it.notice.at) {
            let is_same = known.notice == *notice && notice.fits_tombstone(oid);
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
        let is_bounded = !self.trust.trusted.contains(source);
        let (checks, patterns) = {
            let hour = self.trust.hour(source, now);
            hour.checks = hour.checks.saturating_add(1);
            hour.patterns = hour.patterns.saturating_add(u32::from(notice.subject.is_pattern()));
            (hour.checks, hour.patterns)
        };
        if is_bounded && (CHECKS_AN_HOUR_MAX < checks || PATTERNS_AN_HOUR_MAX < patterns) {
            return self.surplus(source, "too many notices in an hour", now);
        }
        let wrong = match () {
            () if !notice.fits_tombstone(oid) => Some("it is about something else"),
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

    /// Returns the limit that this notice would exceed; `None` if it exceeds none.
    fn excess(&self, source: &str, notice: &Notice, is_bounded: bool) -> Option<&'static str> {
        let known = self.latest(notice);
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
        if self.should_log(source, now) {
            tracing::warn!(source, %oid, why, "a notice is not genuine; it is a plain delete");
        }
        Verdict::Plain
    }

    fn surplus(&mut self, source: &str, of_what: &str, now: Stamp) -> Verdict {
        self.counts.surplus += 1;
        self.counts.last_surplus = Some(format!("source {source}: {of_what}"));
        if self.should_log(source, now) {
            tracing::warn!(source, of_what, "a notice exceeds a limit; it is a plain delete");
        }
        Verdict::Plain
    }

    /// Returns whether to log a warning about a source: only once in an hour.
    fn should_log(&mut self, source: &str, now: Stamp) -> bool {
        !std::mem::replace(&mut self.trust.hour(source, now).is_logged, true)
    }
}
