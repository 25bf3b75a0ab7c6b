//! AsciiDoc: header (title, authors, revision, attributes), headings, links, and text without markup.
//!
//! Source: the AsciiDoc Language Documentation (Asciidoctor), "Document Header", "Sections", "Blocks";
//! the AsciiDoc User Guide for underlined titles.
//!
//! # Differences from the specification
//!
//! * Conditions (`ifdef`) are not evaluated: the text of all branches is kept.
//! * Only attributes that the document sets, and those for characters, are replaced by their
//!   values.

mod inline;

use inline::Attributes;

use super::references::References;
use super::{PARAGRAPH_BYTES_MAX, pieces};
use crate::cancellable::TimeLimit;
use crate::limit::Limit;
use crate::text::{Body, HEADINGS_BYTES_MAX, is_telling};
use crate::{DateSource, Draft, Input};

/// Longest abstract, in bytes; the text has all of it.
const ABSTRACT_BYTES_MAX: usize = 4 * 1024;
/// Longest title, in bytes.
const TITLE_BYTES_MAX: usize = 300;
/// Signs that underline titles.
const UNDERLINES: [char; 5] = ['=', '-', '~', '^', '+'];

#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum Block<'t> {
    /// Text with markup.
    #[default]
    Text,
    /// A block without markup, which ends with a line like its first.
    Verbatim(&'t str),
    Comment(&'t str),
}

/// The state of reading one document.
#[derive(Default)]
struct AsciiDoc<'t> {
    lines: Vec<&'t str>,
    at: usize,
    block: Block<'t>,
    body: Body,
    title: String,
    authors: Vec<String>,
    headings: Body,
    description: String,
    r#abstract: Body,
    /// Whether the next paragraphs are the abstract.
    in_abstract: bool,
    revision: (String, String),
    attributes: Attributes<'t>,
    references: References,
    paragraph: Body,
}

pub(crate) fn summarize<'a>(input: &Input<'a>) -> Draft<'a> {
    let text = input.text();
    let mut document = AsciiDoc {
        lines: text.lines().collect(),
        body: Body::new(input.text_bytes_max()),
        headings: Body::new(HEADINGS_BYTES_MAX),
        r#abstract: Body::new(ABSTRACT_BYTES_MAX),
        references: References::of(input),
        paragraph: Body::new(2 * PARAGRAPH_BYTES_MAX),
        attributes: Attributes { room: input.text_bytes_max(), ..Attributes::default() },
        ..AsciiDoc::default()
    };
    document.header();
    let mut time = TimeLimit::new(input.cancelled);
    while let Some(line) = document.lines.get(document.at).filter(|_| time.goes_on()) {
        document.at += 1;
        document.line(line.trim_end());
    }
    document.end_paragraph();
    let mut draft = document.draft();
    time.report("the document", &mut draft);
    input.report_text(&mut draft);
    draft
}

