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
//! The page is streamed through `lol_html`: nothing of it is kept but what the bounds allow.
//!
//! Sans-I/O.

use std::borrow::Cow;
use std::cell::RefCell;
use std::collections::HashSet;
use std::rc::Rc;

use lol_html::errors::RewritingError;
use lol_html::html_content::{Element, TextChunk, TextType};
use lol_html::{HtmlRewriter, MemorySettings, Settings, doc_text, element, end_tag};
use url::Url;

use super::{Draft, Input};
use crate::object::ProblemKind;
use crate::text::{Body, decode, is_telling};

/// How much of a page is looked at, in bytes.
const PAGE_BYTES_MAX: usize = 16 * 1024 * 1024;
/// Most memory that the parser may take, in bytes: for open elements and unfinished tags.
const PARSER_BYTES_MAX: usize = 16 * 1024 * 1024;
/// Elements between two looks at the clock.
const POLL_ELEMENTS: u32 = 256;
/// How far the charset's declaration may stand in the page, in bytes.
const DECLARATION_BYTES: usize = 1024;
/// Longest run of text for a title, a heading or an address, in bytes.
const RUN_BYTES_MAX: usize = 2 * 1024;
/// Longest sum of headings, in bytes.
const HEADINGS_BYTES_MAX: usize = 8 * 1024;
/// Longest link that is followed or named, in bytes.
const LINK_BYTES_MAX: usize = 2 * 1024;
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
struct Page<'c> {
    cancelled: &'c dyn Fn() -> bool,
    elements: u32,
    html: bool,
    body: Body,
    title: Body,
    in_title: bool,
    headings: Body,
    in_heading: bool,
    address: Body,
    in_address: bool,
    base: Option<Url>,
    links: Vec<String>,
    links_max: usize,
    seen: HashSet<String>,
    fields: Vec<(String, String)>,
    stopped: Option<Stop>,
}

/// Why a page was not read to its end.
#[derive(Clone, Copy)]
enum Stop {
    Time,
    /// There is enough of everything.
    Enough,
}

fn run<'a>(input: &Input<'a>, html: bool) -> Draft<'a> {
    let bytes = input.head(PAGE_BYTES_MAX);
    let text = decode(bytes, declared(bytes).as_deref());
    // A member of an archive has no place that others could be found from.
    let base = Url::parse(&input.object.url).ok().filter(|url| url.fragment().is_none());
    let page = Rc::new(RefCell::new(Page {
        cancelled: input.cancelled,
        elements: 0,
        html,
        body: Body::new(input.text_bytes_max()),
        title: Body::new(RUN_BYTES_MAX),
        in_title: false,
        headings: Body::new(HEADINGS_BYTES_MAX),
        in_heading: false,
        address: Body::new(RUN_BYTES_MAX),
        in_address: false,
        base,
        links: Vec::new(),
        links_max: if html { input.settings.references_max } else { 0 },
        seen: HashSet::new(),
        fields: Vec::new(),
        stopped: None,
    }));
    let outcome = parse(&page, &text);
    let mut page = page.borrow_mut();
    let mut draft = page.draft();
    match (outcome, page.stopped) {
        (_, Some(Stop::Time)) => draft.problem(ProblemKind::Time, "ran out of time on the page"),
        (_, Some(Stop::Enough)) | (Ok(()), None) => {}
        (Err(error), None) => {
            draft.problem(ProblemKind::Limit, format!("the page was not read to its end: {error}"));
        }
    }
    draft
}

fn parse(page: &Rc<RefCell<Page<'_>>>, text: &str) -> Result<(), RewritingError> {
    let ends = End { flags: Rc::default() };
    let settings = Settings::new()
        .append_element_content_handler(element!("*", |element| {
            let mut page = page.borrow_mut();
            page.end(ends.take());
            page.start(element, &ends)
        }))
        .append_document_content_handler(doc_text!(|chunk| {
            let mut page = page.borrow_mut();
            page.end(ends.take());
            page.text(chunk);
            Ok(())
        }))
        .with_memory_settings(MemorySettings::new().with_max_allowed_memory_usage(PARSER_BYTES_MAX))
        .with_strict(false);
    let mut rewriter = HtmlRewriter::new(settings, |_: &[u8]| {});
    rewriter.write(text.as_bytes())?;
    rewriter.end()
}

