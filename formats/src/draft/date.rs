//! Dates that documents have: one spelling for all the ways in which they are written, and what says so.
//!
//! Source: ISO 8601-1:2019 for the spelling. Read are RFC 5322 (mail) §3.3 and §4.3, `asctime` (ISO C)
//! and what git makes of it, ISO 32000-1 (PDF) §7.9.4, Exif 2.32 `DateTime`, the keywords of RCS, and all
//! that [`oai::crosswalk::date`] reads: dates without a time.
//!
//! # Differences from the specifications
//!
//! * A date is as precise as it is written: `1995`, `1995-03`, `1995-03-01`, or with a time, whose zone is
//!   kept if it is known. Midnight means that a program has made a moment of a day: the day is kept.
//! * Names of zones that are in no standard (`CET`) are left out, and the time is a local one.

use oai::crosswalk;

/// Longest text that is read as a date, in bytes.
const TEXT_BYTES_MAX: usize = 100;
/// Zones with a name (RFC 5322 §4.3).
const ZONES: &[(&str, &str)] = &[
    ("Z", "Z"),
    ("UT", "Z"),
    ("UTC", "Z"),
    ("GMT", "Z"),
    ("EST", "-05:00"),
    ("EDT", "-04:00"),
    ("CST", "-06:00"),
    ("CDT", "-05:00"),
    ("MST", "-07:00"),
    ("MDT", "-06:00"),
    ("PST", "-08:00"),
    ("PDT", "-07:00"),
];

/// What says when a document is from: the value of `Date-Source`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DateSource {
    /// A field at the head of the document, or a command there.
    Header,
    /// The header of a mail, an article or a patch.
    Mail,
    /// What stands on the first page.
    FirstPage,
    /// A page's or an XML document's markup.
    Markup,
    /// The metadata of a PDF.
    Pdf,
    /// The properties of an office document or a book.
    Properties,
    /// The metadata in a picture, a sound, a film, a drawing or a printer's file.
    Media,
    /// The entry of a catalog.
    Entry,
    /// The newest entry of a list of changes.
    Changes,
    /// The newest revision of an archive.
    Revision,
    /// The package in which the object came, or that it is.
    Package,
}

impl DateSource {
    /// Returns the value of `Date-Source`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Header => "header",
            Self::Mail => "mail header",
            Self::FirstPage => "first page",
            Self::Markup => "markup",
            Self::Pdf => "PDF metadata",
            Self::Properties => "document properties",
            Self::Media => "media metadata",
            Self::Entry => "entry",
            Self::Changes => "changelog",
            Self::Revision => "revision",
            Self::Package => "package",
        }
    }
}

/// Returns a date in ISO 8601; `None` if not even a year can be read.
pub(crate) fn read(text: &str) -> Option<String> {
    let text = bare(text.trim());
    if text.is_empty() || TEXT_BYTES_MAX < text.len() {
        return None;
    }
    numbered(text).or_else(|| worded(text)).or_else(|| crosswalk::date(text))
}

/// Returns the value of a keyword of RCS (`$Date: … $`), and a PDF's date without its mark.
fn bare(text: &str) -> &str {
    let value = text.strip_prefix('$').and_then(|it| it.strip_suffix('$'));
    let text = value.map_or(text, |it| it.split_once(':').unwrap_or_default().1.trim());
    text.strip_prefix("D:").unwrap_or(text)
}