impl<'t> AsciiDoc<'t> {
    fn ahead(&self, by: usize) -> &'t str {
        self.lines.get(self.at + by).copied().unwrap_or_default().trim_end()
    }

    /// Reads the header: comments and attributes, the title, then authors and revision.
    fn header(&mut self) {
        self.header_attributes();
        while self.ahead(0).is_empty() && self.at < self.lines.len() {
            self.at += 1;
            self.header_attributes();
        }
        let first = self.ahead(0);
        let title =
            if let Some(title) = first.strip_prefix("= ").or_else(|| first.strip_prefix("# ")) {
                self.at += 1;
                title
            } else if self.ahead(1).starts_with('=') && is_underline(self.ahead(1), first) {
                self.at += 2;
                first
            } else {
                return;
            };
        let line = self.ahead(0);
        let is_author = line.starts_with(char::is_alphabetic) && !line.contains("::");
        if is_author {
            self.at += 1;
            self.author_line(line);
            let line = self.ahead(0);
            if is_revision(line) {
                self.at += 1;
                self.revision_line(line);
            }
        }
        self.header_attributes();
        self.title = self.inline(title.trim());
        self.body.push_lines(&self.title);
    }

    /// Reads `:name: value` lines and comments.
    fn header_attributes(&mut self) {
        loop {
            let line = self.ahead(0);
            if let Some((name, value)) = attribute(line) {
                self.attribute(name, value);
            } else if !(line.starts_with("//") && !line.starts_with("////")
                || line.starts_with("ifdef::")
                || line.starts_with("ifndef::")
                || line.starts_with("endif::"))
            {
                return;
            }
            self.at += 1;
        }
    }

    fn attribute(&mut self, name: &'t str, value: &'t str) {
        if inline::VALUE_BYTES_MAX < value.len() {
            // It is not put in the place of its name.
            self.body.push_lines(value);
        }
        self.attributes.values.insert(name, value.trim());
    }

    /// Reads authors: `First Middle Last <address>; Other_Name`.
    fn author_line(&mut self, line: &str) {
        for author in line.split("; ") {
            // More text after the address is not part of the name.
            let author = author.split_inclusive('>').next().unwrap_or_default();
            let (name, address) = author.split_once('<').unwrap_or((author, ""));
            let mut name = name.trim().replace('_', " ");
            if address.contains('@') {
                name.push_str(" <");
                name.push_str(address);
            }
            self.authors.push(name);
        }
    }

    /// Reads the revision: `v1.0, 2024-01-02: remark`.
    fn revision_line(&mut self, line: &str) {
        let line = line.split_once(": ").map_or(line, |(it, _)| it);
        let (version, date) = match line.split_once(',') {
            Some((version, date)) => (version, date.trim()),
            None if line.starts_with('v') => (line, ""),
            None => ("", line),
        };
        let version = version.trim_start_matches(|it: char| !it.is_ascii_digit());
        self.revision = (version.to_owned(), date.to_owned());
    }

    fn line(&mut self, line: &'t str) {
        match self.block {
            Block::Verbatim(end) | Block::Comment(end) if line == end => {
                self.block = Block::Text;
                return;
            }
            Block::Verbatim(_) => {
                self.body.push_line(line.trim());
                return;
            }
            Block::Comment(_) => return,
            Block::Text => {}
        }
        if line.trim().is_empty() {
            self.end_paragraph();
            return;
        }
        if self.paragraph.as_str().is_empty() && self.heading(line) {
            return;
        }
        if is_delimiter(line) {
            self.end_paragraph();
            match line.as_bytes().first() {
                Some(b'/') => self.block = Block::Comment(line),
                Some(b'-' | b'.' | b'+' | b'`') if line != "--" => {
                    self.block = Block::Verbatim(line);
                }
                // Examples, quotes, side bars and tables hold text with markup.
                _ => {}
            }
            return;
        }
        if line.starts_with("//") {
            return;
        }
        if let Some((name, value)) = attribute(line) {
            self.attribute(name, value);
            return;
        }
        if line.starts_with('[') && line.ends_with(']') {
            self.end_paragraph();
            self.in_abstract |= line == "[abstract]";
            return;
        }
        if let Some((name, rest)) = block_macro(line) {
            self.end_paragraph();
            // A picture has an alternative text; other macros include other files.
            if matches!(name, "image" | "video" | "audio")
                && let Some((_, alternative)) = rest.split_once('[')
            {
                let text = alternative.trim_end_matches(']').split(',').next().unwrap_or_default();
                self.body.push_lines(text.trim_matches('"'));
            }
            return;
        }
        if self.paragraph.as_str().is_empty()
            && let Some(title) = line.strip_prefix('.')
            && title.starts_with(|it: char| it.is_alphanumeric() || it == '`')
        {
            let title = self.inline(title);
            self.body.push_lines(&title);
            return;
        }
        self.paragraph_line(line);
    }

    /// Reads a heading that starts here; returns false if there is none.
    fn heading(&mut self, line: &'t str) -> bool {
        let level = line.bytes().take_while(|it| *it == b'=').count();
        let title = if (2..=6).contains(&level) && line.as_bytes().get(level) == Some(&b' ') {
            line.trim_matches('=').trim()
        } else if is_underline(self.ahead(0), line) {
            self.at += 1;
            line
        } else {
            return false;
        };
        let title = self.inline(title);
        self.in_abstract = title.eq_ignore_ascii_case("abstract");
        self.headings.push_line(&title);
        self.body.push_lines(&title);
        true
    }

    fn paragraph_line(&mut self, line: &str) {
        self.paragraph.line();
        let line = line.trim();
        if let Some(cells) = line.strip_prefix('|') {
            return self.paragraph_text(cells.replace('|', " ").trim());
        }
        let item = line.trim_start_matches(['*', '.', '-']);
        // A space follows list marks, but not emphasis.
        let line = if item.starts_with(' ') { item.trim_start() } else { line };
        // `+` on its own line attaches the next block to an item; at the end of a line it is a line break.
        let line = line.strip_suffix(" +").unwrap_or(line);
        if line != "+" {
            self.paragraph_text(line);
        }
    }

    fn paragraph_text(&mut self, text: &str) {
        for piece in pieces(text) {
            if PARAGRAPH_BYTES_MAX < self.paragraph.as_str().len() {
                self.end_paragraph();
            }
            self.paragraph.push(piece);
        }
    }

    fn end_paragraph(&mut self) {
        let paragraph = self.paragraph.take();
        if paragraph.is_empty() {
            return;
        }
        let text = self.inline(&paragraph);
        if self.in_abstract && !self.r#abstract.is_full() {
            self.r#abstract.push_squeezed_line(&text);
            self.in_abstract = self.headings.as_str().trim_end().ends_with("bstract");
        }
        if self.description.is_empty() && is_telling(&text) {
            self.description.clone_from(&text);
        }
        self.body.push_lines(&text);
    }

    fn inline(&mut self, text: &str) -> String {
        inline::plain(text, &mut self.attributes, &mut self.references)
    }

    fn draft<'a>(self) -> Draft<'a> {
        let mut draft = Draft::default();
        let attribute = |name: &str| self.attributes.values.get(name).copied().unwrap_or_default();
        draft.title = match attribute("doctitle") {
            "" => self.title,
            title => title.to_owned(),
        };
        draft.authors = self.authors;
        draft.authors.extend(attribute("author").split(';').map(str::to_owned));
        draft.authors.extend(attribute("authors").split(';').map(str::to_owned));
        draft.description = match attribute("description") {
            "" => self.description,
            description => description.to_owned(),
        };
        draft.r#abstract = self.r#abstract.finish();
        draft.keywords = attribute("keywords").to_owned();
        let (version, date) = self.revision;
        let date = if date.is_empty() { attribute("revdate") } else { &date };
        draft.date(date, DateSource::Header);
        draft.other("Version", if version.is_empty() { attribute("revnumber") } else { &version });
        draft.other("Language", attribute("lang"));
        draft.other("Copyright", attribute("copyright"));
        draft.other("Headings", self.headings.as_str().trim());
        draft.references = self.references.finish();
        if self.attributes.has_more {
            draft.cut(Limit::Text.cut_at(self.body.bytes_max()));
        }
        draft.set_body(self.body);
        draft
    }
}

