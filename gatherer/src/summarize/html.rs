//! HTML pages, and XML and SGML by the same means: title, head fields, headings, links, text.
//!
//! Source: Essence's HTML and SGML summarizers (anchors, links, fields by a table tag → attribute);
//! TR Figure 3, where `Author` is the page's address and `URL-References` are its anchors.
//!
//! # Differences from the paper
//!
//! * References are resolved against the page's URL (or its `<base>`), each once.
//! * `Description` falls back to the first paragraph, `Title` to the first heading.
//!
//! Sans-I/O.

mod characters;
mod elements;
mod links;
mod tokens;

use std::borrow::Cow;

use url::Url;

use super::{Draft, Input};
use crate::object::ProblemKind;
use crate::text::{Body, decode, is_telling};
use characters::{in_attribute, in_text};
use elements::Element;
use links::Links;
use tokens::{Attributes, Token, Tokens};

/// How much of a page is looked at, in bytes.
const PAGE_BYTES_MAX: usize = 16 * 1024 * 1024;
/// Pieces of a page between two looks at the clock.
const POLL_TOKENS: usize = 1_024;
/// How far the charset's declaration may stand in the page, in bytes.
const DECLARATION_BYTES: usize = 1024;
/// Longest run of text for a title, a heading or an address, in bytes.
const RUN_BYTES_MAX: usize = 2 * 1024;
/// Longest sum of headings, in bytes.
const HEADINGS_BYTES_MAX: usize = 8 * 1024;
/// A paragraph shorter than this describes nothing, in bytes.
const PARAGRAPH_BYTES_MIN: usize = 60;
/// Most fields of the head that become attributes.
const FIELDS_MAX: usize = 32;

/// Head fields that say how to show the page rather than what it says.
const PRESENTATION: &[&str] = &[
    "viewport",
    "robots",
    "theme-color",
    "format-detection",
    "referrer",
    "color-scheme",
    "googlebot",
    "msapplication",
    "apple-",
    "google-",
    "csrf",
    "twitter:",
    "og:",
    "fb:",
    "progid",
    "handheldfriendly",
    "mobileoptimized",
    "next-head",
    "title",
];

/// Summarizes a page.
pub(super) fn summarize<'a>(input: &Input<'a>) -> Draft<'a> {
    run(input, true)
}

/// Summarizes markup that is not HTML: its first title and its text.
pub(super) fn markup<'a>(input: &Input<'a>) -> Draft<'a> {
    run(input, false)
}

/// What has been seen of a page.
struct Page<'t> {
    html: bool,
    body: Body,
    title: Body,
    in_title: bool,
    /// What comes up to the end of the line is the title.
    in_title_line: bool,
    headings: Body,
    in_heading: bool,
    address: Body,
    in_address: bool,
    links: Links<'t>,
    fields: Vec<(String, String)>,
}

fn run<'a>(input: &Input<'a>, html: bool) -> Draft<'a> {
    let bytes = input.head(PAGE_BYTES_MAX);
    let text = decode(bytes, declared(bytes).as_deref());
    // A member of an archive has no place that others could be found from.
    let base = Url::parse(&input.object.url).ok().filter(|url| url.fragment().is_none());
    let links_max = if html { input.settings.references_max } else { 0 };
    let mut page = Page {
        html,
        body: Body::new(input.text_bytes_max()),
        title: Body::new(RUN_BYTES_MAX),
        in_title: false,
        in_title_line: false,
        headings: Body::new(HEADINGS_BYTES_MAX),
        in_heading: false,
        address: Body::new(RUN_BYTES_MAX),
        in_address: false,
        links: Links::new(base, links_max),
        fields: Vec::new(),
    };
    let mut in_time = true;
    for (number, token) in Tokens::new(&text, html).enumerate() {
        if number.is_multiple_of(POLL_TOKENS) && (input.cancelled)() {
            in_time = false;
            break;
        }
        if page.body.is_full() && page.links.is_full() {
            break;
        }
        page.token(token);
    }
    let mut draft = page.draft();
    if !in_time {
        draft.problem(ProblemKind::Time, "ran out of time on the page");
    }
    draft
}

impl<'t> Page<'t> {
    fn token(&mut self, token: Token<'t>) {
        match token {
            Token::Text(text) => self.text(&in_text(text)),
            Token::Verbatim(text) => self.text(text),
            Token::Start(element, attributes) => self.start(element, &attributes),
            Token::End(element) => self.end(element),
        }
    }

    fn end(&mut self, element: Element) {
        match element {
            Element::Title => self.in_title = false,
            Element::Heading => {
                if std::mem::take(&mut self.in_heading) {
                    self.headings.line();
                }
                self.line();
            }
            Element::Address => {
                self.in_address = false;
                self.line();
            }
            Element::Example => self.line(),
            Element::Block if self.html => self.line(),
            _ => {}
        }
    }