/// Reads dates in numbers, the year first: `1995:03:01 10:00:00`, `19950301T100000Z`, `1995-3`.
fn numbered(text: &str) -> Option<String> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (front, rest) = text.split_at_checked(digits)?;
    if matches!(digits, 8 | 12 | 14) {
        let day = day_of(front.get(..4)?, front.get(4..6)?, front.get(6..8)?)?;
        return moment(&day, text.get(8..)?);
    }
    let mark =
        rest.chars().next().filter(|it| digits == 4 && matches!(it, '-' | '/' | '.' | ':'))?;
    let (month, rest) = number(rest.strip_prefix(mark)?)?;
    let Some((day, rest)) = rest.strip_prefix(mark).and_then(number) else {
        let day = day_of(front, month, "1").filter(|_| rest.is_empty())?;
        return day.get(..7).map(str::to_owned);
    };
    let day = day_of(front, month, day)?;
    // Words after a day do not make it wrong.
    moment(&day, rest).or_else(|| rest.starts_with(char::is_whitespace).then_some(day))
}

/// Reads dates with a time after or within the day: `Wed, 1 Mar 1995 10:00:00 +0100`.
fn worded(text: &str) -> Option<String> {
    let is_time = |it: &str| it.contains(':') && it.starts_with(|it: char| it.is_ascii_digit());
    let (mut day, mut time) = (Vec::new(), String::new());
    for word in text.split([' ', '\t', ',']).filter(|it| !it.is_empty()) {
        if time.is_empty() && is_time(word) || !time.is_empty() && is_zone(word) {
            time.push_str(word);
        } else {
            day.push(word);
        }
    }
    let day = crosswalk::date(&day.join(" ")).filter(|it| it.len() == "1995-03-01".len())?;
    moment(&day, &time).filter(|_| !time.is_empty())
}

/// Returns whether a word after a time says its zone, or the half of the day.
fn is_zone(word: &str) -> bool {
    word.starts_with(['+', '-', '(']) || word.bytes().all(|it| it.is_ascii_uppercase())
}

/// Returns a day with the time in `rest`, if there is any; `None` if `rest` is something else.
fn moment(day: &str, rest: &str) -> Option<String> {
    if rest.is_empty() {
        return Some(day.to_owned());
    }
    let (hours, rest) = number(rest.trim_start_matches(['T', 't', ' ', '.', ':']))?;
    let (minutes, rest) = separated(rest)?;
    let (seconds, rest) = separated(rest).unwrap_or(("0", rest));
    let fraction = rest.strip_prefix(['.', ',']);
    let rest = fraction.map_or(rest, |it| it.trim_start_matches(|it: char| it.is_ascii_digit()));
    let hours: u8 = hours.parse().ok()?;
    let (minutes, seconds): (u8, u8) = (minutes.parse().ok()?, seconds.parse().ok()?);
    let hours = match rest.trim() {
        "AM" if hours == 12 => 0,
        "PM" if hours < 12 => hours + 12,
        _ => hours,
    };
    if 24 <= hours || 60 <= minutes || 60 < seconds {
        return None;
    }
    if (hours, minutes, seconds) == (0, 0, 0) {
        return Some(day.to_owned());
    }
    let zone = zone(rest.trim()).unwrap_or_default();
    Some(format!("{day}T{hours:02}:{minutes:02}:{:02}{zone}", seconds.min(59)))
}

/// Returns the number after a mark, if there is a mark, as [`number`] does.
fn separated(text: &str) -> Option<(&str, &str)> {
    number(text.trim_start_matches([':', '.']))
}

/// Returns the zone of a name, or of `+0100`, `+01:00`, `+01'00'` or `+01`.
fn zone(text: &str) -> Option<String> {
    if let Some((_, zone)) = ZONES.iter().find(|(name, _)| text.eq_ignore_ascii_case(name)) {
        return Some((*zone).to_owned());
    }
    let (hours, rest) = number(text.strip_prefix(['+', '-'])?)?;
    let (minutes, _) = number(rest.trim_start_matches([':', '\''])).unwrap_or(("00", rest));
    let fits = |it: &str, most: u8| it.len() == 2 && it.parse().is_ok_and(|it: u8| it <= most);
    if !fits(hours, 14) || !fits(minutes, 59) {
        return None;
    }
    if (hours, minutes) == ("00", "00") {
        return Some("Z".to_owned());
    }
    Some(format!("{}{hours}:{minutes}", text.get(..1)?))
}

