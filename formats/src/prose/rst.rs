//! reStructuredText: title, bibliographic fields, headings, links, and text without markup.
//!
//! Source: docutils' reStructuredText Markup Specification; Sphinx's directives for authors; PEP 12 for the
//! header of mail fields at the beginning of Python's proposals.
//!
//! One pass over the lines. Paragraphs are collected whole, since inline markup may continue in the next
//! line. Indented text is read like other text, so nothing recurses.

mod inline;

use std::borrow::Cow;

use super::references::References;
use super::{PARAGRAPH_BYTES_MAX, pieces};
use crate::cancellable::TimeLimit;
use crate::text::{Body, HEADINGS_BYTES_MAX, is_telling};
use crate::{DateSource, Draft, Input};

/// Longest abstract, in bytes; the text has all of it.
const ABSTRACT_BYTES_MAX: usize = 4 * 1024;
/// Longest title, in bytes; a longer line above a rule is a paragraph.
const TITLE_BYTES_MAX: usize = 300;

/// The content of a directive.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Content {
    /// Nothing that readers see.
    Silent,
    /// Program text.
    Code,
    Text,
}

impl Content {
    fn of(directive: &str) -> Self {
        match directive {
            "toctree" | "index" | "contents" | "raw" | "highlight" | "include"
            | "literalinclude" | "sectnum" | "section-numbering" | "tabularcolumns"
            | "default-role" | "role" | "currentmodule" | "py:currentmodule" | "automodule"
            | "autoclass" | "autofunction" | "target-notes" | "header" | "footer" | "testsetup"
            | "testcleanup" => Self::Silent,
            "code" | "code-block" | "sourcecode" | "parsed-literal" | "math" | "doctest"
            | "testcode" | "productionlist" | "prompt" => Self::Code,
            _ => Self::Text,
        }
    }
}

/// The state of reading one document.
#[derive(Default)]
struct RstDocument<'t> {
    lines: Vec<&'t str>,
    at: usize,
    body: Body,
    title: String,
    headings: Body,
    description: String,
    r#abstract: Body,
    authors: Vec<String>,
    fields: Vec<(String, String)>,
    references: References,
    /// Lines of the open paragraph.
    paragraph: Body,
    /// Whether the text has begun, after the title and the bibliographic fields.
    begun: bool,
    /// Inside the abstract: the indentation of its directive.
    in_abstract: Option<usize>,
}

pub(crate) fn summarize<'a>(input: &Input<'a>) -> Draft<'a> {
    let text = input.text();
    let mut document = RstDocument {
        lines: text.lines().collect(),
        body: Body::new(input.text_bytes_max()),
        headings: Body::new(HEADINGS_BYTES_MAX),
        r#abstract: Body::new(ABSTRACT_BYTES_MAX),
        references: References::of(input),
        paragraph: Body::new(2 * PARAGRAPH_BYTES_MAX),
        ..RstDocument::default()
    };
    document.mail_header();
    let mut time = TimeLimit::new(input.cancelled);
    while let Some(line) = document.lines.get(document.at).filter(|_| time.goes_on()) {
        document.line(line);
    }
    document.end_paragraph();
    let mut draft = document.draft();
    time.report("the document", &mut draft);
    input.report_text(&mut draft);
    draft
}

