//! Plain text: prose (notes, READMEs, FAQs, RFCs), and text for programs (settings, tables, patches).
//!
//! Source: Essence's Text, README and FAQ summarizers (first lines and paragraphs; all words of
//! short texts).

use crate::text::is_telling;
use crate::{Draft, Input};

/// Maximum number of lines that are searched for a title and a first paragraph.
const LINES_MAX: usize = 200;
/// Longest title, in bytes; a longer first line is the start of a paragraph.
const HEADLINE_BYTES_MAX: usize = 120;

/// Summarizes prose: its first telling line is the title, its first paragraph the description.
pub(crate) fn prose<'a>(input: &Input<'a>) -> Draft<'a> {
    let body = input.text();
    let (title, description) = machine_readable(&body).unwrap_or_else(|| headline(&body));
    let mut draft = Draft { title, description, ..Draft::default() };
    input.set_text(body, &mut draft);
    draft
}

/// Summarizes text for programs: only its words.
pub(crate) fn lines<'a>(input: &Input<'a>) -> Draft<'a> {
    let mut draft = Draft::default();
    input.set_text(input.text(), &mut draft);
    draft
}

/// Returns title and description of a machine-readable copyright file (DEP 5), whose first line has only
/// its format.
fn machine_readable(text: &str) -> Option<(String, String)> {
    if !text.starts_with("Format: http") {
        return None;
    }
    let field = |name: &str| {
        let mut lines = text.lines().take(LINES_MAX);
        lines.find_map(|line| line.strip_prefix(name)).map(str::trim).unwrap_or_default()
    };
    let name = field("Upstream-Name:");
    let title = if name.is_empty() { String::new() } else { format!("Copyright of {name}") };
    let license = field("License:");
    let description =
        if license.is_empty() { String::new() } else { format!("Licensed under {license}") };
    Some((title, description))
}

/// Returns the first telling line, and the paragraph that begins with this line or comes after it.
pub(crate) fn headline(text: &str) -> (String, String) {
    let mut lines = text.lines().take(LINES_MAX).map(str::trim);
    let Some(first) = lines.by_ref().find(|line| is_telling(line) && !is_mark(line)) else {
        return (String::new(), String::new());
    };
    let rest: Vec<&str> = lines.collect();
    // A line that runs on into the next is prose, not a headline.
    let runs_on = HEADLINE_BYTES_MAX < first.len()
        || rest.first().is_some_and(|next| {
            is_telling(next) && first.len() > HEADLINE_BYTES_MAX / 2 && !first.ends_with('.')
        });
    let start = if runs_on {
        0
    } else {
        rest.iter().position(|line| is_telling(line)).unwrap_or(rest.len())
    };
    let paragraph = rest.iter().skip(start).take_while(|line| is_telling(line));
    let mut description = String::new();
    for line in runs_on.then_some(&first).into_iter().chain(paragraph) {
        description.push_str(line);
        description.push('\n');
    }
    (bare(first).to_owned(), description)
}

/// Returns whether a line is only a mark: a target, comment or directive of reStructuredText
/// (`.. _name:`), or an anchor or attribute of AsciiDoc (`[[name]]`, `:toc: left`).
fn is_mark(line: &str) -> bool {
    let is_attribute = |line: &str| {
        let name = line.strip_prefix(':').and_then(|it| it.split_once(':')).map(|it| it.0);
        name.is_some_and(|it| !it.is_empty() && !it.contains(char::is_whitespace))
    };
    line.starts_with(".. ") || line.starts_with("[[") && line.ends_with("]]") || is_attribute(line)
}

/// Strips rulers and comment signs from a headline; numbers of sections stay.
fn bare(line: &str) -> &str {
    let bare = line.trim_matches(|it: char| "=*-#~+|/;%_".contains(it) || it.is_whitespace());
    if bare.is_empty() { line } else { bare }
}

#[cfg(test)]
mod tests {
    use crate::Type;
    use crate::testing::render;

    fn check(text: &[u8], expected: &str) {
        assert_eq!(render("n.txt", Type::Text, text), expected);
    }

    #[test]
    fn the_first_telling_line_is_the_title() {
        check(
            b"=====\n == Title ==\n=====\n\nThe first\nparagraph.\n\nThe next.\n",
            "Title: Title\nDescription: The first paragraph.\n\
             Partial-Text: ===== |  == Title == | ===== |  | The first | paragraph. |  | The next.",
        );
    }

    #[test]
    fn a_line_that_runs_on_is_also_the_description() {
        let line = "This is the beginning of a long sentence which goes on and on until";
        check(
            format!("{line}\nit ends.\n").as_bytes(),
            &format!(
                "Title: {line}\nDescription: {line} it ends.\nPartial-Text: {line} | it ends."
            ),
        );
    }

    #[test]
    fn marks_are_no_titles() {
        for mark in [".. _tut-errors:", "[[tut-errors]]", ":toc: left"] {
            check(
                format!("{mark}\n\nErrors\n======\n\nText.\n").as_bytes(),
                &format!(
                    "Title: Errors\nDescription: Text.\n\
                     Partial-Text: {mark} |  | Errors | ====== |  | Text."
                ),
            );
        }
    }

    #[test]
    fn a_copyright_file_is_about_its_package() {
        check(
            b"Format: https://www.debian.org/x/\nUpstream-Name: foo\n\nFiles: *\nLicense: GPL-2+\n",
            "Title: Copyright of foo\nDescription: Licensed under GPL-2+\n\
             Partial-Text: Format: https://www.debian.org/x/ | Upstream-Name: foo |  | Files: * | \
             License: GPL-2+",
        );
    }

    #[test]
    fn texts_without_words_have_their_file_name_as_title() {
        check(b"", "Title: n.txt");
        check(b"----\n\n", "Title: n.txt\nPartial-Text: ----");
    }
}