/// What ended since the last event: handlers of end tags outlive the page and so cannot reach it.
#[derive(Clone)]
struct End {
    flags: Rc<std::cell::Cell<u8>>,
}

const BLOCK: u8 = 1;
const HEADING: u8 = 2;
const ADDRESS: u8 = 4;

impl End {
    fn take(&self) -> u8 {
        self.flags.take()
    }

    fn on(&self, element: &mut Element<'_, '_>, flag: u8) {
        if let Some(handlers) = element.end_tag_handlers() {
            let flags = Rc::clone(&self.flags);
            handlers.push(end_tag!(move |_| {
                flags.set(flags.get() | flag);
                Ok(())
            }));
        }
    }
}

/// How an element stands in its surroundings.
fn is_block(tag: &str) -> bool {
    matches!(
        tag,
        "p" | "div"
            | "br"
            | "li"
            | "tr"
            | "dt"
            | "dd"
            | "pre"
            | "ul"
            | "ol"
            | "dl"
            | "table"
            | "section"
            | "article"
            | "header"
            | "footer"
            | "nav"
            | "main"
            | "aside"
            | "blockquote"
            | "hr"
            | "form"
            | "figure"
            | "figcaption"
            | "center"
            | "caption"
            | "option"
            | "summary"
            | "details"
            | "fieldset"
            | "body"
    )
}

