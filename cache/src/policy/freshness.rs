//! Freshness: how old an answer is, how long it may be used, and how long after that.
//!
//! Source: RFC 9111 §4.2 (freshness, age, heuristics), RFC 5861 (stale answers); TR §9 (lifetimes by
//! pattern). Ages are reckoned in milliseconds, from times of this machine alone but for `Date`.
//!
//! # Differences from the original
//!
//! The original gave every object the lifetime of its pattern. Here what the origin says comes first;
//! patterns bound the guess about answers of which it says nothing.
//!
//! Sans-I/O.

use std::fmt;

use http::{HeaderMap, HeaderName, StatusCode, header};
use net::client::http_date;

use super::control::{Control, Scope, seconds};
use super::targeted;

/// How long after its lifetime an answer is used while its origin fails and has not said how long, in
/// seconds: a week, as long as Squid does.
const STALE_ON_ERROR: u32 = 7 * 86_400;

/// How the lifetime of an answer is guessed whose origin says nothing of it: `percent` of its age
/// when it came, but not less than `min` and not more than `max`. In seconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Guess {
    /// Shortest lifetime; also that of answers that do not say when they were last changed.
    pub min: u32,
    /// Share of the age, in percent.
    pub percent: u32,
    /// Longest lifetime.
    pub max: u32,
}

impl Default for Guess {
    /// A tenth of the age (RFC 9111 §4.2.2), at most a day.
    fn default() -> Self {
        Self { min: 0, percent: 10, max: 86_400 }
    }
}

/// What the settings say of the answers of a URL.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rules {
    /// How their lifetime is guessed.
    pub guess: Guess,
    /// Lifetime of answers that something is not there, where the origin says nothing of it, in seconds.
    pub negative: u32,
    /// Whether the cache stands before the URL's origin, on its behalf: `CDN-Cache-Control` counts.
    pub is_before_origin: bool,
}

impl Default for Rules {
    fn default() -> Self {
        Self { guess: Guess::default(), negative: 60, is_before_origin: false }
    }
}

/// When a request was sent, and when the head of its answer had come, in Unix milliseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Times {
    /// The request.
    pub sent_ms: u64,
    /// The answer.
    pub came_ms: u64,
}

/// What gave an answer its lifetime.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Basis {
    /// `s-maxage`.
    SharedMaxAge,
    /// `max-age`.
    MaxAge,
    /// `Expires`.
    Expires,
    /// The time since its last change, by a [`Guess`].
    LastModified,
    /// The settings alone: the least lifetime of a [`Guess`], or that of negative answers.
    Settings,
    /// Nothing.
    Nothing,
}

impl Basis {
    /// All, in order.
    pub(crate) const ALL: [Self; 6] = [
        Self::SharedMaxAge,
        Self::MaxAge,
        Self::Expires,
        Self::LastModified,
        Self::Settings,
        Self::Nothing,
    ];
}

impl fmt::Display for Basis {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::SharedMaxAge => "s-maxage",
            Self::MaxAge => "max-age",
            Self::Expires => "Expires",
            Self::LastModified => "a guess by its last change",
            Self::Settings => "the settings",
            Self::Nothing => "nothing",
        })
    }
}

/// The terms on which an answer is used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Terms {
    /// What the origin says.
    pub control: Control,
    /// Lifetime, in seconds.
    pub lifetime: u32,
    /// What gave it.
    pub basis: Basis,
    /// Its age when it came, in milliseconds.
    pub(crate) initial_age_ms: u64,
    /// When it came, in Unix milliseconds.
    pub(crate) came_ms: u64,
}

impl Terms {
    /// Returns the terms of an answer.
    pub fn of(status: StatusCode, headers: &HeaderMap, times: Times, rules: &Rules) -> Self {
        let control = control_for(headers, rules);
        let (lifetime, basis) = lifetime(status, headers, &control, times, rules);
        Self {
            lifetime,
            basis,
            initial_age_ms: initial_age_ms(headers, times),
            came_ms: times.came_ms,
            control,
        }
    }