/// Splits `:name: value` or `:name:`; returns `None` for others and for unset ones (`:!name:`).
fn attribute(line: &str) -> Option<(&str, &str)> {
    let (name, value) = line.strip_prefix(':')?.split_once(':')?;
    let plain = |it: u8| it.is_ascii_alphanumeric() || it == b'-' || it == b'_';
    let is_name = !name.is_empty() && name.bytes().all(plain);
    (is_name && (value.is_empty() || value.starts_with(' '))).then_some((name, value))
}

fn is_revision(line: &str) -> bool {
    let line = line.strip_prefix(['v', 'V']).unwrap_or(line);
    line.starts_with(|it: char| it.is_ascii_digit()) || line.starts_with("Version ")
}

/// Returns whether `under` underlines `title`: a repeated sign, of the same length within two.
fn is_underline(under: &str, title: &str) -> bool {
    let Some(sign) = under.chars().next().filter(|it| UNDERLINES.contains(it)) else {
        return false;
    };
    let width = title.trim_end().chars().count();
    under.chars().all(|it| it == sign)
        && title.len() <= TITLE_BYTES_MAX
        && 2 <= under.len()
        && under.len().abs_diff(width) <= 2
        && title.starts_with(|it: char| it.is_alphanumeric() || it == '`' || it == '{')
}