impl<'t> RstDocument<'t> {
    fn ahead(&self, by: usize) -> &'t str {
        self.lines.get(self.at + by).copied().unwrap_or_default()
    }

    /// Reads `Name: value` lines before the first empty line, if the document begins like a PEP.
    fn mail_header(&mut self) {
        if !self.ahead(0).starts_with("PEP:") {
            return;
        }
        while !self.ahead(0).trim().is_empty() {
            if let Some((name, value)) = self.ahead(0).split_once(':') {
                self.at += 1;
                let value = self.field_value(0, value);
                self.field(name, &value);
            } else {
                self.at += 1;
            }
        }
    }

    /// Reads the current line, and the rest of the construct that it starts.
    fn line(&mut self, line: &'t str) {
        let trimmed = line.trim();
        let indent = indent(line);
        if trimmed.is_empty() {
            self.end_paragraph();
            self.at += 1;
            return;
        }
        if self.in_abstract.is_some_and(|outer| indent <= outer) {
            self.end_paragraph();
            self.in_abstract = None;
        }
        if self.paragraph.as_str().is_empty() {
            if let Some(lines) = self.heading(line) {
                self.at += lines;
                return;
            }
            if trimmed == ".." || trimmed.starts_with(".. ") {
                self.begun |= !is_comment_or_target(trimmed);
                self.explicit(indent, trimmed.get(2..).unwrap_or_default().trim_start());
                return;
            }
            if let Some(target) = trimmed.strip_prefix("__ ") {
                self.references.add(target);
                self.at += 1;
                return;
            }
            if let Some((name, value)) = field(trimmed) {
                self.at += 1;
                let value = self.field_value(indent, value);
                if self.begun {
                    self.body.push_lines(&value);
                } else {
                    self.field(name, &value);
                }
                return;
            }
        }
        self.begun = true;
        self.at += 1;
        if is_ruler(trimmed) || trimmed.starts_with("+-") || trimmed.starts_with("+=") {
            self.end_paragraph();
            return;
        }
        self.paragraph_line(trimmed);
        let is_last = self.ahead(0).trim().is_empty();
        if is_last && trimmed.ends_with("::") {
            self.end_paragraph();
            self.literal(indent);
        }
    }

    /// Reads a heading that starts here; returns its count of lines, or `None` if there is none.
    fn heading(&mut self, line: &'t str) -> Option<usize> {
        let trimmed = line.trim();
        let (title, lines) = if is_rule(line) {
            let title = self.ahead(1).trim();
            // Without an underline, it is a separator between paragraphs.
            let under = self.ahead(2).trim_end();
            if title.is_empty() || under != line.trim_end() || is_rule(title) {
                return None;
            }
            (title, 3)
        } else {
            let under = self.ahead(1).trim_end();
            // A rule may be a little too short; four signs are enough for any title.
            let enough = trimmed.chars().count().min(4);
            if line.starts_with(char::is_whitespace) || !is_rule(under) || under.len() < enough {
                return None;
            }
            (trimmed, 2)
        };
        if TITLE_BYTES_MAX < title.len() {
            return None;
        }
        let title = inline::plain(title, &mut self.references);
        if self.title.is_empty() && !self.begun {
            self.title = title.clone();
        }
        self.headings.push_line(&title);
        self.body.push_lines(&title);
        if title.trim().eq_ignore_ascii_case("abstract") && self.r#abstract.as_str().is_empty() {
            self.section_abstract(lines);
        }
        Some(lines)
    }

    /// Copies the paragraph after the heading `Abstract`, without moving on.
    fn section_abstract(&mut self, lines: usize) {
        let rest = self.lines.get(self.at + lines..).unwrap_or_default();
        let paragraph = rest.iter().skip_while(|it| it.trim().is_empty());
        for line in paragraph.take_while(|it| !it.trim().is_empty()) {
            self.r#abstract.push_squeezed(line);
            self.r#abstract.space();
        }
    }

    /// Reads explicit markup: a directive, a target, a footnote, a substitution or a comment.
    fn explicit(&mut self, indent: usize, rest: &'t str) {
        self.at += 1;
        if let Some(target) = rest.strip_prefix('_') {
            // `_name: target`; a name with colons is in backquotes.
            let parts = match target.strip_prefix('`') {
                Some(quoted) => quoted.split_once("`:"),
                None => target.split_once(": "),
            };
            self.references.add(parts.map(|(_, target)| target).unwrap_or_default());
            return;
        }
        if rest.starts_with("__") {
            return;
        }
        if let Some((label, text)) = rest.strip_prefix('[').and_then(|it| it.split_once(']')) {
            self.paragraph_line(&format!("[{label}]"));
            self.paragraph_line(text.trim());
            return;
        }
        let directive = match rest.strip_prefix('|').and_then(|it| it.split_once('|')) {
            Some(_) => None,
            None => rest.split_once("::"),
        };
        match directive.filter(|(name, _)| is_directive_name(name)) {
            Some((name, arguments)) => self.directive(indent, name.trim(), arguments.trim()),
            // A comment, or the definition of a substitution.
            None => self.skip_block(indent),
        }
    }

    fn directive(&mut self, indent: usize, name: &str, arguments: &'t str) {
        let content = Content::of(name);
        if content == Content::Silent {
            self.skip_block(indent);
            return;
        }
        if name == "meta" {
            while let Some((name, value)) = field(self.ahead(0).trim()) {
                let inner = self::indent(self.ahead(0));
                self.at += 1;
                let value = self.field_value(inner, value);
                self.field(name.split_whitespace().next().unwrap_or_default(), &value);
            }
            return;
        }
        if matches!(name, "sectionauthor" | "moduleauthor" | "codeauthor") {
            self.authors.push(arguments.to_owned());
            return;
        }
        let is_file = matches!(name, "image" | "figure" | "csv-table" | "list-table");
        let is_code = content == Content::Code;
        if !arguments.is_empty() && !is_file && !is_code {
            self.body.push_lines(arguments);
        }
        if name == "abstract" || name == "topic" && arguments.eq_ignore_ascii_case("abstract") {
            self.in_abstract = Some(indent);
        }
        while let Some((name, value)) = field(self.ahead(0).trim()) {
            if name == "alt" {
                self.body.push_lines(value.trim());
            }
            self.at += 1;
        }
        if is_code {
            self.literal(indent);
        }
    }

    /// Adds lines that are indented deeper than `outer`, without reading markup.
    fn literal(&mut self, outer: usize) {
        while let Some(line) = self.lines.get(self.at) {
            if !line.trim().is_empty() {
                if indent(line) <= outer {
                    return;
                }
                self.body.push_line(line.trim());
            }
            self.at += 1;
        }
    }

    fn skip_block(&mut self, outer: usize) {
        while let Some(line) = self.lines.get(self.at) {
            if !line.trim().is_empty() && indent(line) <= outer {
                return;
            }
            self.at += 1;
        }
    }

    /// Returns the value of a field with its continuation lines, which are indented deeper than `outer`.
    fn field_value(&mut self, outer: usize, first: &str) -> String {
        let mut value = Body::new(usize::MAX);
        value.push(first.trim());
        let continues = |line: &str| !line.trim().is_empty() && outer < indent(line);
        while continues(self.ahead(0)) {
            value.line();
            value.push(self.ahead(0).trim());
            self.at += 1;
        }
        value.finish()
    }

    fn field(&mut self, name: &str, value: &str) {
        let value = inline::plain(value, &mut self.references);
        self.fields.push((name.trim().to_ascii_lowercase(), value));
    }

    fn paragraph_line(&mut self, line: &str) {
        self.paragraph.line();
        let item = ["* ", "- ", "+ ", "#. "].into_iter().find_map(|it| line.strip_prefix(it));
        let line = item.map_or(line, str::trim_start);
        let is_row = line == "|" || line.starts_with("| ");
        let line = if is_row { Cow::Owned(line.replace('|', " ")) } else { line.into() };
        for piece in pieces(&line) {
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
        let text = inline::plain(&paragraph, &mut self.references);
        if self.in_abstract.is_some() {
            self.r#abstract.push_squeezed_line(&text);
        }
        if self.description.is_empty() && is_telling(&text) {
            self.description.clone_from(&text);
        }
        self.body.push_lines(text.strip_suffix(':').unwrap_or(&text));
    }

    fn draft<'a>(mut self) -> Draft<'a> {
        let mut draft = Draft::default();
        let fields = std::mem::take(&mut self.fields);
        let field = |name: &str| fields.iter().find(|(key, _)| key == name);
        let field = |name: &str| field(name).map(|(_, value)| value.as_str()).unwrap_or_default();
        let authors = fields.iter().filter(|(key, _)| key == "author" || key == "authors");
        draft.title = match field("title") {
            "" => std::mem::take(&mut self.title),
            title => title.to_owned(),
        };
        for (_, written) in authors {
            let parts = written.split(['\n', ';']).flat_map(|it| it.split(", "));
            draft.authors.extend(parts.map(|it| bare_item(it).to_owned()));
        }
        draft.authors.append(&mut self.authors);
        draft.description = match field("description") {
            "" => self.description,
            description => description.to_owned(),
        };
        draft.r#abstract = match field("abstract") {
            "" => self.r#abstract.finish(),
            text => text.to_owned(),
        };
        draft.keywords = field("keywords").to_owned();
        let date = ["date", "created"].map(field).into_iter().find(|it| !it.is_empty());
        draft.date(date.unwrap_or_default(), DateSource::Header);
        draft.other("Version", rcs_value([field("version"), field("revision")].concat().as_str()));
        draft.other("Publisher", field("organization"));
        draft.other("Copyright", field("copyright"));
        draft.other("Language", field("language"));
        draft.other("Headings", self.headings.as_str().trim());
        draft.references = self.references.finish();
        draft.set_body(self.body);
        draft
    }
}

