//! FictionBook (`.fb2`): a book in one XML file.
//!
//! Source: FictionBook 2.1's schema: `description` (`title-info`, `publish-info`) and `body`.

use crate::limit::Limit;
use crate::metadata::{Field, Metadata};
use crate::office::xml::{self, Piece};
use crate::text::{Body, HEADINGS_BYTES_MAX};
use crate::{Draft, Input};

/// Returns whether this is the root of a book.
pub(super) fn is_book(head: &[u8]) -> bool {
    memchr::memmem::find(head, b"<FictionBook").is_some()
}

/// The reader of a book.
struct Reader {
    about: Metadata,
    body: Body,
    headings: Body,
    /// Names of the open elements that matter.
    part: Option<&'static str>,
    field: Body,
    author: String,
    is_title: bool,
}

pub(super) fn summarize<'a>(input: &Input<'a>) -> Draft<'a> {
    let mut draft = Draft::default();
    let text = xml::text(input.front(Limit::Document, &mut draft));
    let mut reader = Reader {
        about: Metadata::default(),
        body: Body::new(input.text_bytes_max()),
        headings: Body::new(HEADINGS_BYTES_MAX),
        part: None,
        field: Body::new(Limit::Property.bound()),
        author: String::new(),
        is_title: false,
    };
    let end = xml::walk(&text, input.cancelled, &mut |piece| {
        match piece {
            Piece::Start(it) => reader.start(it.name),
            Piece::Text(text) => reader.text(text),
            Piece::End(name) => reader.end(name),
        }
        !reader.body.is_full()
    });
    let problems = std::mem::take(&mut draft.problems);
    let Reader { about, body, headings, field, .. } = reader;
    draft = about.draft(input.text_bytes_max());
    if field.is_cut() {
        draft.cut(Limit::Property.cut());
    }
    draft.other("Headings", headings.as_str().trim());
    draft.set_body(body);
    draft.add_problems(problems.into_iter().chain(end.err()));
    draft
}

impl Reader {
    fn start(&mut self, name: &str) {
        let parts = ["title-info", "publish-info", "document-info", "body", "binary"];
        if let Some(part) = parts.into_iter().find(|it| *it == name) {
            self.part = Some(part);
        }
        match self.part {
            Some("body") if name == "title" => self.is_title = true,
            Some("body") => {}
            // A paragraph of the annotation belongs to it.
            _ if name == "p" => self.field.space(),
            _ => {
                self.field.take();
            }
        }
    }

    fn text(&mut self, text: &str) {
        match self.part {
            Some("body") => {
                self.body.push_squeezed(text);
                if self.is_title {
                    self.headings.push_squeezed(text);
                }
            }
            Some("binary") => {}
            _ => self.field.push_squeezed(text),
        }
    }

    fn end(&mut self, name: &str) {
        match (self.part, name) {
            (Some("body"), "body") | (Some("binary"), "binary") => self.part = None,
            (Some("body"), "title") => {
                self.is_title = false;
                self.headings.line();
                self.body.line();
            }
            (Some("body"), "p" | "v" | "subtitle" | "td" | "text-author") => {
                self.body.line();
                self.headings.space();
            }
            (Some("title-info"), _) => self.title_info(name),
            (Some("publish-info"), "publisher") => self.add(Field::Publisher),
            (Some("publish-info"), "isbn") => {
                let isbn = format!("isbn:{}", self.field.take().trim());
                self.about.add(Field::Identifier, &isbn);
            }
            (Some("publish-info"), "year") => self.add(Field::Date),
            _ => {}
        }
    }

    fn title_info(&mut self, name: &str) {
        match name {
            "book-title" => self.add(Field::Title),
            "first-name" | "middle-name" | "last-name" => {
                self.author = format!("{} {}", self.author, self.field.take().trim());
            }
            "author" => self.about.add(Field::Author, &std::mem::take(&mut self.author)),
            "translator" => self.about.add(Field::Contributor, &std::mem::take(&mut self.author)),
            "annotation" => self.add(Field::Description),
            "genre" => self.add(Field::Genre),
            "keywords" => self.about.add_list(Field::Keyword, &self.field.take(), &[',', ';']),
            "lang" => self.add(Field::Language),
            "date" => self.add(Field::Date),
            "title-info" => self.part = None,
            _ => {}
        }
    }

    fn add(&mut self, field: Field) {
        let value = self.field.take();
        self.about.add(field, &value);
    }
}