    /// Returns the age, in whole seconds, as `Age` says it.
    pub fn age(&self, now_ms: u64) -> u64 {
        self.age_ms(now_ms) / 1_000
    }

    /// Returns the age, in milliseconds.
    pub fn age_ms(&self, now_ms: u64) -> u64 {
        // A clock that was set back makes no answer younger than it was.
        self.initial_age_ms.saturating_add(now_ms.saturating_sub(self.came_ms))
    }

    /// Returns how long it is still fresh, in milliseconds; negative: how long it is stale.
    pub fn left_ms(&self, now_ms: u64) -> i64 {
        let (lifetime, age) = (i64::from(self.lifetime) * 1_000, self.age_ms(now_ms));
        lifetime.saturating_sub(i64::try_from(age).unwrap_or(i64::MAX))
    }

    /// Returns whether it may be used without validation, and stays fresh for `min_fresh` seconds.
    pub fn is_fresh(&self, now_ms: u64, min_fresh: u32) -> bool {
        let left_ms = self.left_ms(now_ms);
        let is_fresh = 0 < left_ms && i64::from(min_fresh) * 1_000 <= left_ms;
        is_fresh && self.control.no_cache != Scope::All
    }

    /// Returns whether it may be used at most `seconds` after its lifetime.
    pub fn may_be_stale(&self, now_ms: u64, seconds: u32) -> bool {
        let never = self.control.must_revalidate || self.control.no_cache == Scope::All;
        !never && -self.left_ms(now_ms) <= i64::from(seconds) * 1_000
    }

    /// Returns whether it may be used while it is validated in the background.
    pub fn may_be_used_meanwhile(&self, now_ms: u64) -> bool {
        let after = self.control.stale_while_revalidate;
        after.is_some_and(|it| self.may_be_stale(now_ms, it))
    }

    /// Returns whether it may be used because the origin fails.
    pub fn may_be_used_instead(&self, now_ms: u64) -> bool {
        self.may_be_stale(now_ms, self.control.stale_if_error.unwrap_or(STALE_ON_ERROR))
    }
}

/// Returns the directives for this cache.
fn control_for(headers: &HeaderMap, rules: &Rules) -> Control {
    let targeted = if rules.is_before_origin { targeted::control(headers) } else { None };
    targeted.unwrap_or_else(|| Control::of(headers))
}

fn lifetime(
    status: StatusCode,
    headers: &HeaderMap,
    control: &Control,
    times: Times,
    rules: &Rules,
) -> (u32, Basis) {
    if let Some(seconds) = control.s_maxage {
        return (seconds, Basis::SharedMaxAge);
    }
    if let Some(seconds) = control.max_age {
        return (seconds, Basis::MaxAge);
    }
    let date = date(headers, &header::DATE).unwrap_or(times.came_ms / 1_000);
    let is_targeted = rules.is_before_origin && targeted::control(headers).is_some();
    // Of several the first counts; what is no date is long ago (RFC 9111 §5.3).
    if headers.contains_key(header::EXPIRES) && !is_targeted {
        let expires = self::date(headers, &header::EXPIRES).unwrap_or(0);
        return (short(expires.saturating_sub(date)), Basis::Expires);
    }
    if !is_guessed(status) && !control.public {
        return (0, Basis::Nothing);
    }
    let Guess { min, percent, max } = rules.guess;
    let is_negative = matches!(status.as_u16(), 404 | 405 | 410 | 414 | 501);
    let least = if is_negative { rules.negative } else { min };
    let changed = self::date(headers, &header::LAST_MODIFIED).filter(|it| *it < date);
    match changed {
        Some(changed) => {
            let share = (date - changed).saturating_mul(u64::from(percent)) / 100;
            (short(share).min(max).max(least), Basis::LastModified)
        }
        None if least == 0 => (0, Basis::Nothing),
        None => (least, Basis::Settings),
    }
}