    fn start(&mut self, element: Element, attributes: &Attributes<'t>) {
        match element {
            Element::Title => self.in_title = self.title.as_str().is_empty(),
            Element::TitleLine => self.in_title_line = self.title.as_str().is_empty(),
            Element::Heading => {
                self.in_heading = true;
                self.line();
            }
            Element::Address => {
                self.in_address = true;
                self.line();
            }
            Element::Cell => self.body.space(),
            Element::Anchor => self.link(attributes.get("href")),
            Element::Frame | Element::InlineFrame => self.link(attributes.get("src")),
            Element::Image => {
                if let Some(alternative) = attributes.get("alt") {
                    self.body.space();
                    self.body.push_squeezed(&in_attribute(alternative));
                    self.body.space();
                }
            }
            Element::Base => {
                if let Some(base) = attributes.get("href") {
                    self.links.move_base(&in_attribute(base));
                }
            }
            Element::Meta => self.meta(attributes),
            Element::Block | Element::Example => self.line(),
            _ if !self.html => self.line(),
            _ => {}
        }
    }

    /// Starts a line in the text; elsewhere it parts words only.
    fn line(&mut self) {
        self.body.line();
        if self.in_title_line {
            self.title.space();
        }
        if self.in_heading {
            self.headings.space();
        }
        if self.in_address {
            self.address.space();
        }
    }

    fn text(&mut self, text: &str) {
        if self.in_title {
            self.title.push_squeezed(text);
            return;
        }
        let text = if self.in_title_line { self.title_line(text) } else { text };
        self.body.push_squeezed(text);
        if self.in_heading {
            self.headings.push_squeezed(text);
        }
        if self.in_address {
            self.address.push_squeezed(text);
        }
    }

    /// Takes what belongs to the line of a title; returns the rest, or all of it if there is no end to
    /// the line.
    fn title_line<'p>(&mut self, text: &'p str) -> &'p str {
        let text = if self.title.as_str().is_empty() { text.trim_start() } else { text };
        let (line, rest) = text.find('\n').map_or((text, ""), |at| text.split_at(at));
        self.title.push_squeezed(line);
        let is_endless = self.title.is_full();
        self.in_title_line = rest.is_empty() && !is_endless;
        if is_endless { text } else { rest }
    }

    fn link(&mut self, written: Option<&'t str>) {
        if let Some(written) = written {
            self.links.add(written);
        }
    }

    fn meta(&mut self, attributes: &Attributes<'_>) {
        let name = attributes.get("name").or_else(|| attributes.get("property"));
        let (Some(name), Some(content)) = (name, attributes.get("content")) else { return };
        let name = name.trim();
        if FIELDS_MAX <= self.fields.len() || 64 < name.len() || !is_attribute_name(name) {
            return;
        }
        let mut value = Body::new(RUN_BYTES_MAX);
        value.push_squeezed(&in_attribute(content));
        self.fields.push((name.to_owned(), value.finish()));
    }

    /// Returns what the first of these head fields says.
    fn field(&self, names: &[&str]) -> Option<&str> {
        names.iter().find_map(|name| {
            let field = self.fields.iter().find(|(it, _)| it.eq_ignore_ascii_case(name));
            field.map(|(_, value)| value.as_str()).filter(|value| !value.is_empty())
        })
    }

    fn draft<'a>(self) -> Draft<'a> {
        let mut draft = Draft::default();
        let first_heading = self.headings.as_str().lines().next().unwrap_or_default();
        let title = match self.title.as_str().trim() {
            "" => self.field(&["dc.title", "citation_title", "og:title"]).unwrap_or(first_heading),
            title => title,
        };
        draft.title = title.to_owned();
        let description = self.field(&["description", "dc.description", "og:description"]);
        draft.description = description.or_else(|| self.paragraph()).unwrap_or_default().to_owned();
        for names in ["author", "dc.creator", "citation_author", "dc.creator.personalname"] {
            let named = self.fields.iter().filter(|(it, _)| it.eq_ignore_ascii_case(names));
            draft.authors.extend(named.map(|(_, value)| value.clone()));
        }
        if draft.authors.is_empty() {
            draft.authors.push(self.address.as_str().replace('\n', " "));
        }
        draft.keywords = self.field(&["keywords", "dc.subject"]).unwrap_or_default().to_owned();
        draft.r#abstract =
            self.field(&["abstract", "dc.description.abstract"]).unwrap_or_default().to_owned();
        if self.html {
            draft.other("Headings", self.headings.as_str().trim());
        }
        for (name, value) in &self.fields {
            let lower = name.to_ascii_lowercase();
            let told = matches!(lower.as_str(), "description" | "author" | "keywords" | "abstract");
            if !told && !PRESENTATION.iter().any(|it| lower.starts_with(it)) && !is_ours(&lower) {
                draft.other(name, value.as_str());
            }
        }
        draft.references = self.links.finish();
        draft.body = Cow::Owned(self.body.finish());
        draft
    }

    /// Returns the first paragraph that says something and is not the title.
    fn paragraph(&self) -> Option<&str> {
        let mut lines = self.body.as_str().lines().take(100);
        lines.find(|line| PARAGRAPH_BYTES_MIN <= line.len() && is_telling(line))
    }
}

