//! RFCs, FYIs and Internet-Drafts: title, authors and other values of their first page.
//!
//! Source: RFC 7322 section 4 (first-page header, abstract), RFC 2629-era text format.

use super::plain;
use crate::text::is_telling;
use crate::{DateSource, Draft, Input};

/// Maximum number of lines of the first pages that are read.
const LINES_MAX: usize = 300;
/// Longest abstract, in lines.
const ABSTRACT_LINES_MAX: usize = 60;

/// Months, as in dates of RFCs.
const MONTHS: &str =
    "January February March April May June July August September October November December";

pub(crate) fn summarize<'a>(input: &Input<'a>) -> Draft<'a> {
    let body = input.text();
    let lines: Vec<&str> = body.lines().take(LINES_MAX).collect();
    // The header: from the first telling line to the first empty one.
    let start = lines.iter().position(|it| is_telling(it)).unwrap_or(lines.len());
    let header: Vec<&str> =
        lines.iter().skip(start).take_while(|it| !it.trim().is_empty()).copied().collect();
    let mut draft = Draft::default();
    let mut dated = false;
    for line in &header {
        let line = line.trim();
        // A wide gap separates the right column.
        let (left, right) = match line.rsplit_once("   ") {
            Some((left, right)) => (left.trim(), right.trim()),
            None if MONTHS.split(' ').any(|it| line.starts_with(it)) => ("", line),
            None => (line, ""),
        };
        left_column(left, &mut draft);
        if MONTHS.split(' ').any(|it| right.contains(it)) {
            draft.date(right, DateSource::FirstPage);
            dated = true;
        } else if !dated && is_person(right) {
            draft.authors.push(right.trim_end_matches(", Ed.").to_owned());
        }
    }
    let title = lines.iter().skip(start + header.len()).skip_while(|it| it.trim().is_empty());
    let title = title.take_while(|it| !it.trim().is_empty()).map(|it| it.trim());
    let title: Vec<&str> = title.filter(|it| !it.starts_with("draft-")).take(4).collect();
    if header.len() < 2 || title.is_empty() {
        (draft.title, draft.description) = plain::headline(&body);
    } else {
        draft.title = title.join(" ");
    }
    let r#abstract = lines.iter().skip_while(|it| !it.trim().eq_ignore_ascii_case("abstract"));
    let r#abstract: Vec<&str> = r#abstract
        .skip(1)
        .take(ABSTRACT_LINES_MAX)
        // The next title starts at the left edge.
        .take_while(|it| it.is_empty() || it.starts_with([' ', '\t']))
        .map(|it| it.trim())
        .collect();
    draft.r#abstract = r#abstract.join("\n");
    input.set_text(body, &mut draft);
    draft
}

/// Adds a value from the left column: `Request for Comments: 1945`, `Obsoletes: 1, 2`, `Category: …`.
fn left_column(left: &str, draft: &mut Draft<'_>) {
    let Some((name, value)) = left.split_once(':') else { return };
    let value = value.trim();
    let numbers = || {
        let numbers = value.split(|it: char| !it.is_ascii_digit()).filter(|it| !it.is_empty());
        numbers.map(|it| format!("rfc:{}", it.trim_start_matches('0'))).collect::<Vec<_>>()
    };
    match name.trim() {
        "Request for Comments" | "RFC" | "Network Working Group Request for Comments" => {
            draft.other("Identifier", numbers().first().cloned().unwrap_or_default());
        }
        "FYI" | "BCP" | "STD" => draft.other("Series", format!("{} {value}", name.trim())),
        "Obsoletes" => draft.other("Obsoletes", numbers().join("\n")),
        "Updates" => draft.other("Updates", numbers().join("\n")),
        "Category" | "Intended status" => draft.other("Category", value),
        "Internet-Draft" => draft.other("Identifier", value),
        _ => {}
    }
}

/// Returns whether a text is a person: initials, then a name (`T. Berners-Lee`).
fn is_person(text: &str) -> bool {
    let mut characters = text.chars();
    characters.next().is_some_and(char::is_uppercase)
        && characters.next() == Some('.')
        && text.split_whitespace().count() <= 5
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use crate::Type;
    use crate::testing::render;

    #[test]
    fn a_first_page() {
        let text = "\n\nNetwork Working Group                  T. Berners-Lee\n\
                    Request for Comments: 1945                    MIT/LCS\n\
                    Obsoletes: 12, 0013                       R. Fielding\n\
                    Category: Informational                      May 1996\n\n\n\
                    \u{20}       Hypertext Transfer Protocol -- HTTP/1.0\n\nStatus of This Memo\n\n\
                    \u{20}  This memo.\n\nAbstract\n\n   A protocol\n   with lightness.\n\nContents\n";
        let seen = render("rfc1945.txt", Type::Rfc, text.as_bytes());
        assert_eq!(
            seen.split("\nPartial-Text: ").next(),
            Some(
                "Title: Hypertext Transfer Protocol -- HTTP/1.0\n\
                 Author: T. Berners-Lee | R. Fielding\nAbstract: A protocol | with lightness.\n\
                 Identifier: rfc:1945\nObsoletes: rfc:12 | rfc:13\nCategory: Informational\n\
                 Date: 1996-05\nDate-Source: first page\n\
                 Language: en\nLanguage-Source: detected"
            )
        );
    }

    proptest! {
        #[test]
        fn any_bytes_give_a_record(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
            render("rfc1.txt", Type::Rfc, &bytes);
        }
    }
}
