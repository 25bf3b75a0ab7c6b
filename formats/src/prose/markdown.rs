//! Markdown: front matter, headings, links, text.
//!
//! Source: CommonMark with GitHub's tables; YAML and TOML front matter of static site generators (only plain
//! `key: value` lines are read).

use std::collections::HashSet;

use pulldown_cmark::{Event, MetadataBlockKind, Options, Parser, Tag, TagEnd};
use url::Url;

use super::references::followed;
use crate::cancellable::TimeLimit;
use crate::text::{Body, HEADINGS_BYTES_MAX, is_telling};
use crate::{DateSource, Draft, Input};

/// The state of reading one document.
#[derive(Default)]
struct MarkdownDocument {
    body: Body,
    headings: Body,
    in_heading: bool,
    /// The first paragraph; complete once `described` is set.
    paragraph: Body,
    in_paragraph: bool,
    described: bool,
    matter: Option<MetadataBlockKind>,
    fields: Vec<(String, String)>,
    base: Option<Url>,
    links: Vec<String>,
    links_max: usize,
    seen: HashSet<String>,
}

pub(crate) fn summarize<'a>(input: &Input<'a>) -> Draft<'a> {
    let text = input.text();
    let options = Options::ENABLE_TABLES
        | Options::ENABLE_FOOTNOTES
        | Options::ENABLE_STRIKETHROUGH
        | Options::ENABLE_TASKLISTS
        | Options::ENABLE_YAML_STYLE_METADATA_BLOCKS
        | Options::ENABLE_PLUSES_DELIMITED_METADATA_BLOCKS;
    let mut document = MarkdownDocument {
        body: Body::new(input.text_bytes_max()),
        headings: Body::new(HEADINGS_BYTES_MAX),
        paragraph: Body::new(1024),
        base: input.base(),
        links_max: input.settings.references_max,
        ..MarkdownDocument::default()
    };
    let mut time = TimeLimit::new(input.cancelled);
    let events = Parser::new_ext(&text, options).take_while(|_| time.goes_on());
    events.for_each(|it| document.event(it));
    let mut draft = document.draft();
    time.report("the document", &mut draft);
    input.report_text(&mut draft);
    draft
}

impl MarkdownDocument {
    fn event(&mut self, event: Event<'_>) {
        match event {
            Event::Start(tag) => self.start(tag),
            Event::End(tag) => self.end(tag),
            Event::Text(text) if self.matter.is_some() => self.front_matter(&text),
            Event::Text(text) | Event::Code(text) => self.text(&text),
            Event::SoftBreak | Event::HardBreak => self.text(" "),
            Event::Rule => self.body.line(),
            _ => {}
        }
    }

    fn start(&mut self, tag: Tag<'_>) {
        match tag {
            Tag::Heading { .. } => {
                self.in_heading = true;
                self.body.line();
            }
            Tag::Paragraph => {
                self.in_paragraph = !self.described;
                self.body.line();
            }
            Tag::Link { dest_url, .. } => self.link(&dest_url),
            Tag::MetadataBlock(kind) => self.matter = Some(kind),
            Tag::TableCell => self.body.space(),
            Tag::Item | Tag::CodeBlock(_) | Tag::BlockQuote(_) | Tag::TableHead | Tag::TableRow => {
                self.body.line();
            }
            _ => {}
        }
    }

    fn end(&mut self, tag: TagEnd) {
        match tag {
            TagEnd::Heading(_) => {
                self.in_heading = false;
                self.headings.line();
                self.body.line();
            }
            TagEnd::Paragraph => {
                // Badges and rulers do not describe anything.
                self.described |= self.in_paragraph && is_telling(self.paragraph.as_str());
                self.in_paragraph = false;
                self.body.line();
            }
            TagEnd::MetadataBlock(_) => self.matter = None,
            TagEnd::CodeBlock | TagEnd::Table => self.body.line(),
            _ => {}
        }
    }

    fn text(&mut self, text: &str) {
        // Code keeps its lines.
        self.body.push(text);
        if self.in_heading {
            self.headings.push(text);
        }
        if self.in_paragraph {
            self.paragraph.push(text);
        }
    }