fn is_attribute_name(name: &str) -> bool {
    name.starts_with(|it: char| it.is_ascii_alphabetic())
        && name.bytes().all(|it| it.is_ascii_alphanumeric() || b"-._:".contains(&it))
}

/// Whether the name is one that other parts of Harvest give a meaning; a page must not set it.
fn is_ours(lower: &str) -> bool {
    lower.starts_with("gatherer-")
        || lower.starts_with("embed")
        || matches!(
            lower,
            "type"
                | "md5"
                | "url"
                | "file-size"
                | "update-time"
                | "time-to-live"
                | "refresh-rate"
                | "last-modification-time"
                | "generation-time"
                | "full-text"
                | "partial-text"
                | "url-references"
                | "nested-filename"
                | "related"
                | "origin-version"
                | "headings"
                | "confirmed"
                | "root-url"
        )
}

/// Returns the charset that the front of the page declares, in `<meta>` or in the XML declaration.
fn declared(bytes: &[u8]) -> Option<String> {
    let front = bytes.get(..bytes.len().min(DECLARATION_BYTES)).unwrap_or_default();
    let front = String::from_utf8_lossy(front).to_ascii_lowercase();
    let at = front.find("charset=").map(|at| at + 8).or_else(|| {
        let at = front.find("encoding=")? + 9;
        front.starts_with("<?xml").then_some(at)
    })?;
    let label = front.get(at..)?.trim_start_matches(['"', '\'', ' ']);
    let end = label.find(|it: char| !it.is_ascii_alphanumeric() && !"-_:.".contains(it));
    Some(label.get(..end.unwrap_or(label.len()))?.to_owned())
}

#[cfg(test)]
mod tests {
    use super::super::testing::render;
    use super::*;
    use crate::object::Object;
    use crate::summarize::{self, Settings};
    use crate::typing::Type;

    fn check(page: &str, expected: &str) {
        assert_eq!(render("p.html", Type::Html, page.as_bytes()), expected);
    }

    #[test]
    fn a_page() {
        check(
            "<!DOCTYPE html><html><head><title>About &amp; <!-- c --> more</title>\n\
             <meta name=Author content='Darren Hardy'><meta name=\"keywords\" content='a, b'>\
             <meta name=viewport content=x><meta name=DC.date content='1995'><meta name=MD5 content=0>\
             <style>p{}</style><script>var x = '<p>no';</script></head>\
             <body><h1>Big <i>head</i>ing</h1>text <a href='../x.html#a'>link</a>, \
             <a href=#here>here</a><a href=\"mailto:a@b\">m</a><a href=y.html?a=1&amp;b=2>y</a>\
             <a href='../x.html'>again</a><p>Par<b>t</b>s<p>two &#228;&nbsp;&eacute; &nosuch; &\
             <td>a<td>b<img src=x alt='A picture'></body>",
            "Title: About & <!-- c --> more\n\
             Author: Darren Hardy\n\
             Headings: Big heading\n\
             DC.date: 1995\n\
             URL-References: http://h.example/x.html | http://h.example/d/y.html?a=1&b=2\n\
             Partial-Text: Big heading | text link, heremyagain | Parts | \
             two ä é &nosuch; & a b A picture",
        );
    }

    #[test]
    fn what_the_head_does_not_say_the_body_may() {
        let line = "A paragraph that is long enough to describe the whole page to a reader.";
        check(
            &format!("<h2>First</h2><p>Short.<p>{line}<address>Ann<br>Somewhere</address>"),
            &format!(
                "Title: First\nAuthor: Ann Somewhere\nDescription: {line}\nHeadings: First\n\
                 Partial-Text: First | Short. | {line} | Ann | Somewhere"
            ),
        );
    }

    #[test]
    fn charsets_are_declared_in_the_page() {
        let page = b"<meta charset=\"koi8-r\"><title>\xf0\xd2\xc9\xd7\xc5\xd4</title>";
        assert_eq!(render("p.html", Type::Html, page), "Title: Привет");
        let xml = b"<?xml version='1.0' encoding='iso-8859-1'?><a><title>Gr\xfc\xdfe</title>x<b>y</b></a>";
        assert_eq!(render("p.xml", Type::Xml, xml), "Title: Grüße\nPartial-Text: x | y");
    }

