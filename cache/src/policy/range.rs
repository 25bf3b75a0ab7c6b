//! Parts: which bytes of an object a client asks for.
//!
//! Source: RFC 9110 §14 (`Range`, `Content-Range`), §15.3.7, §15.5.17.
//!
//! Several parts are sent as one if they leave no gap; otherwise the whole is sent, as the RFC lets
//! a server do (§14.2). So no request costs more than the object; nor does it cost its origin more, which is
//! asked for the whole where there are many parts, or parts that overlap.
//!
//! Sans-I/O.

use http::{HeaderMap, header};

/// Maximum number of parts of a request that are read; one with more gets the whole.
const PARTS_MAX: usize = 16;

/// Maximum number of parts for which an origin is asked.
const PASSED_ON_MAX: usize = 8;

/// A part of an object, in bytes from its start; the end is outside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    /// First byte.
    pub start: u64,
    /// First byte after it.
    pub end: u64,
}

/// What an answer with status 206 has of its object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extent {
    /// The part.
    pub part: Part,
    /// Length of the whole object, in bytes.
    pub length: u64,
}

impl Extent {
    /// Reads `Content-Range`; `None`: it is missing, wrong, or does not say the length of the whole.
    pub fn of(answer: &HeaderMap) -> Option<Self> {
        let mut lines = answer.get_all(header::CONTENT_RANGE).iter();
        let line = lines.next().filter(|_| lines.next().is_none())?;
        let (part, length) = line.to_str().ok()?.strip_prefix("bytes ")?.trim().split_once('/')?;
        let (first, last) = part.split_once('-')?;
        let start = first.parse().ok()?;
        let (end, length) = (last.parse::<u64>().ok()?.checked_add(1)?, length.parse().ok()?);
        let is_part = start < end && end <= length;
        is_part.then_some(Self { part: Part { start, end }, length })
    }

    /// Returns the part of the object that a request asks for, if it is all here.
    pub fn asked(self, request: &HeaderMap) -> Option<Part> {
        match asked(request, self.length) {
            Asked::Part(it) if self.part.start <= it.start && it.end <= self.part.end => Some(it),
            _ => None,
        }
    }
}

/// What a client asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asked {
    /// All.
    Whole,
    /// A part: an answer with status 206.
    Part(Part),
    /// Bytes that are not there: status 416.
    Nothing,
}

/// Returns what a request asks for of an object of `length` bytes.
pub fn asked(request: &HeaderMap, length: u64) -> Asked {
    let Some(parts) = parts(request) else { return Asked::Whole };
    let mut there: Vec<Part> = parts.into_iter().filter_map(|it| it.of(length)).collect();
    there.sort_unstable_by_key(|it| it.start);
    let mut there = there.into_iter();
    let Some(first) = there.next() else { return Asked::Nothing };
    let joined = there.try_fold(first, |all, next| {
        (next.start <= all.end).then(|| Part { end: all.end.max(next.end), ..all })
    });
    match joined {
        Some(all) if all.start == 0 && all.end == length && has_several(request) => Asked::Whole,
        Some(all) => Asked::Part(all),
        None => Asked::Whole,
    }
}

/// Returns where the first part that a request asks for starts; `None`: at an unknown place, or it
/// asks for the whole.
pub fn start(request: &HeaderMap) -> Option<u64> {
    match parts(request)?.into_iter().next()? {
        Wanted::From(start, _) => Some(start),
        Wanted::Last(_) => None,
    }
}

/// Returns whether an origin is asked for the parts that a request asks for: a few, of which none overlaps
/// another, as far as that can be seen. It is asked for the whole otherwise.
pub fn is_passed_on(request: &HeaderMap) -> bool {
    let parts = parts(request).filter(|it| it.len() <= PASSED_ON_MAX);
    let ends = |it: Wanted| match it {
        Wanted::From(start, last) => (start, last.unwrap_or(u64::MAX)),
        Wanted::Last(_) => (u64::MAX, u64::MAX),
    };
    parts.is_some_and(|parts| {
        let mut parts: Vec<(u64, u64)> = parts.into_iter().map(ends).collect();
        parts.sort_unstable();
        parts.is_sorted_by(|one, next| one.1 < next.0)
    })
}

fn has_several(request: &HeaderMap) -> bool {
    parts(request).is_some_and(|it| 1 < it.len())
}

/// A part as it is asked for: from a byte to a byte, or the last so many.
#[derive(Clone, Copy, Debug)]
enum Wanted {
    From(u64, Option<u64>),
    Last(u64),
}

impl Wanted {
    /// Returns which bytes of an object they are; `None`: none.
    fn of(self, length: u64) -> Option<Part> {
        let part = match self {
            Self::From(start, last) => {
                let end = last.map_or(length, |it| it.saturating_add(1).min(length));
                Part { start, end }
            }
            Self::Last(count) => Part { start: length.saturating_sub(count), end: length },
        };
        (part.start < part.end).then_some(part)
    }
}

