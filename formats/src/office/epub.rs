//! The EPUB summarizer: metadata of the package document, the table of contents, and the chapters in order.
//!
//! Source: EPUB 3.3 (§4 Open Container Format, §5 package document, §7 navigation document), Open
//! Packaging Format 2.0.1 (§2.4.1, NCX); Dublin Core.
//!
//! Chapters are read as web pages.

use std::borrow::Cow;
use std::collections::{BTreeSet, HashMap, HashSet};

use crate::limit::Limit;
use crate::object::{Object, ProblemKind};
use crate::office::package::{Package, beside};
use crate::office::xml::Piece;
use crate::text::{Body, HEADINGS_BYTES_MAX};
use crate::{DateSource, Draft, Input, Type, html};

/// The contents of the package document.
#[derive(Default)]
struct Book {
    /// Its folder in the package.
    folder: String,
    /// Elements of Dublin Core: name, scheme or role or event, and value.
    fields: Vec<(String, String, String)>,
    /// Paths of the parts, by id.
    parts: HashMap<String, String>,
    contents: Option<String>,
    /// Ids of the chapters, in order.
    chapters: Vec<String>,
    /// Limits that it goes beyond.
    cuts: BTreeSet<Limit>,
}

pub(crate) fn summarize<'a>(input: &Input<'a>) -> Draft<'a> {
    let mut draft = Draft::default();
    let mut repaired = None;
    let mut package = match Package::open(input, &mut repaired) {
        Ok(package) => package,
        Err((kind, message)) => return Draft::with_problem(kind, message),
    };
    let mut path = String::new();
    package.walk("META-INF/container.xml", &mut |piece| {
        if let Piece::Start(it) = piece
            && it.name == "rootfile"
        {
            path = it.get("full-path").into_owned();
        }
        path.is_empty()
    });
    if path.is_empty() {
        path = package.in_folder("", ".opf").into_iter().next().unwrap_or_default();
    }
    if !package.has(&path) {
        draft.problem(ProblemKind::Broken, "has no package document");
    }
    let book = book(&mut package, &path);
    book.write_to(&mut draft);
    let headings = headings(&mut package, &book);
    draft.other("Headings", headings);
    text(input, &mut package, &book, &mut draft);
    draft.add_problems(package.problems());
    draft
}

fn book(package: &mut Package<'_>, path: &str) -> Book {
    let folder = path.rsplit_once('/').map_or("", |(folder, _)| folder).to_owned();
    let mut book = Book { folder, ..Book::default() };
    let mut in_metadata = false;
    let mut field: Option<(String, String, Body)> = None;
    let mut contents_name = String::new();
    package.walk(path, &mut |piece| {
        match piece {
            Piece::Start(it) => match it.name {
                "metadata" => in_metadata = true,
                "item" if book.parts.len() < Limit::BookParts.bound() => {
                    let target = beside(&book.folder, &percent_decoded(&it.get("href")));
                    if it.get("properties").split_whitespace().any(|it| it == "nav") {
                        book.contents = Some(target.clone());
                    }
                    book.parts.insert(it.get("id").into_owned(), target);
                }
                "spine" => contents_name = it.get("toc").into_owned(),
                "itemref" if book.chapters.len() < Limit::BookParts.bound() => {
                    book.chapters.push(it.get("idref").into_owned());
                }
                "item" | "itemref" => {
                    book.cuts.insert(Limit::BookParts);
                }
                "meta" if it.get("property") == "dcterms:modified" => {
                    let body = Body::new(Limit::Property.bound());
                    field = Some(("modified".to_owned(), String::new(), body));
                }
                name if in_metadata => {
                    let about = [it.get("scheme"), it.get("role"), it.get("event")].concat();
                    field = Some((name.to_owned(), about, Body::new(Limit::Property.bound())));
                }
                _ => {}
            },
            Piece::Text(text) => {
                if let Some((_, _, body)) = &mut field {
                    body.push(text);
                }
            }
            Piece::End("metadata") => in_metadata = false,
            Piece::End(_) => {
                // Some programs write `unknown` in place of an empty value.
                if let Some((name, about, body)) =
                    field.take().filter(|(_, _, it)| it.as_str() != "unknown")
                {
                    if body.is_cut() {
                        book.cuts.insert(Limit::Property);
                    }
                    if book.fields.len() < Limit::Properties.bound() {
                        book.fields.push((name, about, body.finish()));
                    } else {
                        book.cuts.insert(Limit::Properties);
                    }
                }
            }
        }
        true
    });
    if book.contents.is_none() {
        book.contents = book.parts.get(&contents_name).cloned();
    }
    book
}