    #[test]
    fn titles_in_other_markup_hold_elements() {
        let page =
            b"<book><title>Use of <command>ls</command> &amp; co</title><p>A<b>b</b></p></book>";
        assert_eq!(render("p.xml", Type::Xml, page), "Title: Use of ls & co\nPartial-Text: A | b");
    }

    #[test]
    fn a_title_without_an_end_is_a_line() {
        let page = b"<!doctype linuxdoc system>\n<article>\n<title>The <tt>ls</tt> HOWTO\n\
            <author>Ann\n<abstract>All of it.</abstract>\n<sect>First<p>Words &amp; more.\n\
            <sect>Second<p>Others.\n</article>";
        let expected = "Title: The ls HOWTO\nPartial-Text: Ann | All of it. | First | \
            Words & more. | Second | Others.";
        assert_eq!(render("p.sgml", Type::Sgml, page), expected);
        let page = b"<title>\n  On a line of its own\n<p>Words.";
        let expected = "Title: On a line of its own\nPartial-Text: Words.";
        assert_eq!(render("p.sgml", Type::Sgml, page), expected);
    }

    #[test]
    fn examples_are_shown_as_they_are_written() {
        check(
            "<p>One:<xmp><b>a&amp;b</b></xmp>two",
            "Title: p.html\nPartial-Text: One: | <b>a&amp;b</b> | two",
        );
    }

    #[test]
    fn references_in_links_are_replaced_before_anything_is_cut_off() {
        check(
            "<a href='a&#45;&#45;b.html#c'>x</a><a href='a--b.html'>y</a><a href=' ?q=&amp;lt;#'>z</a>",
            "Title: p.html\n\
             URL-References: http://h.example/d/a--b.html | http://h.example/d/p.html?q=&lt;\n\
             Partial-Text: xyz",
        );
    }

    #[test]
    fn base_moves_references() {
        check(
            "<base href='http://o.example/q/'><a href=r>x</a>",
            "Title: p.html\nURL-References: http://o.example/q/r\nPartial-Text: x",
        );
    }

    #[test]
    fn half_a_million_links_are_bounded() {
        let mut page = String::from("<title>t</title>");
        for number in 0..500_000 {
            page.push_str(&format!("<a href=p{number}.html>{number}</a> "));
        }
        let object = Object::whole("http://h.example/p.html", page);
        let record =
            summarize::summarize(&object, Type::Html, &Settings::default(), &|| false).record;
        let references = record.get("URL-References").unwrap();
        assert!(references.len() <= 64 * 1024);
        assert_eq!(references.split(|it| *it == b'\n').count(), 1000);
        assert!(record.get("Partial-Text").unwrap().len() <= 16 * 1024);
    }

    #[test]
    fn deep_pages_are_read_or_cut_but_never_crash() {
        for deep in ["<div>", "<b>", "<table><tr><td>", "<svg><g>", "<ul><li>"] {
            let page = format!("<title>t</title>words {}deep", deep.repeat(200_000));
            let object = Object::whole("http://h.example/p.html", page);
            let summary =
                summarize::summarize(&object, Type::Html, &Settings::default(), &|| false);
            assert_eq!(summary.record.text("Title").as_deref(), Some("t"));
            assert!(summary.record.text("Keywords").unwrap().contains("words"));
        }
    }

    #[test]
    fn unfinished_things_end() {
        let rest = "x ".repeat(500_000);
        let check = |r#type: Type, open: &str, expected: &str| {
            let page = format!("<p>words {open}{rest}");
            let object = Object::whole("http://h.example/p", page);
            let summary = summarize::summarize(&object, r#type, &Settings::default(), &|| false);
            let text = summary.record.text("Partial-Text").unwrap_or_default();
            let start: String = text.chars().take(12).collect();
            assert_eq!(start, expected, "{open}");
            assert!(summary.problems.is_empty(), "{open}");
        };
        for open in ["<!-- ", "<a href='", "<script>", "<title>", "<a b c d ", "<![CDATA[", "<!a[ "]
        {
            check(Type::Html, open, "words");
        }
        check(Type::Html, "&#", "words &#x x ");
        for open in ["<!-- ", "<a href='", "<script>", "<a b c d ", "<?x ", "<!a[ "] {
            check(Type::Xml, open, "words");
        }
        check(Type::Xml, "<![CDATA[", "words x x x ");
        check(Type::Xml, "<title>", "words x x x ");
        check(Type::Xml, &"<!a[>".repeat(200_000), "words x x x ");
    }

    #[test]
    fn time_is_up() {
        let object = Object::whole("http://h.example/p.html", "<p>x".repeat(1000));
        let summary = summarize::summarize(&object, Type::Html, &Settings::default(), &|| true);
        assert_eq!(summary.problems[0].kind, ProblemKind::Time);
    }
}
