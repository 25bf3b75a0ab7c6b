//! HTML pages, and XML and SGML by the same means: attributes by the tables in `markup` (elements, fields
//! of the head, linked data), links, and text.
//!
//! Source: Essence's HTML and SGML summarizers (anchors, links, fields by a table tag → attribute);
//! TR Figure 3, where `Author` is the page's address and `URL-References` are its anchors. Fields of
//! the head: the HTML standard; DCMI, "Expressing Dublin Core metadata using HTML/XHTML meta and link
//! elements" (2008); Google Scholar's inclusion guidelines (`citation_*`); the Open Graph protocol.
//!
//! # Differences from the paper
//!
//! * References are resolved against the page's URL (or its `<base>`), each once.
//! * Several sources may give one attribute; `markup` says which of them wins. If none gives a
//!   `Description`, it is the first paragraph.
//! * A field of the head that no table names becomes an attribute of the same name.
//! * Text around the page's own text ([`main_text`]) is put after it: `Partial-Text` begins with the
//!   page's subject, and every word can still be found.

mod builder;
mod characters;
mod data;
mod elements;
mod links;
mod main_text;
mod tokens;
mod values;
mod xml;

use std::borrow::Cow;

use builder::DraftBuilder;
use characters::{in_attribute, in_text};
use elements::Element;
use tokens::{Attributes, MarkupToken, Tokenizer};

use super::markup::{Action, Tables, Vocabulary, applying, is_attribute_name, is_reserved};
use super::{Draft, Input};
use crate::cancellable::TimeLimit;
use crate::limit::Limit;
use crate::text::{decode, is_telling, squeezed};

/// The charset's declaration must lie in this many bytes at the front of the page.
const DECLARATION_BYTES: usize = 1024;
/// Longest name of a head field that becomes the name of an attribute, in bytes.
const FIELD_NAME_BYTES_MAX: usize = 64;
/// Shortest paragraph that can be the description, in bytes.
const PARAGRAPH_BYTES_MIN: usize = 60;
/// Maximum number of prefixes for Dublin Core that are taken from a page.
const PREFIXES_MAX: usize = 4;

pub(crate) fn summarize<'a>(input: &Input<'a>) -> Draft<'a> {
    let mut draft = page(input, &decoded(input.head(Limit::HtmlPage.bound()), true));
    input.report(Limit::HtmlPage, &mut draft);
    draft
}

/// Summarizes XML or SGML of any vocabulary.
pub(crate) fn markup<'a>(input: &Input<'a>) -> Draft<'a> {
    let text = decoded(input.head(Limit::HtmlPage.bound()), false);
    let (vocabulary, prefix) = xml::vocabulary(&text, &input.settings.markup);
    let mut draft = if vocabulary.is_html() {
        page(input, &text)
    } else {
        xml::read(input, &text, vocabulary, prefix)
    };
    input.report(Limit::HtmlPage, &mut draft);
    draft
}

/// The state of reading one page.
struct Page<'t, 'r> {
    tables: &'r Tables,
    vocabulary: &'r Vocabulary,
    builder: DraftBuilder<'t, 'r>,
    /// Fields of the head that no table names.
    fields: Vec<(String, String)>,
    /// Prefixes that the page declares for Dublin Core, with their dot.
    prefixes: Vec<String>,
    data: data::LinkedData,
}

fn page<'a>(input: &Input<'a>, text: &str) -> Draft<'a> {
    let tables = &input.settings.markup;
    let mut page = Page {
        tables,
        vocabulary: tables.html(),
        builder: DraftBuilder::new(input, true),
        fields: Vec::new(),
        prefixes: Vec::new(),
        data: data::LinkedData::default(),
    };
    let mut time = TimeLimit::new(input.cancelled);
    for token in Tokenizer::new(text, true).take_while(|_| time.goes_on()) {
        if page.builder.is_full() {
            break;
        }
        page.token(token);
    }
    let data = std::mem::take(&mut page.data);
    let mut draft = page.draft();
    data.report(&mut draft);
    time.report("the page", &mut draft);
    draft
}