/// Returns whether the lifetime of such an answer may be guessed (RFC 9110 §15.1).
pub(super) fn is_guessed(status: StatusCode) -> bool {
    let code = status.as_u16();
    matches!(code, 200 | 203 | 204 | 206 | 300 | 301 | 308 | 404 | 405 | 410 | 414 | 501)
}

fn short(seconds: u64) -> u32 {
    u32::try_from(seconds)
        .map_or(super::control::SECONDS_MAX, |it| it.min(super::control::SECONDS_MAX))
}

/// Returns a header's date, in Unix seconds. `None`: it is missing, or none.
pub(super) fn date(headers: &HeaderMap, name: &HeaderName) -> Option<u64> {
    http_date(headers.get(name)?.to_str().ok()?)
}

/// Returns the age that an answer had when it came (RFC 9111 §4.2.3).
fn initial_age_ms(headers: &HeaderMap, times: Times) -> u64 {
    let date = date(headers, &header::DATE);
    let apparent = date.map_or(0, |it| (times.came_ms / 1_000).saturating_sub(it));
    // Of a list the first counts; what is no number is not there (§5.1).
    let said = headers.get(header::AGE).and_then(|it| it.to_str().ok());
    let said = said.and_then(|it| seconds(it.split(',').next()?.trim())).unwrap_or(0);
    let took_ms = times.came_ms.saturating_sub(times.sent_ms);
    // Times that are read back from a disk may be any numbers.
    let corrected_ms = (u64::from(said) * 1_000).saturating_add(took_ms);
    corrected_ms.max(apparent * 1_000)
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    /// 784111777 is the second of this date.
    const DATE: &str = "Sun, 06 Nov 1994 08:49:37 GMT";
    const TIMES: Times = Times { sent_ms: 784_111_777_000, came_ms: 784_111_777_000 };

    fn terms_at(status: u16, lines: &[(&str, &str)], times: Times) -> Terms {
        let line = |(name, value): &(&str, &str)| {
            (name.parse::<HeaderName>().unwrap(), HeaderValue::from_str(value).unwrap())
        };
        let headers: HeaderMap = lines.iter().map(line).collect();
        Terms::of(status.try_into().unwrap(), &headers, times, &Rules::default())
    }

    fn terms(lines: &[(&str, &str)]) -> Terms {
        terms_at(200, lines, TIMES)
    }

    #[test]
    fn the_lifetime_comes_from_the_first_that_says_one() {
        let expires = ("expires", "Sun, 06 Nov 1994 08:50:37 GMT");
        let check = |lines: &[(&str, &str)], expected| {
            let it = terms(lines);
            assert_eq!((it.lifetime, it.basis), expected, "{lines:?}");
        };
        let cc = |it| ("cache-control", it);
        check(&[cc("max-age=2, s-maxage=1"), expires], (1, Basis::SharedMaxAge));
        check(&[cc("max-age=2"), expires], (2, Basis::MaxAge));
        check(&[expires, ("date", DATE)], (60, Basis::Expires));
        check(&[expires], (60, Basis::Expires));
        check(&[("expires", "0")], (0, Basis::Expires));
        check(&[("expires", DATE), expires, ("date", DATE)], (0, Basis::Expires));
        check(&[("expires", "Sunday, 06-Nov-94 08:50:37 GMT")], (60, Basis::Expires));
        check(&[("expires", "Sun Nov  6 08:50:37 1994")], (60, Basis::Expires));
        let changed = ("last-modified", "Sun, 06 Nov 1994 07:49:37 GMT");
        check(&[changed], (360, Basis::LastModified));
        check(&[("last-modified", "Sat, 06 Nov 1971 07:49:37 GMT")], (86_400, Basis::LastModified));
        check(&[("cdn-cache-control", "max-age=9")], (0, Basis::Nothing));
        assert_eq!(terms_at(201, &[changed], TIMES).lifetime, 0);
        assert_eq!(terms_at(201, &[changed, cc("public")], TIMES).lifetime, 360);
        assert_eq!(terms_at(404, &[], TIMES).lifetime, 60);
    }

    #[test]
    fn before_an_origin_its_words_to_such_caches_count() {
        let headers = |lines: &[(&str, &str)]| -> HeaderMap {
            let line = |(name, value): &(&str, &str)| {
                (name.parse::<HeaderName>().unwrap(), HeaderValue::from_str(value).unwrap())
            };
            lines.iter().map(line).collect()
        };
        let rules = Rules { is_before_origin: true, ..Rules::default() };
        let of = |lines: &[(&str, &str)]| {
            Terms::of(StatusCode::OK, &headers(lines), TIMES, &rules).lifetime
        };
        let (cdn, cc) = ("cdn-cache-control", "cache-control");
        assert_eq!(of(&[(cdn, "max-age=9"), (cc, "no-store, max-age=1"), ("expires", "0")]), 9);
        assert_eq!(
            of(&[(cdn, "must-revalidate"), ("expires", "Sun, 06 Nov 1995 08:49:37 GMT")]),
            0
        );
        assert_eq!(of(&[(cdn, "max-age =9"), (cc, "max-age=1")]), 1);
    }

    #[test]
    fn the_age_is_the_greater_of_what_the_date_and_the_age_say() {
        let age =
            |lines: &[(&str, &str)], later_ms: u64| terms(lines).age(TIMES.came_ms + later_ms);
        assert_eq!(age(&[], 0), 0);
        assert_eq!(age(&[("age", "10")], 1_999), 11);
        assert_eq!(age(&[("age", "10, 20")], 0), 10);
        assert_eq!(age(&[("age", "10"), ("age", "20")], 0), 10);
        for wrong in ["-1", "1.5", "x", "10s", ""] {
            assert_eq!(age(&[("age", wrong)], 0), 0, "{wrong}");
        }
        let date = ("date", "Sun, 06 Nov 1994 08:49:07 GMT");
        assert_eq!(age(&[date], 0), 30);
        let headers = HeaderMap::from_iter([(header::AGE, HeaderValue::from_static("10"))]);
        let times = Times { sent_ms: 0, came_ms: u64::MAX };
        assert_eq!(initial_age_ms(&headers, times), u64::MAX);
        assert_eq!(age(&[date, ("age", "10")], 0), 30);
        assert_eq!(age(&[("date", "Sun, 06 Nov 1994 08:50:07 GMT")], 0), 0, "a clock ahead");
        let slow = Times { sent_ms: TIMES.came_ms - 4_000, ..TIMES };
        assert_eq!(terms_at(200, &[("age", "10")], slow).age(TIMES.came_ms), 14);
    }

    #[test]
    fn an_answer_is_fresh_for_its_lifetime_and_then_usable_as_it_says() {
        let at = |later: u64| TIMES.came_ms + later * 1_000;
        let it =
            terms(&[("cache-control", "max-age=10, stale-while-revalidate=5, stale-if-error=9")]);
        let seen = |later| {
            let now = at(later);
            [it.is_fresh(now, 0), it.may_be_used_meanwhile(now), it.may_be_used_instead(now)]
        };
        assert_eq!(
            [9, 10, 15, 16, 19, 20].map(seen),
            [
                [true, true, true],
                [false, true, true],
                [false, true, true],
                [false, false, true],
                [false, false, true],
                [false, false, false],
            ]
        );
        assert_eq!([it.is_fresh(at(5), 5), it.is_fresh(at(6), 5)], [true, false]);
        let strict = terms(&[("cache-control", "max-age=10, must-revalidate, stale-if-error=9")]);
        assert!(strict.is_fresh(at(9), 0) && !strict.may_be_used_instead(at(11)));
        let never = terms(&[("cache-control", "max-age=10, no-cache")]);
        assert!(!never.is_fresh(at(0), 0) && !never.may_be_used_instead(at(0)));
        assert!(terms(&[("cache-control", "max-age=10")]).may_be_used_instead(at(86_400)));
    }
}
