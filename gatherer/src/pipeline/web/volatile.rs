//! Pages that never stand still: counters, the date of the day, tokens.
//!
//! A change of such parts alone is published the first times. When it comes at each pass, it is no change any
//! more, but at every eighth time, so that no record is older than that.
//!
//! Source: TR §4, footnote 7 (how often objects of the web change).
//!
//! Sans-I/O.

use soif::Record;

/// Number of changes in a row, of such parts alone, that are published.
const PUBLISHED: u8 = 2;

/// Of the changes after them, one of this number is published.
const ONE_OF: u8 = 8;

/// Attributes that follow from others, or that any change of the bytes changes.
const DERIVED: [&str; 7] = [
    "File-Size",
    "Keywords",
    "Last-Modification-Time",
    "MD5",
    "Text-Places",
    "Text-Print",
    "Update-Time",
];

/// Beginnings of the English names of months and days; dates in other languages are mostly numbers.
const OF_DATES: [&str; 19] = [
    "jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec", "mon",
    "tue", "wed", "thu", "fri", "sat", "sun",
];

/// Returns the number of changes in a row of volatile parts alone, with the one from `before` to `after`, and
/// whether that is published. `in_a_row` is the number so far.
pub(super) fn weigh(before: &Record, after: &Record, in_a_row: u8) -> (u8, bool) {
    if !is_same(before, after) {
        return (0, true);
    }
    let number = in_a_row.saturating_add(1);
    if number <= PUBLISHED {
        return (number, true);
    }
    let is_turn = PUBLISHED + ONE_OF <= number;
    (if is_turn { PUBLISHED } else { number }, is_turn)
}

/// Returns whether two records differ in volatile parts alone.
fn is_same(one: &Record, other: &Record) -> bool {
    let firm = |record: &Record| -> Vec<(String, String)> {
        let firm = record.attributes().iter().filter(|it| !DERIVED.contains(&it.name.as_str()));
        firm.map(|it| (it.name.to_string(), without_volatile(&String::from_utf8_lossy(&it.value))))
            .collect()
    };
    firm(one) == firm(other)
}

/// Returns a text with one sign for each word that has a digit, or that is of a date.
fn without_volatile(text: &str) -> String {
    let is_of_word = |it: char| it.is_alphanumeric() || it == '_';
    let mut firm = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let end = rest.find(|it| is_of_word(it) != is_of_word(first)).unwrap_or(rest.len());
        let (part, behind) = rest.split_at(end);
        rest = behind;
        let is_volatile = part.contains(|it: char| it.is_ascii_digit()) || is_of_date(part);
        firm.push_str(if is_volatile { "#" } else { part });
    }
    firm
}

fn is_of_date(word: &str) -> bool {
    const REST: [&str; 19] = [
        "uary", "ruary", "ch", "il", "", "e", "y", "ust", "tember", "ober", "ember", "ember",
        "day", "sday", "nesday", "rsday", "day", "urday", "day",
    ];
    let word = word.to_ascii_lowercase();
    let known = OF_DATES.iter().zip(REST);
    known
        .into_iter()
        .any(|(it, rest)| word.strip_prefix(it).is_some_and(|it| it.is_empty() || it == rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(title: &str, text: &str) -> Record {
        let mut record = Record::new("FILE", "http://h.example/a");
        record.set("Title", title);
        record.set("Full-Text", text);
        record.set("MD5", text);
        record
    }

    #[test]
    fn what_has_digits_or_is_of_a_date_is_volatile() {
        let check = |one: &str, other: &str, expected| {
            assert_eq!(is_same(&record("t", one), &record("t", other)), expected, "{one} {other}");
        };
        check("visitor 1,234", "visitor 1,235", true);
        check("Fri, 27 November 2026, 9:05", "Saturday, 28 Nov 2026, 10:17", true);
        check("token a8f3 of you", "token 77bc1 of you", true);
        check("one apple", "two apples", false);
        check("version 2 of it", "version 2 of that", false);
        check("A march.", "A may.", true);
        check("mayor", "major", false);
        assert!(!is_same(&record("a", "x"), &record("b", "x")));
    }

    #[test]
    fn what_never_stands_still_is_published_twice_and_then_at_times() {
        let (mut in_a_row, mut published) = (0, Vec::new());
        for number in 0..20 {
            let (one, other) =
                (record("t", &number.to_string()), record("t", &format!("{number}1")));
            let (next, is_published) = weigh(&one, &other, in_a_row);
            in_a_row = next;
            published.push(is_published);
        }
        let at: Vec<usize> = (0..20).filter(|it| published[*it]).collect();
        assert_eq!(at, [0, 1, 9, 17]);
        assert_eq!(weigh(&record("t", "a 1"), &record("t", "b 2"), in_a_row), (0, true));
    }
}