impl<'t> Page<'t, '_> {
    fn token(&mut self, token: MarkupToken<'t>) {
        match token {
            MarkupToken::Text(text) => self.builder.text(&in_text(text)),
            MarkupToken::Verbatim(text) => self.builder.text(text),
            MarkupToken::Data(text) => self.data.read(text, self.tables, &mut self.builder),
            MarkupToken::Start(element, name, attributes) => self.start(element, name, &attributes),
            MarkupToken::End(element, name) => {
                if name.eq_ignore_ascii_case("a") {
                    self.builder.main_text.link(false);
                }
                if self.builder.is_inside() {
                    self.builder.end(name);
                }
                if matches!(element, Element::Heading | Element::Block | Element::Example) {
                    self.builder.line();
                }
            }
        }
    }

    fn start(&mut self, element: Element, name: &'t str, attributes: &Attributes<'t>) {
        match element {
            Element::Heading | Element::Block | Element::Example => self.builder.line(),
            Element::Cell => self.builder.space(),
            Element::Meta => self.meta(attributes),
            Element::Link => self.declare(attributes),
            Element::Base => {
                if let Some(base) = attributes.get("href") {
                    self.builder.links.move_base(&in_attribute(base));
                }
            }
            // The title of a picture is not the page's.
            Element::Other if name.eq_ignore_ascii_case("title") => return,
            Element::Other if name.eq_ignore_ascii_case("a") => {
                self.builder.main_text.link(attributes.get("href").is_some());
            }
            _ => {}
        }
        let rules = self.vocabulary.rules(name);
        if !rules.is_empty() || self.builder.is_inside() {
            let rules = applying(rules, |_around| None, |it| attributes.get(it));
            self.builder.links.is_apart = has_word(attributes.get("rel"), "nofollow");
            self.builder.start(name, rules, attributes, || false);
            self.builder.links.is_apart = false;
        }
    }

    /// Stores the page's own URL, or a prefix that the page declares for Dublin Core.
    fn declare(&mut self, attributes: &Attributes<'_>) {
        if let Some(href) = attributes.get("href")
            && has_word(attributes.get("rel"), "canonical")
        {
            self.builder.links.canonical(href);
        }
        let prefix = attributes.get("rel").and_then(|rel| rel.trim().split_at_checked(7));
        let prefix = prefix.filter(|(schema, _)| schema.eq_ignore_ascii_case("schema."));
        let Some((_, prefix)) = prefix.filter(|(_, it)| it.len() <= FIELD_NAME_BYTES_MAX) else {
            return;
        };
        let is_dublin_core = attributes.get("href").is_some_and(|it| it.contains("purl.org/dc/"));
        if is_dublin_core && self.prefixes.len() < PREFIXES_MAX {
            self.prefixes.push(format!("{prefix}."));
        }
    }

    fn meta(&mut self, attributes: &Attributes<'t>) {
        let Some(content) = attributes.get("content") else { return };
        let field = attributes.get("name").or_else(|| attributes.get("property"));
        let other = || attributes.get("itemprop").or_else(|| attributes.get("http-equiv"));
        let Some(name) = field.or_else(other).map(str::trim) else { return };
        self.builder.links.robots(name, content);
        let tables = self.tables;
        let dublin_core = || {
            let bare = |prefix: &String| {
                let (front, rest) = name.split_at_checked(prefix.len())?;
                front.eq_ignore_ascii_case(prefix).then_some(rest)
            };
            let bare = self.prefixes.iter().find_map(bare)?;
            tables.field(&format!("dc.{bare}")).or_else(|| tables.field(&format!("dcterms.{bare}")))
        };
        if let Some(rules) = tables.field(name).or_else(dublin_core) {
            for rule in applying(rules, |_around| None, |it| attributes.get(it)) {
                if let Action::Attribute(attribute) = rule.action {
                    self.builder.add_value(attribute, rule, content);
                }
            }
            return;
        }
        let is_wanted = field.is_some()
            && name.len() <= FIELD_NAME_BYTES_MAX
            && is_attribute_name(name)
            && !is_reserved(name)
            && !tables.is_silent(name);
        if is_wanted {
            self.fields.push((name.to_owned(), squeezed(&in_attribute(content))));
        }
    }

    fn draft<'a>(self) -> Draft<'a> {
        let mut draft = self.builder.draft(self.tables);
        if draft.description.is_empty() {
            draft.description = paragraph(&draft.body).unwrap_or_default().to_owned();
        }
        for (name, value) in self.fields {
            draft.other(&name, value);
        }
        draft
    }
}

/// Returns whether a list of words in an attribute has this word.
fn has_word(words: Option<&str>, word: &str) -> bool {
    words.is_some_and(|it| it.split_ascii_whitespace().any(|it| it.eq_ignore_ascii_case(word)))
}

