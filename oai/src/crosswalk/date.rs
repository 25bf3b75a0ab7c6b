//! Dates in metadata, normalized: `1995`, `1995-03`, `1995-03-01`, with a time in UTC, or two of
//! these with a slash between them.
//!
//! Source: ISO 8601 (in the profile of the W3C's note on dates and times).

use crate::datestamp::{Datestamp, Granularity};

/// Longest text that is read as a date, in bytes.
const TEXT_BYTES_MAX: usize = 100;
/// Plausible years of a work.
const YEARS: std::ops::RangeInclusive<u16> = 1_000..=2_999;
/// First letters of the months' names in English, and in French, German, Italian, Portuguese and
/// Spanish where they differ.
const MONTHS: [&[&str]; 12] = [
    &["jan", "gen", "ene"],
    &["feb", "fév", "fev"],
    &["mar", "mär"],
    &["apr", "avr", "abr"],
    &["may", "mai", "mag"],
    &["jun", "juin", "giu"],
    &["jul", "juil", "lug"],
    &["aug", "aoû", "ago"],
    &["sep", "set"],
    &["oct", "okt", "ott", "out"],
    &["nov"],
    &["dec", "déc", "dez", "dic"],
];

/// Returns a date in ISO 8601, to the year, month, day or second; `None` if not even a year can be
/// read.
pub fn normal(text: &str) -> Option<String> {
    let text = text.trim();
    if text.is_empty() || TEXT_BYTES_MAX < text.len() {
        return None;
    }
    if let Some((from, to)) = text.split_once('/')
        && let (Some(from), Some(to)) = (iso(from.trim()), iso(to.trim()))
    {
        return Some(format!("{from}/{to}"));
    }
    iso(text)
        .or_else(|| numbers(text))
        .or_else(|| named_month(text))
        .or_else(|| span(text))
        .or_else(|| year(text).map(|it| it.to_string()))
}

/// Returns the first year in the text; `None` if there is none.
pub(super) fn year(text: &str) -> Option<u16> {
    let mut digits = text.split(|it: char| !it.is_ascii_digit());
    let as_year = |it: &str| it.parse().ok().filter(|it| YEARS.contains(it));
    digits.find_map(|it| match it.len() {
        4 => as_year(it),
        8 => compact(it).and_then(|_| as_year(it.get(..4)?)),
        _ => None,
    })
}

/// Reads `1995`, `1995-03`, `1995-03-01`, `1995-03-01T12:00:00Z` and similar ways to write the
/// time.
fn iso(text: &str) -> Option<String> {
    let all_digits = |it: &str| it.bytes().all(|it| it.is_ascii_digit());
    match text.len() {
        4 => (all_digits(text) && year(text).is_some()).then(|| text.to_owned()),
        7 => {
            let (year, month) = text.split_once('-')?;
            let (year, month) = (year.parse().ok()?, month.parse().ok()?);
            day(year, month, 1).map(|it| it.get(..7).unwrap_or_default().to_owned())
        }
        _ => {
            let found = Datestamp::lenient(text)?;
            let of_day = found.granularity() == Granularity::Day;
            let midnight = Datestamp::at(found.secs(), Granularity::Day);
            // A time of 00:00:00 means that a database has turned a day into a moment: keep the
            // day.
            let shown = if of_day || found.secs() == midnight.secs() { midnight } else { found };
            Some(shown.to_string())
        }
    }
}

/// Returns `YYYY-MM-DD`, if there is such a day.
fn day(year: u16, month: u8, day: u8) -> Option<String> {
    let text = format!("{year:04}-{month:02}-{day:02}");
    Datestamp::parse(&text).map(|_| text).filter(|_| YEARS.contains(&year))
}

/// Reads `19950301`.
fn compact(text: &str) -> Option<String> {
    let digits = text.len() == 8 && text.bytes().all(|it| it.is_ascii_digit());
    if !digits {
        return None;
    }
    let part = |range: std::ops::Range<usize>| text.get(range);
    day(part(0..4)?.parse().ok()?, part(4..6)?.parse().ok()?, part(6..8)?.parse().ok()?)
}

/// Reads dates in numbers: the year first, or with points the day first. A date with slashes or
/// hyphens and the year last is read only if month and day cannot be confused.
fn numbers(text: &str) -> Option<String> {
    if let Some(found) = compact(text) {
        return Some(found);
    }
    let mark = text.chars().find(|it| !it.is_ascii_digit())?;
    if !matches!(mark, '/' | '.' | '-') {
        return None;
    }
    let mut parts = text.split(mark);
    let (first, second, third) = (parts.next()?, parts.next()?, parts.next());
    if parts.next().is_some() {
        return None;
    }
    let number =
        |it: &str| it.parse::<u16>().ok().filter(|_| it.len() <= 4 && !it.starts_with('+'));
    let small = |it: u16| u8::try_from(it).ok();
    let (a, b) = (number(first)?, number(second)?);
    let Some(third) = third else {
        // 03/1995
        let month = if second.len() == 4 && first.len() <= 2 { small(a)? } else { return None };
        return day(b, month, 1).map(|it| it.get(..7).unwrap_or_default().to_owned());
    };
    let c = number(third)?;
    if first.len() == 4 {
        return day(a, small(b)?, small(c)?);
    }
    if third.len() != 4 {
        return None;
    }
    match (mark, a, b) {
        ('.', ..) | (_, 13.., _) => day(c, small(b)?, small(a)?),
        (_, _, 13..) => day(c, small(a)?, small(b)?),
        _ if a == b => day(c, small(a)?, small(b)?),
        _ => None,
    }
}

