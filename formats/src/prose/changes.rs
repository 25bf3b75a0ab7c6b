//! Change logs: newest version and its date, authors, and the newest changes.
//!
//! Source: GNU Coding Standards, "Style of Change Logs"; Debian Policy 4.4 (`debian/changelog`);
//! keepachangelog.com 1.1. Essence's ChangeLog summarizer (revision summary).

use crate::cancellable::TimeLimit;
use crate::draft::read_date;
use crate::{DateSource, Draft, Input};

/// Maximum number of entries that are in the summary.
const SUMMARY_VERSIONS_MAX: usize = 3;
/// Longest summary, in bytes.
const SUMMARY_BYTES_MAX: usize = 4 * 1024;
/// Maximum number of authors.
const AUTHORS_MAX: usize = 50;
/// Maximum number of versions listed.
const VERSIONS_MAX: usize = 500;

/// Names of days, as in old dates.
const DAYS: &str = "Mon Tue Wed Thu Fri Sat Sun";
/// Maximum number of gaps of a line that may be that between date and author.
const GAPS_MAX: usize = 4;

/// The values in the first line of an entry.
#[derive(Debug, Default, PartialEq, Eq)]
struct Entry<'a> {
    package: &'a str,
    version: &'a str,
    date: &'a str,
    author: &'a str,
}

pub(crate) fn summarize<'a>(input: &Input<'a>) -> Draft<'a> {
    let text = input.text();
    let mut draft = Draft::default();
    let (mut package, mut date) = ("", "");
    let mut versions: Vec<&str> = Vec::new();
    let mut authors: Vec<&str> = Vec::new();
    let (mut entries, mut summary) = (0_usize, String::new());
    let mut time = TimeLimit::new(input.cancelled);
    for line in text.lines().take_while(|_| time.goes_on()) {
        // ` -- A. Body <a@h.example>  date` ends an entry in Debian's format.
        let closed = line.strip_prefix(" -- ").and_then(|it| it.split_once("  "));
        let entry = match closed {
            Some((author, date)) => Entry { author, date, ..Entry::default() },
            None => head(line).unwrap_or_default(),
        };
        if !entry.version.is_empty() && versions.len() < VERSIONS_MAX {
            versions.push(entry.version);
        }
        if !entry.author.is_empty() && authors.len() < AUTHORS_MAX {
            authors.push(entry.author.trim());
        }
        package = if package.is_empty() { entry.package } else { package };
        date = if date.is_empty() { entry.date } else { date };
        if entry != Entry::default() {
            entries += usize::from(closed.is_none());
        } else if (1..=SUMMARY_VERSIONS_MAX).contains(&entries)
            && !line.trim().is_empty()
            && summary.len() + line.len() < SUMMARY_BYTES_MAX
        {
            summary.push_str(line.trim());
            summary.push('\n');
        }
    }
    time.report("the changes", &mut draft);
    if !package.is_empty() {
        draft.title = format!("Changes of {package}");
    }
    draft.authors = authors.into_iter().map(str::to_owned).collect();
    draft.description =
        summary.lines().next().unwrap_or_default().trim_start_matches(['*', '-', ' ']).to_owned();
    draft.other("Version", versions.first().copied().unwrap_or_default());
    draft.date(date, DateSource::Changes);
    draft.other("Versions", versions.join("\n"));
    draft.other("Revision-Summary", summary);
    input.set_text(text, &mut draft);
    draft
}

/// Returns the values of a line that starts an entry.
fn head(line: &str) -> Option<Entry<'_>> {
    if line.is_empty() || line.starts_with([' ', '\t', '*', '-', '+']) {
        return None;
    }
    // `package (1.2-3) unstable; urgency=low`
    if let Some((package, after)) = line.split_once(" (")
        && let Some((version, rest)) = after.split_once(')')
        && rest.contains(';')
        && !package.contains(' ')
        && is_version(version)
    {
        return Some(Entry { package, version, ..Entry::default() });
    }
    // `1995-05-01  A. Body  <a@h.example>`
    if let Some((date, author)) = line.split_once("  ").filter(|(date, _)| is_date(date)) {
        return Some(Entry { date, author, ..Entry::default() });
    }
    // `Mon May  1 10:00:00 1995  A. Body  <a@h.example>`
    if DAYS.split(' ').any(|it| line.starts_with(it)) {
        let parts = line.match_indices("  ").filter_map(|(at, _)| line.split_at_checked(at));
        let is_day = |date: &str| read_date(date).is_some_and(|it| "1995-05-01".len() <= it.len());
        if let Some((date, author)) = parts.take(GAPS_MAX).find(|(date, _)| is_day(date)) {
            return Some(Entry { date, author, ..Entry::default() });
        }
    }
    // `## [1.2.0] - 2020-01-02`, `Version 1.2 (2020-01-02)`, `* Changes in version 1.2`
    let mut words = line
        .split(|it: char| it.is_whitespace() || "[]():,#=".contains(it))
        .filter(|it| !it.is_empty())
        .take(12);
    let version = words.by_ref().find(|it| is_version(it))?;
    let first = line.trim_start_matches(['#', '=', '[', ' ', 'v']);
    let titled = line.starts_with('#')
        || first.starts_with(|it: char| it.is_ascii_digit())
        || ["version", "changes in", "release", "new in", "what's new"]
            .iter()
            .any(|it| first.get(..it.len()).is_some_and(|front| front.eq_ignore_ascii_case(it)))
        || line.split_whitespace().count() <= 3;
    let date = words.find(|it| is_date(it)).unwrap_or_default();
    let version = version.trim_start_matches('v');
    titled.then_some(Entry { version, date, ..Entry::default() })
}