/// Returns the one or two digits at the start of `text`, and what follows them.
fn number(text: &str) -> Option<(&str, &str)> {
    let digits = text.bytes().take(2).take_while(u8::is_ascii_digit).count();
    text.split_at_checked(digits).filter(|_| 0 < digits)
}

/// Returns `YYYY-MM-DD`, if there is such a day.
fn day_of(year: &str, month: &str, day: &str) -> Option<String> {
    let written = format!("{year}-{month:0>2}-{day:0>2}");
    crosswalk::date(&written).filter(|it| *it == written)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[track_caller]
    fn check(text: &str, expected: &str) {
        assert_eq!(read(text).unwrap_or_default(), expected, "{text:?}");
    }

    #[test]
    fn dates_of_any_precision_have_one_spelling() {
        check("1995", "1995");
        check("1995-3", "1995-03");
        check("March 1995", "1995-03");
        check("1995/03/01", "1995-03-01");
        check("19950301", "1995-03-01");
        check("1.3.1995", "1995-03-01");
        check("Mar 1st, 1995", "1995-03-01");
        check("1995-1997", "1995/1997");
        check("1995-01-01/1995-03-01", "1995-01-01/1995-03-01");
        check("c1995.", "1995");
        check("1995-03-01 by Ann", "1995-03-01");
    }

    #[test]
    fn times_keep_their_zone() {
        check("1995-03-01T10:00:00.5+02:00", "1995-03-01T10:00:00+02:00");
        check("1995-03-01 10:00", "1995-03-01T10:00:00");
        check("19950301T100000Z", "1995-03-01T10:00:00Z");
        check("1995-03-01T00:00:00Z", "1995-03-01");
        check("Wed, 1 Mar 1995 10:00:00 +0100 (CET)", "1995-03-01T10:00:00+01:00");
        check("Wed Mar  1 10:00:00 1995 -0500", "1995-03-01T10:00:00-05:00");
        check("Wed Mar  1 10:00:00 CET 1995", "1995-03-01T10:00:00");
        check("Wed Mar  1 10:00:00 1995", "1995-03-01T10:00:00");
        check("1 Mar 1995 10:00:00 EST", "1995-03-01T10:00:00-05:00");
        check("31/12/1995 1:05 PM", "1995-12-31T13:05:00");
    }

    #[test]
    fn programs_have_their_own_spellings() {
        check("1995:03:01 10:00:00", "1995-03-01T10:00:00");
        check("D:19950301100000+01'00'", "1995-03-01T10:00:00+01:00");
        check("D:19950301", "1995-03-01");
        check("$Date: 1995/03/01 10:00:00 $", "1995-03-01T10:00:00");
        check("$Mdocdate: March 1 1995 $", "1995-03-01");
        check("1995.03.01.10.00.00", "1995-03-01T10:00:00");
        check("1995.03.01:1000", "1995-03-01T10:00:00");
    }

    #[test]
    fn what_is_no_date_is_none() {
        let none =
            ["", "soon", "$Date$", "today", "1700000000", "12", "1.2.3", "0000:00:00 00:00:00"];
        none.iter().for_each(|it| check(it, ""));
        check("1995-02-30", "1995");
        check("1995-03-01T25:00:00", "1995");
    }

    proptest! {
        #[test]
        fn reading_twice_changes_nothing(
            text in "[0-9]{4}[-/.: ]?([0-9]{1,2}|March)?[-/.: ]?[0-9]{0,4}[T ]?[0-9:.]{0,9} ?(Z|EST|[-+][0-9:']{2,6})?"
        ) {
            if let Some(first) = read(&text) {
                prop_assert_eq!(read(&first), Some(first));
            }
        }

        #[test]
        fn any_text_is_a_date_or_none(text in "\\PC{0,60}") {
            let _ = read(&text);
        }
    }
}