/// Returns whether a line starts or ends a block: four or more equal signs, `--`, or a table's `|===`.
fn is_delimiter(line: &str) -> bool {
    if matches!(line, "--" | "|===" | "!===" | ",===" | ":===" | "```") {
        return true;
    }
    let mut bytes = line.bytes();
    let Some(first) = bytes.next().filter(|it| b"-.=*_+/".contains(it)) else { return false };
    4 <= line.len() && bytes.all(|it| it == first)
}

/// Splits `name::target[text]` at the colons.
fn block_macro(line: &str) -> Option<(&str, &str)> {
    let (name, rest) = line.split_once("::")?;
    let is_name = !name.is_empty() && name.bytes().all(|it| it.is_ascii_lowercase() || it == b'-');
    (is_name && rest.ends_with(']') && !rest.starts_with(' ')).then_some((name, rest))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use crate::Type;
    use crate::testing::render;

    #[track_caller]
    fn check(text: &str, expected: &str) {
        assert_eq!(render("n.adoc", Type::AsciiDoc, text.as_bytes()), expected);
    }

    #[test]
    fn a_document() {
        check(
            "// comment\n= The _Big_ One\nAnn Other <a@h.example>; Bob_B Cee\nv1.2, 2024-01-02: first\n\
             :keywords: a1, b2\n:product: Thing\n:lang: en\n\nThe {product} is *bold* and +\nhas \
             https://w.example/[a place] and link:../x.html[more].\n\n== First `code`\n\n[source,c]\n\
             ----\n*p = 1; // x\n----\n\n////\nnot shown\n////\n\n.A title\n* one\n** two, see <<first,above>>\n\n\
             |===\n|a |b\n|===\n\nimage::x.png[A picture, 100]\n\nsnake_case_here 2*3*4\n",
            "Title: The Big One\n\
             Author: Ann Other <a@h.example> | Bob B Cee\n\
             Description: The Thing is bold and has a place and more.\n\
             Date: 2024-01-02\nDate-Source: header\n\
             Version: 1.2\n\
             Language: en\nLanguage-Source: declared\n\
             Headings: First code\n\
             URL-References: https://w.example/ | http://h.example/x.html\n\
             Partial-Text: The Big One | The Thing is bold and | has a place and more. | First code | \
             *p = 1; // x | A title | one | two, see above | a b | A picture | snake_case_here 2*3*4",
        );
    }

    #[test]
    fn attributes_that_grow_without_limit_are_said() {
        let seen = |count: usize| {
            let uses = "{a}\n\n".repeat(count);
            render(
                "n.adoc",
                Type::AsciiDoc,
                format!(":a: {}\n\n{uses}", "word ".repeat(200)).as_bytes(),
            )
        };
        assert!(!seen(500).contains("Truncated: "));
        assert!(seen(5_000).contains("Truncated: text "));
    }

    #[test]
    fn a_manual_page_with_underlined_titles() {
        check(
            "git-add(1)\n==========\n\nNAME\n----\ngit-add - Add files\n\nSEE ALSO\n--------\n\
             linkgit:git-rm[1], http://h.example/y.\n\n[abstract]\nIn short.\n\nLong.\n",
            "Title: git-add(1)\n\
             Description: git-add - Add files\n\
             Abstract: In short.\n\
             Headings: NAME | SEE ALSO\n\
             URL-References: http://h.example/y\n\
             Partial-Text: git-add(1) | NAME | git-add - Add files | SEE ALSO | git-rm(1), \
             http://h.example/y. | In short. | Long.",
        );
    }

    #[test]
    fn values_of_attributes_are_bounded() {
        let text = format!("= T\n:a: {}\n\n{}\n", "x".repeat(1000), "{a}".repeat(100_000));
        render("n.adoc", Type::AsciiDoc, text.as_bytes());
    }

    #[test]
    fn hostile_documents_end() {
        for text in ["`".repeat(100_000), "*a ".repeat(60_000), "a:b[".repeat(60_000)] {
            render("n.adoc", Type::AsciiDoc, text.as_bytes());
        }
    }

    proptest! {
        #[test]
        fn any_text_gives_a_record(
            text in "(= |== |----|:a: |[{]a[}]|`|[*]|_|[+]|<<|>>|\\[|\\]|http:|image::|\n|\n\n|[a-c]|\\PC){0,80}",
        ) {
            prop_assert!(render("n.adoc", Type::AsciiDoc, text.as_bytes()).starts_with("Title: "));
        }
    }
}