/// Returns whether a word is a version: digits with a dot or hyphen in them (`1.2`, `v1.2-rc1`).
fn is_version(word: &str) -> bool {
    let digits = word.strip_prefix('v').unwrap_or(word);
    digits.starts_with(|it: char| it.is_ascii_digit())
        && !is_date(word)
        && digits.trim_end_matches('.').contains(['.', '-'])
        && digits.chars().all(|it| it.is_ascii_alphanumeric() || ".-+~:_".contains(it))
}

/// Returns whether a word is a date: `1995-05-01` or `1995/05/01`.
fn is_date(word: &str) -> bool {
    let bytes = word.as_bytes();
    bytes.len() == 10
        && bytes.iter().enumerate().all(|(at, it)| match at {
            4 | 7 => matches!(it, b'-' | b'/'),
            _ => it.is_ascii_digit(),
        })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use crate::Type;
    use crate::testing::render;

    fn check(text: &str, expected: &str) {
        let seen = render("ChangeLog", Type::ChangeLog, text.as_bytes());
        assert_eq!(seen.split("\nPartial-Text: ").next(), Some(expected));
    }

    #[test]
    fn change_logs_of_gnu() {
        check(
            "1995-05-02  A. Body  <a@h.example>\n\n\t* sort.c (f): Faster.\n\n\
             1995-05-01  B. Body  <b@h.example>\n\n\t* sort.c: New.\n",
            "Title: ChangeLog\nAuthor: A. Body <a@h.example> | B. Body <b@h.example>\n\
             Description: sort.c (f): Faster.\nDate: 1995-05-02\nDate-Source: changelog\n\
             Revision-Summary: * sort.c (f): Faster. | * sort.c: New.",
        );
    }

    #[test]
    fn old_change_logs_of_gnu() {
        check(
            "Tue May  2 10:00:00 1995  A. Body  <a@h.example>\n\n\t* sort.c (f): Faster.\n",
            "Title: ChangeLog\nAuthor: A. Body <a@h.example>\nDescription: sort.c (f): Faster.\n\
             Date: 1995-05-02T10:00:00\nDate-Source: changelog\n\
             Revision-Summary: * sort.c (f): Faster.",
        );
    }

    #[test]
    fn change_logs_of_debian() {
        check(
            "sort (1.2-3) unstable; urgency=low\n\n  * Faster.\n\n\
             \u{20}-- A. Body <a@h.example>  Mon, 01 May 1995 10:00:00 +0000\n",
            "Title: Changes of sort\nAuthor: A. Body <a@h.example>\nDescription: Faster.\n\
             Version: 1.2-3\nDate: 1995-05-01T10:00:00Z\nDate-Source: changelog\nVersions: 1.2-3\n\
             Revision-Summary: * Faster.",
        );
    }

    #[test]
    fn change_logs_in_markdown() {
        check(
            "# Changelog\n\n## [1.2.0] - 2020-01-02\n### Added\n- A thing\n\n## 1.1.0\n- Less\n",
            "Title: ChangeLog\nDescription: ### Added\nVersion: 1.2.0\nDate: 2020-01-02\nDate-Source: changelog\n\
             Versions: 1.2.0 | 1.1.0\nRevision-Summary: ### Added | - A thing | - Less",
        );
    }

    proptest! {
        #[test]
        fn any_bytes_give_a_record(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
            render("ChangeLog", Type::ChangeLog, &bytes);
        }
    }
}