impl Book {
    fn all(&self, name: &str) -> impl Iterator<Item = (&str, &str)> {
        let named = self.fields.iter().filter(move |(it, _, _)| it == name);
        named.map(|(_, about, value)| (about.as_str(), value.trim()))
    }

    fn first(&self, name: &str) -> &str {
        self.all(name).map(|(_, value)| value).find(|it| !it.is_empty()).unwrap_or_default()
    }

    fn joined(&self, name: &str) -> String {
        let values: Vec<&str> =
            self.all(name).map(|(_, it)| it).filter(|it| !it.is_empty()).collect();
        values.join("\n")
    }

    fn write_to(&self, draft: &mut Draft<'_>) {
        self.cuts.iter().for_each(|it| draft.cut(it.cut()));
        draft.title = self.first("title").to_owned();
        draft.authors = self.all("creator").map(|(_, it)| it.to_owned()).collect();
        // Publishers write it as escaped HTML.
        draft.description = without_tags(self.first("description"));
        let subjects = self.joined("subject");
        draft.keywords = subjects.replace('\n', ", ");
        // The date of publication, else the first date, else that of the last change.
        let published = self.all("date").find(|(event, _)| event.contains("publication"));
        let date = published.map_or_else(|| self.first("date"), |(_, it)| it);
        let date = if date.is_empty() { self.first("modified") } else { date };
        draft.date(date, DateSource::Properties);
        draft.other("Language", self.first("language"));
        draft.other("Publisher", self.first("publisher"));
        draft.other("Contributor", self.joined("contributor"));
        draft.other("Rights", self.first("rights"));
        draft.other("Subject", subjects);
        let identifiers: Vec<String> = self.all("identifier").filter_map(identifier).collect();
        draft.other("Identifier", identifiers.join("\n"));
    }
}

/// Returns an identifier that is valid elsewhere: `isbn:…`, `doi:…`, a URL.
fn identifier((scheme, value): (&str, &str)) -> Option<String> {
    let value = value.strip_prefix("urn:").unwrap_or(value);
    let (name, rest) = match value.split_once(':') {
        Some((name, rest)) => (name.to_ascii_lowercase(), rest),
        None => (scheme.to_ascii_lowercase(), value),
    };
    match name.as_str() {
        "isbn" | "issn" | "doi" => Some(format!("{name}:{}", rest.trim())),
        "http" | "https" => Some(value.to_owned()),
        // Made for this one file.
        _ => None,
    }
}

fn without_tags(text: &str) -> String {
    let mut plain = String::new();
    for (number, piece) in text.split('<').enumerate() {
        let is_tag = piece.starts_with(|it: char| it.is_ascii_alphabetic() || "/!?".contains(it));
        match piece.split_once('>') {
            Some((_, shown)) if 0 < number && is_tag => {
                plain.push(' ');
                plain.push_str(shown);
            }
            _ => {
                // A less-than sign.
                plain.push_str(if 0 < number { "<" } else { "" });
                plain.push_str(piece);
            }
        }
    }
    plain.trim().to_owned()
}