/// Returns the first paragraph that is long enough and has real words.
fn paragraph(body: &str) -> Option<&str> {
    let mut lines = body.lines().take(100);
    lines.find(|line| PARAGRAPH_BYTES_MIN <= line.len() && is_telling(line))
}

/// Returns the text of a page or of other markup.
fn decoded(bytes: &[u8], html: bool) -> Cow<'_, str> {
    // UTF-16 without a byte order mark; XML 1.0, appendix F.
    let encoding = match bytes {
        [b'<', 0, second, 0, ..] if *second != 0 => encoding_rs::UTF_16LE,
        [0, b'<', 0, second, ..] if *second != 0 => encoding_rs::UTF_16BE,
        _ => {
            // UTF-8 is recognized by content; where it is declared wrongly, the charset is guessed.
            let declared = declared(bytes, html).filter(|it| !it.starts_with("utf"));
            return decode(bytes, declared.as_deref());
        }
    };
    encoding.decode_without_bom_handling(bytes).0
}

/// Returns the charset that the front of the page declares, in `<meta>` or in the XML declaration.
fn declared(bytes: &[u8], html: bool) -> Option<String> {
    let front = bytes.get(..bytes.len().min(DECLARATION_BYTES)).unwrap_or_default();
    let front = String::from_utf8_lossy(front).to_ascii_lowercase();
    let in_meta = || front.find("charset=").map(|at| at + 8);
    let in_xml =
        || front.starts_with("<?xml").then(|| front.find("encoding=")).flatten().map(|at| at + 9);
    let at = if html { in_meta().or_else(in_xml) } else { in_xml().or_else(in_meta) }?;
    let label = front.get(at..)?.trim_start_matches(['"', '\'', ' ']);
    let end = label.find(|it: char| !it.is_ascii_alphanumeric() && !"-_:.".contains(it));
    Some(label.get(..end.unwrap_or(label.len()))?.to_owned())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::testing::render;
    use crate::object::Object;
    use crate::object::ProblemKind;
    use crate::{Settings, Type, testing};

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
             Date: 1995\nDate-Source: markup\n\
             URL-References: http://h.example/x.html | http://h.example/d/y.html?a=1&b=2\n\
             Partial-Text: Big heading | text link, heremyagain | Parts | \
             two ä é &nosuch; & a b A picture",
        );
    }

    #[test]
    fn title_and_author_fall_back_to_the_body() {
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
        let expected = "Title: The ls HOWTO\nAuthor: Ann\nAbstract: All of it.\n\
            Headings: First | Second\nPartial-Text: Ann | All of it. | First | \
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
    fn a_crawl_is_told_where_the_page_leads_and_what_it_asks() {
        let page = "<base href='/b/'><link rel=canonical href='c?a=1&amp;b=2'>\
            <meta name=ROBOTS content='noindex'><meta name=googlebot content=none>\
            <a href=x>x</a><a rel='noopener NoFollow' href=y>y</a><a href=z#1>z</a><a href=z#2>z</a>";
        let object = Object::whole("http://h.example/p.html", page);
        let settings = Settings { leads_max: 3, references_max: 3, ..Settings::default() };
        let leads = |settings| testing::summarize(&object, Type::Html, settings, &|| false).leads;
        let found = leads(&settings).unwrap();
        let at = |name: &str| format!("http://h.example/b/{name}");
        assert_eq!(found.links, [at("c?a=1&b=2"), at("x"), at("z")]);
        assert_eq!(found.canonical, Some(at("c?a=1&b=2")));
        assert_eq!(found.robots, [("ROBOTS".to_owned(), "noindex".to_owned())]);
        assert_eq!(leads(&Settings::default()), None);
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
            testing::summarize(&object, Type::Html, &Settings::default(), &|| false).record;
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
            let summary = testing::summarize(&object, Type::Html, &Settings::default(), &|| false);
            assert_eq!(summary.record.text("Title").as_deref(), Some("t"));
            assert!(summary.record.text("Keywords").unwrap().contains("words"));
        }
    }

    #[test]
    fn unfinished_markup_ends() {
        let rest = "x ".repeat(500_000);
        let check = |r#type: Type, open: &str, expected: &str| {
            let page = format!("<p>words {open}{rest}");
            let object = Object::whole("http://h.example/p", page);
            let summary = testing::summarize(&object, r#type, &Settings::default(), &|| false);
            let text = summary.record.text("Partial-Text").unwrap_or_default();
            let start: String = text.chars().take(12).collect();
            assert_eq!(start, expected, "{open}");
            // The title of a page is no part of its text.
            assert!(summary.problems.is_empty() || open == "<title>", "{open}");
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
        check(Type::Xml, "<title>", "words\nx x x ");
        check(Type::Xml, &"<!a[>".repeat(200_000), "words x x x ");
    }

    #[test]
    fn citation_fields_count_before_all_others() {
        check(
            "<html lang=en_GB><head><title>A paper | The Journal</title>\
             <meta property=og:title content='A paper, shared'>\
             <meta name=DC.title content='A paper (DC)'><meta name=citation_title content='A paper'>\
             <meta name=author content=webmaster>\
             <meta name=citation_author content='Lee, Ann'><meta name=citation_author content='Wu, Bo'>\
             <meta name=citation_publication_date content=2009/11/15>\
             <meta name=citation_doi content=10.1000/182><meta name=citation_issn content=1234-5678>\
             <meta name=citation_pdf_url content=p.pdf><meta name=citation_volume content=7>\
             <meta name=citation_journal_title content='The Journal'>\
             <meta name=description content='What it says.'></head><body>Text",
            "Title: A paper\n\
             Author: Lee, Ann | Wu, Bo\n\
             Description: What it says.\n\
             Identifier: doi:10.1000/182 | issn:1234-5678\n\
             Language: en-GB\nLanguage-Source: declared\n\
             Date: 2009-11-15\nDate-Source: markup\n\
             Publication: The Journal\n\
             URL-References: http://h.example/d/p.pdf\n\
             Partial-Text: Text",
        );
    }

    #[test]
    fn a_page_may_declare_its_own_prefix_for_dublin_core() {
        check(
            "<link rel=schema.X href='http://purl.org/dc/elements/1.1/'>\
             <meta name=x.creator content=Ann><meta name=X.issued content=1999>\
             <meta name=DCTERMS.license content='CC BY'><meta name=DC.identifier content='https://doi.org/10.1/x'>",
            "Title: p.html\nAuthor: Ann\nIdentifier: doi:10.1/x\nDate: 1999\nDate-Source: markup\nLicense: CC BY",
        );
    }

    #[test]
    fn open_graph_counts_before_other_fields() {
        check(
            "<title>t</title><meta property=og:title content='Shared &amp; seen'>\
             <meta property=og:description content=d><meta property=og:image content=i.png>\
             <meta property=article:author content=Ann><meta name=author content=Bo>\
             <meta property=article:published_time content=2020-01-31><meta name=theme-color content=red>\
             <meta itemprop=ratingValue content=5><meta itemprop=keywords content='k l'>\
             <meta http-equiv=Content-Language content=de><meta name=Course content=101>",
            "Title: Shared & seen\nAuthor: Ann\nDescription: d\nLanguage: de\nLanguage-Source: declared\nDate: 2020-01-31\nDate-Source: markup\n\
             Course: 101",
        );
    }

    #[test]
    fn links_of_the_head() {
        check(
            "<link rel=stylesheet href=s.css><link rel='CANONICAL' href=/c><link rel=alternate href=f.xml>\
             <link rel='nofollow license' href='http://l.example/by'>",
            "Title: p.html\n\
             License: http://l.example/by\n\
             URL-References: http://h.example/c | http://h.example/d/f.xml | http://l.example/by",
        );
    }

    #[test]
    fn text_around_the_page_comes_last() {
        check(
            "<nav><ul><li>Home<nav>in</nav>x</ul></nav>\
             <div class=a role=navigation><div>Up</div>Next</div><p>The text.<footer>1995</footer>\
             <div>More.</div><template>none yet</template>",
            "Title: p.html\nPartial-Text: The text. | More. | Home | in | x | Up | Next | 1995 | none yet",
        );
        // An element without an end tag is still put last.
        check("<nav>Home<p>The text.", "Title: p.html\nPartial-Text: Home | The text.");
        check(
            "<nav><h3>Menu</h3></nav><h1>Chapter</h1><p>The text.",
            "Title: Chapter\nHeadings: Chapter\nPartial-Text: Chapter | The text. | Menu",
        );
    }

    #[test]
    fn wrong_charset_declarations_are_corrected() {
        let page = |charset: &str, text: &[u8]| {
            let front = format!("<meta charset={charset}><title>");
            render("p.html", Type::Html, &[front.as_bytes(), text, b"</title>"].concat())
        };
        // UTF-8 content is read as UTF-8, whatever the declaration says.
        for charset in ["iso-8859-1", "utf-16", "utf-7", "x-user-defined", "no-such", "\"\""] {
            assert_eq!(page(charset, "Grüße".as_bytes()), "Title: Grüße", "{charset}");
        }
        // For content that is declared as UTF-8 but is not, the charset is guessed.
        assert_eq!(page("utf-8", b"Gr\xfc\xdfe aus K\xf6ln"), "Title: Grüße aus Köln");
        // A UTF-16 declaration cannot be true when it can be read as ASCII; it is ignored.
        assert_eq!(page("utf-16le", b"Gr\xfc\xdfe aus K\xf6ln"), "Title: Grüße aus Köln");
        let wide = |text: &str| text.encode_utf16().collect::<Vec<u16>>();
        let text = "<title>Wörter</title><p>in zwei Bytes";
        let little: Vec<u8> = wide(text).iter().flat_map(|it| it.to_le_bytes()).collect();
        let big: Vec<u8> = wide(text).iter().flat_map(|it| it.to_be_bytes()).collect();
        for bytes in [little, big] {
            let seen = render("p.html", Type::Html, &bytes);
            assert_eq!(seen, "Title: Wörter\nPartial-Text: in zwei Bytes");
        }
        let xml = b"<?xml version='1.0' encoding='koi8-r'?><a c='charset=utf-8'><title>\xf0\xd2\xc9\xd7\xc5\xd4</title></a>";
        assert_eq!(render("p.xml", Type::Xml, xml), "Title: Привет");
        let seen = render("p.html", Type::Html, b"<title>a\0b</title>\xff\xfe\0<p>c");
        assert!(seen.starts_with("Title: a b"), "{seen}");
    }

    #[test]
    fn values_of_a_hundred_megabytes_are_cut() {
        let huge = "x".repeat(100 << 20);
        for open in [
            "<meta name=author content='",
            "<a href='",
            "<img alt='",
            "<p title='",
            "<h1>",
            "<title>",
        ] {
            let whole = Object::whole("http://h.example/p.html", format!("<p>words {open}{huge}"));
            // A whole object's checksum would take most of the time.
            let object = Object { truncated: true, ..whole };
            let summary = testing::summarize(&object, Type::Html, &Settings::default(), &|| false);
            assert!(summary.record.text("Keywords").unwrap().contains("words"), "{open}");
            let bytes: usize = summary.record.attributes().iter().map(|it| it.value.len()).sum();
            assert!(bytes < 64 * 1024, "{open}");
        }
    }

    #[test]
    fn many_fields_and_headings_are_bounded() {
        let mut page = String::new();
        for number in 0..100_000 {
            page.push_str(&format!("<meta name=x{number} content=v><meta name=citation_author content=a{number}><h2>h{number}"));
        }
        let object = Object::whole("http://h.example/p.html", page);
        let record =
            testing::summarize(&object, Type::Html, &Settings::default(), &|| false).record;
        assert!(record.text("Author").unwrap().lines().count() <= 1_000);
        assert!(record.text("Headings").unwrap().len() <= 16 * 1024);
        assert!(record.get("x62").is_some() && record.get("x64").is_none());
        assert_eq!(record.text("Truncated").unwrap().lines().count(), 4);
    }

    #[test]
    fn a_page_out_of_time_is_a_problem() {
        let object = Object::whole("http://h.example/p.html", "<p>x".repeat(1000));
        let summary = testing::summarize(&object, Type::Html, &Settings::default(), &|| true);
        assert_eq!(summary.problems[0].kind, ProblemKind::Time);
    }

    proptest! {
        #[test]
        fn any_bytes_give_a_record(
            bytes in proptest::collection::vec(any::<u8>(), 0..200),
            tags in "(<meta name=dc.title content=|<title>|</title>|<nav>|</nav>|<h1>|</h2>|<feed|<author>|<script type=application/ld\\+json>|\\{\"name\":|'|>| |x|&#|\n){0,40}",
        ) {
            let page = [tags.as_bytes(), &bytes].concat();
            for r#type in [Type::Html, Type::Xml, Type::Sgml] {
                prop_assert!(render("p", r#type, &page).starts_with("Title: "));
            }
        }
    }
}
