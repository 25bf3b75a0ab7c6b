//! Newsgroups: the numbers of the articles that a server keeps.
//!
//! Source: RFC 3977 §6.1.1.
//!
//! Sans-I/O.

use std::ops::RangeInclusive;

/// Maximum number of articles whose overviews are requested at once.
const RANGE_MAX: u64 = 1_000;

/// Maximum number of the newest numbers of a group that are looked at, whatever the server says.
const NUMBERS_MAX: u64 = 1 << 31;

/// A group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Group {
    /// Its name.
    pub name: String,
    /// The server's estimate of the number of articles.
    pub estimate: u64,
    /// The lowest number of an article.
    pub low: u64,
    /// The highest number; below `low` if there are no articles.
    pub high: u64,
}

impl Group {
    /// Reads what follows the code of a reply to `GROUP`: estimate, lowest and highest number.
    pub fn parse(text: &[u8], name: &str) -> Option<Self> {
        let mut words = str::from_utf8(text.get(..text.len().min(512))?).ok()?.split(' ');
        let mut number = || words.next()?.parse().ok();
        let (estimate, low, high) = (number()?, number()?, number()?);
        Some(Self { name: name.to_owned(), estimate, low, high })
    }

    /// Returns the numbers after `after` (0: all), in rising ranges of up to 1,000. Of more than
    /// 2³¹ numbers only the newest are returned.
    pub fn ranges(&self, after: u64) -> impl Iterator<Item = RangeInclusive<u64>> + use<> {
        let high = self.high;
        let low = self.low.max(after.saturating_add(1)).max(high.saturating_sub(NUMBERS_MAX - 1));
        let mut next = (low <= high).then_some(low);
        std::iter::from_fn(move || {
            let first = next?;
            let last = high.min(first.saturating_add(RANGE_MAX - 1));
            next = (last < high).then(|| last + 1);
            Some(first..=last)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_those_of_the_articles_not_seen() {
        let group = Group::parse(b"2500 10 2509 a.b", "a.b").unwrap();
        let ranges = |after| group.ranges(after).collect::<Vec<_>>();
        assert_eq!(ranges(0), [10..=1_009, 1_010..=2_009, 2_010..=2_509]);
        assert_eq!(ranges(2_508), [2_509..=2_509]);
        assert!(ranges(2_509).is_empty() && ranges(u64::MAX).is_empty());
        let empty = Group::parse(b"0 5 4 a.b", "a.b").unwrap();
        assert_eq!(empty.ranges(0).count(), 0);
    }

    #[test]
    fn hostile_numbers_are_bounded() {
        let group = Group::parse(b"1 0 18446744073709551615 a", "a").unwrap();
        assert_eq!(
            group.ranges(0).next(),
            Some(u64::MAX - NUMBERS_MAX + 1..=u64::MAX - NUMBERS_MAX + 1_000)
        );
        assert_eq!(group.ranges(u64::MAX - 1).collect::<Vec<_>>(), [u64::MAX..=u64::MAX]);
        for bad in ["", "1 2", "-1 2 3", "1 2 99999999999999999999"] {
            assert_eq!(Group::parse(bad.as_bytes(), "a"), None, "{bad}");
        }
    }
}