/// Returns the entries of the table of contents: a web page, or an NCX of EPUB 2.
fn headings(package: &mut Package<'_>, book: &Book) -> String {
    let mut headings = Body::new(HEADINGS_BYTES_MAX);
    let Some(path) = &book.contents else { return String::new() };
    let (mut in_label, mut in_contents, mut elsewhere) = (false, false, false);
    package.walk(path, &mut |piece| {
        match piece {
            Piece::Start(it) => match it.name {
                "navMap" => in_contents = true,
                // Lists of pages and landmarks are in the same file.
                "nav" => {
                    in_contents = it.get("type").split_whitespace().any(|it| it == "toc");
                }
                "a" | "span" | "navLabel" => in_label = in_contents,
                "script" | "style" => elsewhere = true,
                _ => {}
            },
            Piece::Text(text) if in_label && !elsewhere => headings.push_squeezed(text),
            Piece::Text(_) => {}
            Piece::End("a" | "span" | "navLabel") => {
                if in_label {
                    headings.line();
                }
                in_label = false;
            }
            Piece::End("nav" | "navMap") => in_contents = false,
            Piece::End("script" | "style") => elsewhere = false,
            Piece::End(_) => {}
        }
        !headings.is_full()
    });
    headings.finish().trim().to_owned()
}