fn indent(line: &str) -> usize {
    line.len() - line.trim_start().len()
}

/// Returns whether the line is one repeated punctuation sign, as under a title.
fn is_rule(line: &str) -> bool {
    let line = line.trim_end();
    let mut bytes = line.bytes();
    let Some(first) = bytes.next() else { return false };
    // Shorter ones are `..`, `--` and the like; `::` starts a literal block.
    first.is_ascii_punctuation() && 3 <= line.len() && bytes.all(|it| it == first)
}

/// Returns whether the line is a rule or a border of a table.
fn is_ruler(line: &str) -> bool {
    is_rule(line) || line.contains(' ') && line.bytes().all(|it| matches!(it, b'=' | b'-' | b' '))
}

fn is_comment_or_target(line: &str) -> bool {
    line.starts_with(".. _") || !line.contains("::") || line.starts_with(".. meta")
}

fn is_directive_name(name: &str) -> bool {
    let plain = |it: u8| it.is_ascii_alphanumeric() || b"-_.:+".contains(&it);
    !name.is_empty() && name.trim_end().bytes().all(plain)
}

/// Splits `:name: value`; returns `None` for others, such as `:role:` before a backquote.
fn field(line: &str) -> Option<(&str, &str)> {
    let (name, value) = line.strip_prefix(':')?.split_once(':')?;
    let is_name = !name.is_empty() && !name.contains('`') && !name.starts_with(' ');
    (is_name && (value.is_empty() || value.starts_with(' '))).then_some((name, value))
}