/// Reads `Range`; `None`: it is missing, in other units, wrong or too long, and says nothing.
fn parts(request: &HeaderMap) -> Option<Vec<Wanted>> {
    let mut lines = request.get_all(header::RANGE).iter();
    let line = lines.next()?.to_str().ok()?;
    let (unit, set) = line.split_once('=')?;
    if lines.next().is_some() || !unit.trim().eq_ignore_ascii_case("bytes") {
        return None;
    }
    let number = |it: &str| {
        let is_number = !it.is_empty() && it.bytes().all(|it| it.is_ascii_digit());
        is_number.then(|| it.parse().unwrap_or(u64::MAX))
    };
    let mut parts = Vec::new();
    for member in set.split(',').map(str::trim).filter(|it| !it.is_empty()) {
        let (first, last) = member.split_once('-')?;
        parts.push(match (number(first), number(last)) {
            (Some(first), Some(last)) if first <= last => Wanted::From(first, Some(last)),
            (Some(first), None) if last.is_empty() => Wanted::From(first, None),
            (None, Some(count)) if first.is_empty() => Wanted::Last(count),
            _ => return None,
        });
    }
    (1..=PARTS_MAX).contains(&parts.len()).then_some(parts)
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    fn of(range: &str) -> Asked {
        let value = HeaderValue::from_str(range).unwrap();
        asked(&[(header::RANGE, value)].into_iter().collect(), 100)
    }

    fn check(range: &str, start: u64, end: u64) {
        assert_eq!(of(range), Asked::Part(Part { start, end }), "{range}");
    }

    #[test]
    fn parts_are_read_as_they_are_written() {
        check("bytes=0-9", 0, 10);
        check("Bytes = 0-9", 0, 10);
        check("bytes=90-", 90, 100);
        check("bytes=-10", 90, 100);
        check("bytes=-1000", 0, 100);
        check("bytes=90-1000", 90, 100);
        check("bytes=0-99999999999999999999", 0, 100);
        assert_eq!(of("bytes=0-"), Asked::Part(Part { start: 0, end: 100 }));
        for nothing in ["bytes=100-", "bytes=200-300", "bytes=-0"] {
            assert_eq!(of(nothing), Asked::Nothing, "{nothing}");
        }
        for wrong in
            ["bytes=9-0", "bytes=-", "bytes=a-b", "bytes", "lines=0-9", "bytes=", "bytes=1-2-3"]
        {
            assert_eq!(of(wrong), Asked::Whole, "{wrong}");
        }
    }

    #[test]
    fn an_extent_has_what_lies_within_it() {
        let of = |it: &str| {
            let value = HeaderValue::from_str(it).unwrap();
            Extent::of(&[(header::CONTENT_RANGE, value)].into_iter().collect())
        };
        let it = of("bytes 10-19/100").unwrap();
        assert_eq!(it, Extent { part: Part { start: 10, end: 20 }, length: 100 });
        let range = |it: &str| {
            let value = HeaderValue::from_str(it).unwrap();
            [(header::RANGE, value)].into_iter().collect::<HeaderMap>()
        };
        assert_eq!(it.asked(&range("bytes=12-13")), Some(Part { start: 12, end: 14 }));
        for other in ["bytes=9-19", "bytes=10-20", "bytes=-5", "bytes=12-13, 15-16"] {
            assert_eq!(it.asked(&range(other)), None, "{other}");
        }
        assert_eq!(it.asked(&HeaderMap::new()), None);
        for wrong in
            ["bytes 10-19/*", "bytes */100", "bytes 20-19/100", "bytes 90-100/100", "10-19/100"]
        {
            assert_eq!(of(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn an_origin_is_asked_for_few_parts_that_do_not_overlap() {
        let check = |range: &str, expected: bool| {
            let value = HeaderValue::from_str(range).unwrap();
            let request = [(header::RANGE, value)].into_iter().collect();
            assert_eq!(is_passed_on(&request), expected, "{range}");
        };
        for few in ["0-", "-5", "20-29, 0-9", "0-9, 10-19", "0-9, -5", "0-9, 20-"] {
            check(&format!("bytes={few}"), true);
        }
        for other in ["0-, 5-", "0-9, 9-19", "0-, 0-", "0-, -5", "-5, -6", "0-9, 0-9", "9-0"] {
            check(&format!("bytes={other}"), false);
        }
        let many = (0..9).map(|it| format!("{0}-{0}", 10 * it)).collect::<Vec<_>>();
        check(&format!("bytes={}", many[1..].join(",")), true);
        check(&format!("bytes={}", many.join(",")), false);
        check("lines=0-9", false);
        assert!(!is_passed_on(&HeaderMap::new()));
    }

    #[test]
    fn several_parts_are_one_or_the_whole() {
        check("bytes=10-19, 0-9", 0, 20);
        check("bytes=0-9,5-14", 0, 15);
        check("bytes=0-9, 200-", 0, 10);
        assert_eq!(of("bytes=0-9, 20-29"), Asked::Whole);
        assert_eq!(of("bytes=0-49,50-"), Asked::Whole);
        assert_eq!(of(&format!("bytes={}", ["0-"; PARTS_MAX + 1].join(","))), Asked::Whole);
    }
}