/// Reads the chapters, each as a web page.
fn text(input: &Input<'_>, package: &mut Package<'_>, book: &Book, draft: &mut Draft<'_>) {
    let mut body = Body::new(input.text_bytes_max());
    let links_max = input.settings.references_max;
    let mut seen = HashSet::new();
    for (number, name) in book.chapters.iter().enumerate() {
        let Some(path) = book.parts.get(name) else { continue };
        if body.is_full() || package.is_over() {
            break;
        }
        let Some(bytes) = package.read(path) else { continue };
        // Under a URL with a fragment, relative links, which lead to other chapters, are left out.
        let object = Object::whole(format!("{}#{path}", input.object.url), bytes);
        let page = html::summarize(&Input { object: &object, r#type: Type::Html, ..*input });
        body.line();
        body.place(&format!("chapter {}", number + 1));
        body.push(&page.body);
        if draft.title.is_empty() {
            draft.title = page.title;
        }
        if draft.description.is_empty() {
            draft.description = page.description;
        }
        for link in page.references {
            // One more than are kept shows that there are more.
            if draft.references.len() <= links_max && seen.insert(link.clone()) {
                draft.references.push(link);
            }
        }
        draft.add_problems(page.problems);
    }
    draft.set_body(body);
}

fn percent_decoded(text: &str) -> Cow<'_, str> {
    percent_encoding::percent_decode_str(text).decode_utf8_lossy()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use crate::Type;
    use crate::testing::render;
    use crate::unnest::tests::zipped;

    const CONTAINER: (&str, &[u8]) = (
        "META-INF/container.xml",
        b"<container><rootfiles><rootfile full-path=\"OEBPS/b.opf\"/></rootfiles></container>",
    );

    #[track_caller]
    fn check(parts: &[(&str, &[u8])], expected: &str) {
        assert_eq!(render("n.epub", Type::Epub, &zipped(parts)), expected);
    }

    #[test]
    fn less_than_is_no_tag() {
        for (text, plain) in
            [("x < y, z<9 > 1", "x < y, z<9 > 1"), ("<p>a<br/>b</p>", "a b"), ("a <b", "a <b")]
        {
            assert_eq!(super::without_tags(text), plain, "{text}");
        }
    }

    #[test]
    fn a_book_of_today() {
        let package = b"<package><metadata>\
            <dc:title>The title</dc:title><dc:creator id=\"c\">Ann</dc:creator><dc:creator>Bob</dc:creator>\
            <dc:contributor>Cee</dc:contributor><dc:language>en</dc:language><dc:publisher>Press</dc:publisher>\
            <dc:identifier>urn:uuid:1-2</dc:identifier><dc:identifier>urn:isbn:9780000000002</dc:identifier>\
            <dc:subject>Things</dc:subject><dc:subject>Words</dc:subject><dc:date>2024-01-02</dc:date>\
            <dc:rights>Free</dc:rights><dc:description>&lt;p&gt;About &lt;b&gt;it&lt;/b&gt;.&lt;/p&gt;</dc:description>\
            <meta property=\"dcterms:modified\">2025-01-01T00:00:00Z</meta></metadata>\
            <manifest><item id=\"n\" href=\"nav.xhtml\" properties=\"nav\"/><item id=\"c2\" href=\"two.xhtml\"/>\
            <item id=\"c1\" href=\"../text/one%20x.xhtml\"/></manifest>\
            <spine><itemref idref=\"c1\"/><itemref idref=\"c2\"/><itemref idref=\"none\"/></spine></package>";
        let contents = b"<html><body><nav epub:type=\"toc\"><h1>Contents</h1><ol><li><a href=\"x\">One</a></li>\
            <li><a href=\"y\">T<i>w</i>o</a></li></ol></nav><nav epub:type=\"landmarks\"><a>no</a></nav></body></html>";
        check(
            &[
                CONTAINER,
                ("OEBPS/b.opf", package),
                ("OEBPS/nav.xhtml", contents),
                ("text/one x.xhtml", b"<html><body><h1>One</h1><p>First <a href=\"two.xhtml\">next</a>.</p></body></html>"),
                ("OEBPS/two.xhtml", b"<html><body><p>Second <a href=\"http://w.example/\">place</a>.</p></body></html>"),
            ],
            "Title: The title\n\
             Author: Ann | Bob\n\
             Description: About it .\n\
             Date: 2024-01-02\nDate-Source: document properties\n\
             Language: en\nLanguage-Source: declared\n\
             Publisher: Press\n\
             Contributor: Cee\n\
             Rights: Free\n\
             Subject: Things | Words\n\
             Identifier: isbn:9780000000002\n\
             Headings: One | Two\n\
             URL-References: http://w.example/\n\
             Partial-Text: One | First next. | Second place.",
        );
    }

    #[test]
    fn a_book_of_old() {
        let package = b"<package><metadata><dc:title>Old</dc:title><dc:creator opf:role=\"aut\">Ann</dc:creator>\
            <dc:identifier opf:scheme=\"ISBN\">0000000002</dc:identifier>\
            <dc:date opf:event=\"modification\">2010</dc:date><dc:date opf:event=\"publication\">1999</dc:date></metadata>\
            <manifest><item id=\"ncx\" href=\"toc.ncx\"/></manifest><spine toc=\"ncx\"/></package>";
        let contents = b"<ncx><docTitle><text>Old</text></docTitle><navMap><navPoint><navLabel><text>One</text></navLabel>\
            <content src=\"x\"/><navPoint><navLabel><text>Deeper</text></navLabel></navPoint></navPoint></navMap></ncx>";
        check(
            &[CONTAINER, ("OEBPS/b.opf", package), ("OEBPS/toc.ncx", contents)],
            "Title: Old\nAuthor: Ann\nDate: 1999\nDate-Source: document properties\nIdentifier: isbn:0000000002\nHeadings: One | Deeper",
        );
    }

    #[test]
    fn broken_books_are_reported() {
        check(&[("x", b"")], "Title: n.epub\n! broken: has no package document");
        let rendered = render("n.epub", Type::Epub, b"PK\x03\x04");
        assert!(
            rendered.starts_with("Title: n.epub\n! broken: zip directory cannot be read"),
            "{rendered}"
        );
    }

    #[test]
    fn a_repeated_chapter_ends() {
        let parts = format!(
            "<manifest><item id=\"a\" href=\"a\"/></manifest><spine>{}</spine>",
            "<itemref idref=\"a\"/>".repeat(50_000)
        );
        let bytes =
            zipped(&[CONTAINER, ("OEBPS/b.opf", parts.as_bytes()), ("OEBPS/a", b"<p>x</p>")]);
        assert!(render("n.epub", Type::Epub, &bytes).starts_with("Title: "));
    }

    proptest! {
        #[test]
        fn any_parts_give_a_record(
            package in "(<|</|/>|>|metadata|dc:title|item|id=\"a\"|href=\"a\"|spine|itemref|idref=\"a\"| |\\PC){0,60}",
            chapter in "(<|</|>|p|a href=|nav|\\PC){0,40}",
        ) {
            let parts = [CONTAINER, ("OEBPS/b.opf", package.as_bytes()), ("OEBPS/a", chapter.as_bytes())];
            prop_assert!(render("n.epub", Type::Epub, &zipped(&parts)).starts_with("Title: "));
        }
    }
}