fn bare_item(item: &str) -> &str {
    item.trim().trim_start_matches(['-', '*', '+']).trim_end_matches(',').trim()
}

/// Returns the value of an RCS keyword: `2024/01/02` for `$Date: 2024/01/02 $`.
fn rcs_value(value: &str) -> &str {
    match value.strip_prefix('$').and_then(|it| it.strip_suffix('$')) {
        Some(inner) => inner.split_once(':').map_or("", |(_, value)| value.trim()),
        None => value,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use crate::Type;
    use crate::testing::render;

    #[track_caller]
    fn check(text: &str, expected: &str) {
        assert_eq!(render("n.rst", Type::Rst, text.as_bytes()), expected);
    }

    #[test]
    fn a_document() {
        check(
            "=========\n The *Big* One\n=========\n\n:Author: Ann Other <a@h.example>\n:Date: 2024-01-02\n\
             :Version: 1.2\n:Language: en\n:Abstract: In short,\n    it is big.\n\nFirst\n-----\n\nSome ``code`` and \
             **strong**\nwords_ of `a link\n<../x.html#y>`__, and :ref:`the next <next>`.\n\n\
             .. _words: http://w.example/\n.. a comment\n   that goes on\n\n* one\n* two::\n\n     *p = 1\n\n\
             .. _next:\n\nNext\n~~~~\n\nThe end.\n",
            "Title: The Big One\n\
             Author: Ann Other <a@h.example>\n\
             Description: Some code and strong words_ of a link, and the next.\n\
             Abstract: In short, | it is big.\n\
             Date: 2024-01-02\nDate-Source: header\n\
             Version: 1.2\n\
             Language: en\nLanguage-Source: declared\n\
             Headings: The Big One | First | Next\n\
             URL-References: http://h.example/x.html | http://w.example/\n\
             Partial-Text: The Big One | First | Some code and strong | words_ of a link, and the \
             next. | one | two: | *p = 1 | Next | The end.",
        );
    }

    #[test]
    fn directives() {
        check(
            ".. meta::\n   :description: What it is.\n   :keywords: a1, b2\n\nTitle\n=====\n\n\
             .. sectionauthor:: Ann <a@h.example>\n.. toctree::\n   :maxdepth: 2\n\n   intro\n\n\
             .. note:: Mind this.\n   And that.\n\n.. figure:: x.png\n   :alt: A picture\n\n   Below it.\n\n\
             .. code-block:: python\n   :linenos:\n\n   a = `b`\n\n.. topic:: Abstract\n\n   In short.\n\n\
             .. |x| replace:: y\n.. [1] A note on http://n.example/.\n\n\
             ==== ====\na    b\n==== ====\n\n+---+\n| c |\n+---+\n",
            "Title: Title\n\
             Author: Ann <a@h.example>\n\
             Description: What it is.\n\
             Abstract: In short.\n\
             Headings: Title\n\
             URL-References: http://n.example/\n\
             Partial-Text: Title | Mind this. | And that. | A picture | Below it. | a = `b` | Abstract | \
             In short. | [1] | A note on http://n.example/. | a b | c",
        );
    }

    #[test]
    fn a_proposal() {
        check(
            "PEP: 1\nTitle: Purpose\nAuthor: Ann Other,\n        Bob\nCreated: 13-Jun-2000\n\n\
             Abstract\n========\n\nIt is\nshort.\n",
            "Title: Purpose\n\
             Author: Ann Other | Bob\n\
             Description: It is short.\n\
             Abstract: It is short.\n\
             Date: 2000-06-13\nDate-Source: header\n\
             Headings: Abstract\n\
             Partial-Text: Abstract | It is | short.",
        );
    }

    #[test]
    fn hostile_documents_end() {
        for text in ["`".repeat(100_000), "*a ".repeat(60_000), ".. x::\n".repeat(20_000)] {
            render("n.rst", Type::Rst, text.as_bytes());
        }
        render("n.rst", Type::Rst, "Abstract\n====\n\n".repeat(10_000).as_bytes());
    }

    proptest! {
        #[test]
        fn any_text_gives_a_record(
            text in "([.]{2} |::|:a:|`|``|[*]|[|]|_|<|>|==|--|\n|\n\n|   |[a-c]|\\PC){0,80}",
        ) {
            prop_assert!(render("n.rst", Type::Rst, text.as_bytes()).starts_with("Title: "));
        }
    }
}