    /// Reads `key: value` and `key = value` lines.
    fn front_matter(&mut self, text: &str) {
        for line in text.lines().filter(|line| !line.starts_with([' ', '#', '-'])) {
            let Some((key, value)) = line.split_once([':', '=']) else { continue };
            let value = value.trim().trim_matches(['"', '\'', '[', ']']);
            if !value.is_empty() {
                self.fields.push((key.trim().to_ascii_lowercase(), value.to_owned()));
            }
        }
    }

    fn link(&mut self, target: &str) {
        let target = target.split('#').next().unwrap_or_default();
        if target.is_empty()
            || self.links_max < self.links.len()
            || !self.seen.insert(target.to_owned())
        {
            return;
        }
        self.links.extend(followed(self.base.as_ref(), target));
    }

    fn draft<'a>(mut self) -> Draft<'a> {
        let mut draft = Draft::default();
        let field = |name: &str| self.fields.iter().find(|(key, _)| key == name);
        let field = |name: &str| field(name).map(|(_, value)| value.clone()).unwrap_or_default();
        draft.title = field("title");
        if draft.title.is_empty() {
            draft.title = self.headings.as_str().lines().next().unwrap_or_default().to_owned();
        }
        draft.authors.push(field("author"));
        draft.description = field("description");
        if draft.description.is_empty() {
            draft.description = self.paragraph.as_str().to_owned();
        }
        draft.keywords = [field("tags"), field("keywords"), field("categories")].join("\n");
        draft.r#abstract = field("abstract");
        draft.date(&field("date"), DateSource::Header);
        draft.other("Language", [field("lang"), field("language")].concat());
        draft.other("Headings", self.headings.as_str().trim());
        draft.references = std::mem::take(&mut self.links);
        draft.set_body(self.body);
        draft
    }
}

#[cfg(test)]
mod tests {
    use crate::object::Object;
    use crate::testing::{self, render};
    use crate::{Settings, Type};

    fn check(text: &str, expected: &str) {
        assert_eq!(render("n.md", Type::Markdown, text.as_bytes()), expected);
    }

    #[test]
    fn a_document() {
        check(
            "# The *title*\n\n[![badge](b.svg)](http://ci.example/)\n\nWhat it is,\nin `short`.\n\n\
             ## Next\n* one\n* two [link](../x.md#a \"t\")\n\n|a|b|\n|-|-|\n|c|d|\n\n    code\n",
            "Title: The title\n\
             Description: badge\n\
             Headings: The title | Next\n\
             URL-References: http://ci.example/ | http://h.example/x.md\n\
             Partial-Text: The title | badge | What it is, in short. | Next | one | two link | a b | \
             c d | code",
        );
    }

    #[test]
    fn front_matter() {
        check(
            "---\ntitle: \"From the front\"\nauthor: Ann\ndate: 2024-01-02\nlang: de\ntags: [a1, b2]\n---\n\nText.\n",
            "Title: From the front\nAuthor: Ann\nDescription: Text.\nDate: 2024-01-02\nDate-Source: header\n\
             Language: de\nLanguage-Source: declared\nPartial-Text: Text.",
        );
        check("+++\ntitle = 'T'\n+++\nx", "Title: T\nDescription: x\nPartial-Text: x");
    }

    #[test]
    fn hostile_documents_end() {
        let deep = [
            "> ".repeat(100_000),
            "* ".repeat(100_000),
            "[".repeat(300_000),
            "*a_".repeat(100_000),
        ];
        for text in deep {
            let object = Object::whole("http://h.example/n.md", format!("words\n\n{text}"));
            let settings = Settings::default();
            let summary = testing::summarize(&object, Type::Markdown, &settings, &|| false);
            let text = summary.record.text("Partial-Text").unwrap();
            assert!(
                text.starts_with("words") && text.len() <= settings.detail.partial_text_bytes_max
            );
            assert!(summary.problems.is_empty());
        }
    }
}