impl Page<'_> {
    fn end(&mut self, flags: u8) {
        if flags & HEADING != 0 {
            self.in_heading = false;
            self.headings.line();
        }
        if flags & ADDRESS != 0 {
            self.in_address = false;
        }
        if flags != 0 {
            self.line();
        }
    }

    fn start(&mut self, element: &mut Element<'_, '_>, ends: &End) -> lol_html::HandlerResult {
        self.elements = self.elements.wrapping_add(1);
        if self.elements.is_multiple_of(POLL_ELEMENTS) && (self.cancelled)() {
            self.stopped = Some(Stop::Time);
            return Err("time".into());
        }
        if self.body.is_full() && self.links_max <= self.links.len() {
            self.stopped = Some(Stop::Enough);
            return Err("enough".into());
        }
        let tag = element.tag_name();
        match tag.as_str() {
            "title" => self.in_title = self.title.as_str().is_empty(),
            "h1" | "h2" | "h3" | "h4" | "h5" | "h6" => {
                self.in_heading = true;
                self.line();
                ends.on(element, HEADING);
            }
            "address" => {
                self.in_address = true;
                self.line();
                ends.on(element, ADDRESS);
            }
            "td" | "th" => self.body.space(),
            "a" | "area" => self.link(element.get_attribute("href")),
            "frame" | "iframe" => self.link(element.get_attribute("src")),
            "img" => {
                if let Some(alternative) = element.get_attribute("alt") {
                    self.body.space();
                    self.body.push_squeezed(&entities(&alternative));
                    self.body.space();
                }
            }
            "base" => {
                let base = element.get_attribute("href");
                if let Some(base) = base.and_then(|href| self.resolve(&href)) {
                    self.base = Some(base);
                }
            }
            "meta" => self.meta(element),
            _ if !self.html => self.line(),
            tag if is_block(tag) => {
                self.line();
                ends.on(element, BLOCK);
            }
            _ => {}
        }
        Ok(())
    }

    /// Starts a line in the text; elsewhere it parts words only.
    fn line(&mut self) {
        self.body.line();
        if self.in_heading {
            self.headings.space();
        }
        if self.in_address {
            self.address.space();
        }
    }

    fn text(&mut self, chunk: &TextChunk<'_>) {
        let text = chunk.as_str();
        match chunk.text_type() {
            TextType::ScriptData | TextType::RawText => {}
            TextType::RCData if self.in_title => {
                self.title.push_squeezed(&entities(text));
                self.in_title = !chunk.last_in_text_node();
            }
            _ => {
                let text = entities(text);
                self.body.push_squeezed(&text);
                if self.in_heading {
                    self.headings.push_squeezed(&text);
                }
                if self.in_address {
                    self.address.push_squeezed(&text);
                }
            }
        }
    }

    fn link(&mut self, href: Option<String>) {
        let Some(href) = href else { return };
        let href = href.trim();
        let href = href.split('#').next().unwrap_or_default();
        if href.is_empty()
            || LINK_BYTES_MAX < href.len()
            || self.links_max <= self.links.len()
            || self.seen.contains(href)
        {
            return;
        }
        self.seen.insert(href.to_owned());
        if let Some(url) = self.resolve(href)
            && matches!(url.scheme(), "http" | "https" | "ftp" | "gopher" | "file" | "news")
        {
            self.links.push(url.into());
        }
    }

    fn resolve(&self, href: &str) -> Option<Url> {
        let href = entities(href);
        match &self.base {
            Some(base) => base.join(&href).ok(),
            None => Url::parse(&href).ok(),
        }
    }

    fn meta(&mut self, element: &Element<'_, '_>) {
        let name = element.get_attribute("name").or_else(|| element.get_attribute("property"));
        let (Some(name), Some(content)) = (name, element.get_attribute("content")) else { return };
        let name = name.trim();
        if FIELDS_MAX <= self.fields.len() || 64 < name.len() || !is_attribute_name(name) {
            return;
        }
        let mut value = Body::new(RUN_BYTES_MAX);
        value.push_squeezed(&entities(&content));
        self.fields.push((name.to_owned(), value.finish()));
    }

    /// Returns what the first of these head fields says.
    fn field(&self, names: &[&str]) -> Option<&str> {
        names.iter().find_map(|name| {
            let field = self.fields.iter().find(|(it, _)| it.eq_ignore_ascii_case(name));
            field.map(|(_, value)| value.as_str()).filter(|value| !value.is_empty())
        })
    }

    fn draft<'a>(&mut self) -> Draft<'a> {
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
        draft.references = std::mem::take(&mut self.links);
        draft.body = Cow::Owned(std::mem::replace(&mut self.body, Body::new(0)).finish());
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

/// Replaces character references; what is none stays as it is.
fn entities(text: &str) -> Cow<'_, str> {
    if !text.contains('&') {
        return Cow::Borrowed(text);
    }
    let mut plain = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('&') {
        let (before, from) = rest.split_at(at);
        plain.push_str(before);
        let is_part = |it: char| it.is_ascii_alphanumeric() || it == '#';
        let length = from.get(1..).and_then(|it| it.find(|it| !is_part(it))).map(|it| it + 1);
        match length {
            Some(end) if (3..32).contains(&end) && from.get(end..=end) == Some(";") => {
                let (reference, after) = from.split_at(end + 1);
                mail_parser::decoders::html::add_html_token(
                    &mut plain,
                    reference.as_bytes(),
                    false,
                );
                rest = after;
            }
            _ => {
                plain.push('&');
                rest = from.get(1..).unwrap_or_default();
            }
        }
    }
    plain.push_str(rest);
    Cow::Owned(plain)
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
        for open in ["<!-- ", "<a href='", "<script>", "<title>", "<a b c d ", "&#", "<![CDATA["] {
            let page = format!("<p>words {open}{}", "x ".repeat(500_000));
            let object = Object::whole("http://h.example/p.html", page);
            summarize::summarize(&object, Type::Html, &Settings::default(), &|| false);
        }
    }

    #[test]
    fn time_is_up() {
        let object = Object::whole("http://h.example/p.html", "<p>x".repeat(1000));
        let summary = summarize::summarize(&object, Type::Html, &Settings::default(), &|| true);
        assert_eq!(summary.problems[0].kind, ProblemKind::Time);
    }
}
