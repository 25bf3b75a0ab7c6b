//! Text formatted for a printer or terminal, with overstrikes, colors and page breaks. It is read as plain
//! text without them. Formatted manual pages are recognized by their first line.
//!
//! Source: grotty(1) (bold and underlined text), ECMA-48 §8.3.117 (SGR); Essence's FormattedText.

use super::plain;
use crate::cancellable::TimeLimit;
use crate::text::{Body, front};
use crate::{Draft, Input};

/// Maximum number of bytes of a manual page that are searched for its sections.
const PAGE_BYTES_MAX: usize = 256 * 1024;
/// Maximum length of all section titles together, in bytes.
const HEADINGS_BYTES_MAX: usize = 4 * 1024;
/// Maximum length of the section `NAME`, in bytes.
const NAME_BYTES_MAX: usize = 1024;
/// Longest title of a section of a manual page, in bytes.
const HEADING_BYTES_MAX: usize = 60;

pub(crate) fn summarize<'a>(input: &Input<'a>) -> Draft<'a> {
    let text = input.text();
    let mut draft = Draft::default();
    let mut body = Body::new(input.text_bytes_max());
    let mut time = TimeLimit::new(input.cancelled);
    for line in text.split(['\n', '\u{c}']).take_while(|_| time.goes_on()) {
        body.push(bare(line).trim_end());
        body.push("\n");
    }
    time.report("the text", &mut draft);
    input.report_text(&mut draft);
    if !page(front(body.as_str(), PAGE_BYTES_MAX), &mut draft) {
        (draft.title, draft.description) = plain::headline(body.as_str());
    }
    draft.set_body(body);
    draft
}

/// Returns a line without formatting. Of overstruck characters it keeps the last, unless that is an
/// underscore: then the one before. Escape sequences, such as colors, are left out.
fn bare(line: &str) -> String {
    let mut plain = String::with_capacity(line.len());
    let mut characters = line.chars();
    // The character before a backspace.
    let mut under = None;
    while let Some(it) = characters.next() {
        match it {
            '\u{8}' => under = plain.pop().or(under),
            '\u{1b}' => skip_sequence(&mut characters),
            it => {
                let shown = under.take().filter(|_| it == '_').unwrap_or(it);
                plain.push(shown);
            }
        }
    }
    plain
}

/// Skips the rest of an escape sequence such as `ESC [ 1 m`.
fn skip_sequence(characters: &mut std::str::Chars<'_>) {
    let mut ahead = characters.clone();
    if ahead.next() != Some('[') {
        return;
    }
    // Parameters, then the final letter.
    let length = ahead.clone().take_while(|it| matches!(it, '0'..='?' | ' '..='/')).count();
    if ahead.nth(length).is_some() {
        *characters = ahead;
    }
}

/// Adds the title, description and headings of a formatted manual page; returns false for other texts.
fn page(text: &str, draft: &mut Draft<'_>) -> bool {
    let Some(first) = text.lines().map(str::trim).find(|it| !it.is_empty()) else { return false };
    // `LS(1)    User Commands    LS(1)`
    let (Some(left), Some(right)) = (first.split(' ').next(), first.rsplit(' ').next()) else {
        return false;
    };
    let is_heading = left == right && left.len() < first.len() && left.ends_with(')');
    let Some((name, section)) = left.split_once('(').filter(|_| is_heading) else { return false };
    let (mut headings, mut name_section) =
        (Body::new(HEADINGS_BYTES_MAX), Body::new(NAME_BYTES_MAX));
    let mut is_name = false;
    for line in text.lines().filter(|it| !it.is_empty()) {
        if line.starts_with(' ') || line.starts_with('\t') {
            if is_name {
                name_section.space();
                name_section.push_squeezed(line);
            }
        } else if line.len() <= HEADING_BYTES_MAX && !line.contains("   ") {
            is_name = line.eq_ignore_ascii_case("name");
            headings.push_line(line);
        } else {
            is_name = false;
        }
    }
    let purpose = name_section.finish().trim().to_owned();
    draft.title = if purpose.is_empty() { left.to_lowercase() } else { purpose.clone() };
    let dashes = [" - ", " \u{2013} ", " \u{2014} ", " \u{2010} "];
    let parts = dashes.iter().find_map(|dash| purpose.split_once(dash));
    draft.description = parts.map(|(_, it)| it.to_owned()).unwrap_or_default();
    draft.other("Headings", headings.finish().trim());
    draft.other("Manual-Page", format!("{}({section}", name.to_lowercase()));
    true
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::Type;
    use crate::testing::render;

    #[test]
    fn overstruck_characters_are_read_once() {
        for (line, expected) in [
            ("N\u{8}NA\u{8}AM\u{8}ME\u{8}E", "NAME"),
            ("_\u{8}f_\u{8}i_\u{8}l_\u{8}e", "file"),
            ("f\u{8}_i\u{8}_", "fi"),
            ("_\u{8}_\u{8}a", "a"),
            ("b\u{8}b\u{8}b\u{8}bold", "bold"),
            ("+\u{8}o item", "o item"),
            ("\u{8}x", "x"),
            ("\u{1b}[1mbold\u{1b}[0m \u{1b}[4;31mred\u{1b}[m", "bold red"),
            ("\u{1b}", ""),
            ("\u{1b}[", "["),
            ("snake_case", "snake_case"),
        ] {
            assert_eq!(bare(line), expected, "{line:?}");
        }
    }

    #[test]
    fn a_formatted_manual_page() {
        let page = "LS(1)             User Commands             LS(1)\n\n\nN\u{8}NA\u{8}AM\u{8}ME\u{8}E\n\
                    \u{20}      ls - list _\u{8}d_\u{8}i_\u{8}r contents\n\nS\u{8}SEE A\u{8}ALSO\n       dir(1)\n\n\
                    GNU             May 1995             LS(1)\n\u{c}";
        assert_eq!(
            render("ls.1", Type::FormattedText, page.as_bytes())
                .split("\nPartial-Text: ")
                .next()
                .unwrap(),
            "Title: ls - list dir contents\nDescription: list dir contents\n\
             Headings: NAME | SEE ALSO\nManual-Page: ls(1)"
        );
    }

    #[test]
    fn other_text_has_its_first_line_for_a_title() {
        assert_eq!(
            render(
                "x",
                Type::FormattedText,
                b"\x0cT\x08Ti\x08it\x08tl\x08le\x08e\n\n_\x08i_\x08t is.\n"
            ),
            "Title: Title\nDescription: it is.\nPartial-Text: Title |  | it is."
        );
    }

    proptest! {
        #[test]
        fn nothing_of_the_format_is_left(text in "[a_\u{8}\u{1b}\\[m0é \n\u{c}]{0,200}") {
            let line = bare(&text);
            let is_left = line.contains(['\u{8}', '\u{1b}']);
            prop_assert!(!is_left, "{line:?}");
            render("x", Type::FormattedText, text.as_bytes());
        }
    }
}