/// Reads `March 1995`, `1 March 1995`, `Mar. 1st, 1995`, `1995 March 1`.
fn named_month(text: &str) -> Option<String> {
    let lower = text.to_lowercase();
    let words = lower.split(|it: char| !it.is_alphanumeric()).filter(|it| !it.is_empty());
    let (mut found_year, mut month, mut of_month) = (None, None, None);
    for word in words {
        let digits = word.len() - word.trim_start_matches(|it: char| it.is_ascii_digit()).len();
        let (digits, rest) = word.split_at(digits);
        let number: Option<u16> = digits.parse().ok();
        match number {
            Some(number) if digits.len() == 4 && rest.is_empty() => {
                if found_year.replace(number).is_some() {
                    return None;
                }
            }
            Some(number) if matches!(rest, "" | "st" | "nd" | "rd" | "th" | "er") => {
                if of_month.replace(u8::try_from(number).ok()?).is_some() {
                    return None;
                }
            }
            Some(_) => return None,
            None => {
                let known = month_named(word);
                if let Some(known) = known
                    && month.replace(known).is_some()
                {
                    return None;
                }
            }
        }
    }
    let (year, month) = (found_year?, month?);
    match of_month {
        Some(of_month) => day(year, month, of_month),
        None => day(year, month, 1).map(|it| it.get(..7).unwrap_or_default().to_owned()),
    }
}

/// Returns the month that the word names. Longer words that only begin like a month are not names.
fn month_named(word: &str) -> Option<u8> {
    let is_name = word.chars().count() <= 10;
    let at = (0..).zip(MONTHS).filter(|_| is_name).filter_map(|(at, names): (u8, _)| {
        let longest = names.iter().filter(|it| word.starts_with(**it)).map(|it| it.len()).max()?;
        Some((longest, at + 1))
    });
    at.max_by_key(|(longest, _)| *longest).map(|(_, month)| month)
}

/// Reads `1995-1997`, with a dash of any length.
fn span(text: &str) -> Option<String> {
    let (from, to) = text.split_once(['-', '–', '—'])?;
    let (from, to) = (from.trim(), to.trim());
    let is_year = |it: &str| it.len() == 4 && iso(it).is_some();
    (is_year(from) && is_year(to)).then(|| format!("{from}/{to}"))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[track_caller]
    fn check(text: &str, expected: Option<&str>) {
        assert_eq!(normal(text).as_deref(), expected, "{text:?}");
    }

    #[test]
    fn standard_dates_stay_unchanged() {
        for text in [
            "1995",
            "1995-03",
            "1995-03-01",
            "1995-03-01T12:30:00Z",
            "1995/1997",
            "1995-01/1995-03",
        ] {
            check(text, Some(text));
        }
    }

    #[test]
    fn common_spellings_are_normalized() {
        check("1995-03-01 12:30:00+02:00", Some("1995-03-01T10:30:00Z"));
        check("1995-03-01T00:00:00Z", Some("1995-03-01"));
        check("19950301", Some("1995-03-01"));
        check("1995/3/1", Some("1995-03-01"));
        check("1995.03.01", Some("1995-03-01"));
        check("1.3.1995", Some("1995-03-01"));
        check("31/12/1995", Some("1995-12-31"));
        check("12/31/1995", Some("1995-12-31"));
        check("03/1995", Some("1995-03"));
        check("March 1995", Some("1995-03"));
        check("1 Mar. 1995", Some("1995-03-01"));
        check("Mar 1st, 1995", Some("1995-03-01"));
        check("1995 Dec 24", Some("1995-12-24"));
        check("24 décembre 1995", Some("1995-12-24"));
        check("Juli 1995", Some("1995-07"));
        check("juin 1995", Some("1995-06"));
        check("1995-1997", Some("1995/1997"));
        check("1995 – 1997", Some("1995/1997"));
    }

    #[test]
    fn an_ambiguous_date_is_reduced_to_its_year() {
        check("c1995.", Some("1995"));
        check("[ca. 1890?]", Some("1890"));
        check("1995-97", Some("1995"));
        check("1/2/1995", Some("1995"));
        check("30 February 1995", Some("1995"));
        check("1995, c1994", Some("1995"));
        check("between 1993 and 1995", Some("1993"));
        check("1995-02-30", Some("1995"));
    }

    #[test]
    fn text_without_a_date_is_none() {
        for text in ["", "soon", "12", "0000", "123456", "9999", "n.d.", &"1995 ".repeat(30)] {
            check(text, None);
        }
    }

    #[test]
    fn a_year_is_four_digits_or_leads_eight() {
        for (text, expected) in
            [("19950301", Some(1995)), ("1995", Some(1995)), ("12345", None), ("99999999", None)]
        {
            assert_eq!(year(text), expected, "{text}");
        }
    }

    proptest! {
        /// Checks that normalizing twice gives the same: otherwise a record would change when it is
        /// harvested through another repository.
        #[test]
        fn normalizing_twice_changes_nothing(text in "[0-9]{1,4}[-/. ]?([0-9]{1,2}|March|juin)?[-/. ]?[0-9]{0,4}(T[0-9:]{0,8}Z)?") {
            if let Some(first) = normal(&text) {
                prop_assert_eq!(normal(&first), Some(first));
            }
        }

        #[test]
        fn any_text_is_a_date_or_none(text in "\\PC{0,60}") {
            let _ = normal(&text);
            let _ = year(&text);
        }
    }
}
