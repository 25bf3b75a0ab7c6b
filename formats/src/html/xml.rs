//! XML and SGML: documents of the vocabularies in the tables, and of others by common elements.
//!
//! Source: XML 1.0 (fifth edition), Namespaces in XML 1.0. The tables give elements their meaning; see
//! `markup`.
//!
//! # Differences from the specification
//!
//! * Entities that a document type declares are not replaced, so they cannot grow. Character references
//!   are replaced.
//! * Prefixes are not resolved: elements with the root's prefix are known by their bare names, others by
//!   their usual prefix.
//! * Reading goes on after ill-formed markup. In SGML an element may lack its end tag; then its line is
//!   its value.

use super::super::markup::{Root, Tables, Vocabulary, applying};
use super::super::{Draft, Input};
use super::builder::DraftBuilder;
use super::characters::in_text;
use super::elements::Element;
use super::tokens::{Attributes, MarkupToken, Tokenizer};
use crate::cancellable::TimeLimit;

/// The document type must lie in this many bytes at the front of the document.
const PROLOG_BYTES_MAX: usize = 4 * 1024;
/// Deepest level at which the elements around an element are known.
const DEPTH_MAX: usize = 128;

/// Returns the vocabulary of a document, and the root's prefix with its colon.
pub(super) fn vocabulary<'t, 'r>(text: &'t str, tables: &'r Tables) -> (&'r Vocabulary, &'t str) {
    let mut tokens = Tokenizer::new(text, false);
    let first = tokens.find_map(|token| match token {
        MarkupToken::Start(_, name, attributes) => Some((name, attributes)),
        _ => None,
    });
    let doctype = doctype(text);
    let Some((name, attributes)) = first else {
        return (tables.vocabulary(&Root { doctype, ..Root::default() }, |_name| false), "");
    };
    let prefix = name.find(':').and_then(|at| name.get(..=at)).unwrap_or_default();
    let namespace = match prefix.strip_suffix(':') {
        Some(prefix) => attributes.get(&format!("xmlns:{prefix}")),
        None => attributes.get("xmlns"),
    };
    let root = Root { name: bare(name, prefix), namespace, doctype };
    (tables.vocabulary(&root, |name| attributes.get(name).is_some()), prefix)
}

/// Returns the document type: the text between `<!` and `>` or `[`; "" if there is none.
fn doctype(text: &str) -> &str {
    let prolog = text.get(..text.floor_char_boundary(PROLOG_BYTES_MAX)).unwrap_or_default();
    let mut declarations = memchr::memmem::find_iter(prolog.as_bytes(), b"<!");
    let doctype = declarations.find_map(|at| {
        let from = prolog.get(at + 2..)?;
        let is_doctype = from.get(..7).is_some_and(|it| it.eq_ignore_ascii_case("doctype"));
        is_doctype.then(|| from.split(['>', '[']).next()).flatten()
    });
    doctype.unwrap_or_default()
}

/// Returns a name without the root's prefix.
fn bare<'t>(name: &'t str, prefix: &str) -> &'t str {
    name.strip_prefix(prefix).unwrap_or(name)
}

/// The state of reading one document.
struct XmlDocument<'t, 'r> {
    vocabulary: &'r Vocabulary,
    prefix: &'t str,
    builder: DraftBuilder<'t, 'r>,
    /// The open elements, outermost first, at most `DEPTH_MAX`.
    open: Vec<&'t str>,
    /// Number of elements that are open inside the last of `open`.
    deeper: usize,
}

/// Summarizes a document of this vocabulary; `prefix` is the root's, with its colon.
pub(super) fn read<'a>(
    input: &Input<'a>,
    text: &str,
    vocabulary: &Vocabulary,
    prefix: &str,
) -> Draft<'a> {
    let builder = DraftBuilder::new(input, false);
    let mut document = XmlDocument { vocabulary, prefix, builder, open: Vec::new(), deeper: 0 };
    let mut tokens = Tokenizer::new(text, false);
    let mut time = TimeLimit::new(input.cancelled);
    while let Some(token) = tokens.next()
        && time.goes_on()
        && !document.builder.is_full()
    {
        document.token(token, &tokens);
    }
    let mut draft = document.builder.draft(&input.settings.markup);
    time.report("the document", &mut draft);
    draft
}

impl<'t> XmlDocument<'t, '_> {
    fn token(&mut self, token: MarkupToken<'t>, rest: &Tokenizer<'t>) {
        match token {
            MarkupToken::Text(text) => self.text(&in_text(text)),
            MarkupToken::Verbatim(text) => self.text(text),
            MarkupToken::Data(_) => {}
            MarkupToken::Start(_, name, attributes) => {
                self.start(name, &attributes, rest);
            }
            MarkupToken::End(_, name) => self.end(bare(name, self.prefix)),
        }
    }

    fn start(&mut self, written: &'t str, attributes: &Attributes<'t>, rest: &Tokenizer<'t>) {
        let name = bare(written, self.prefix);
        self.builder.line();
        // A paragraph ends an element that has only its line.
        if name.eq_ignore_ascii_case("p") {
            self.builder.end_line();
        }
        let rules = self.vocabulary.rules(name);
        if !rules.is_empty() || self.builder.is_inside() {
            let around = |at: usize| {
                let at = self.open.len().checked_sub(at + 1).filter(|_| self.deeper == 0)?;
                self.open.get(at).copied()
            };
            let rules = applying(rules, around, |it| attributes.get(it));
            self.builder.start(name, rules, attributes, || !rest.has_end(written));
        }
        if attributes.are_all() {
            return;
        }
        if self.open.len() < DEPTH_MAX {
            self.open.push(name);
        } else {
            self.deeper += 1;
        }
    }

    fn end(&mut self, name: &'t str) {
        if self.builder.is_inside() {
            self.builder.end(name);
        }
        if let Some(deeper) = self.deeper.checked_sub(1) {
            self.deeper = deeper;
        } else if let Some(at) = self.open.iter().rposition(|it| it.eq_ignore_ascii_case(name)) {
            self.open.truncate(at);
        }
    }

    fn text(&mut self, text: &str) {
        if !(self.vocabulary.escaped && text.contains('<')) {
            self.builder.text(text);
            return;
        }
        for token in Tokenizer::new(text, true) {
            match token {
                MarkupToken::Text(text) => self.builder.text(&in_text(text)),
                MarkupToken::Verbatim(text) => self.builder.text(text),
                MarkupToken::Start(Element::Block | Element::Heading, ..) => self.builder.line(),
                MarkupToken::Start(..) | MarkupToken::End(..) | MarkupToken::Data(_) => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::testing::render;
    use crate::object::Object;
    use crate::{Settings, Type, testing};

    #[track_caller]
    fn check(text: &str, expected: &str) {
        assert_eq!(render("d.xml", Type::Xml, text.as_bytes()), expected);
    }

    #[test]
    fn docbook() {
        check(
            "<db:article xmlns:db='http://docbook.org/ns/docbook' xml:lang='de'><db:info>\
             <db:title>Das <db:emphasis>Buch</db:emphasis></db:title>\
             <db:author><db:personname><db:surname>Lee</db:surname><db:firstname>Ann</db:firstname>\
             </db:personname><db:affiliation>Uni</db:affiliation></db:author>\
             <db:pubdate>1999</db:pubdate><db:abstract><db:para>Kurz.</db:para></db:abstract>\
             </db:info><db:section><db:title>Eins</db:title><db:para>Text, \
             <db:link xlink:href='http://l.example/'>hier</db:link></db:para></db:section></db:article>",
            "Title: Das Buch\nAuthor: Ann Lee\nAbstract: Kurz.\nHeadings: Eins\nLanguage: de\nLanguage-Source: declared\n\
             Date: 1999\nDate-Source: markup\nURL-References: http://l.example/\n\
             Partial-Text: Eins | Text, | hier | Lee | Ann | Uni | 1999 | Kurz.",
        );
    }

    #[test]
    fn jats_and_tei() {
        check(
            "<article article-type='research-article' xml:lang='en'><front><journal-meta>\
             <journal-title-group><journal-title>J</journal-title></journal-title-group></journal-meta>\
             <article-meta><article-id pub-id-type='pmid'>7</article-id>\
             <article-id pub-id-type='doi'>10.1/x</article-id><title-group><article-title>T</article-title>\
             </title-group><contrib-group><contrib contrib-type='author'><name><surname>Lee</surname>\
             <given-names>Ann</given-names></name></contrib></contrib-group><pub-date><day>1</day>\
             <year>2009</year></pub-date></article-meta></front><body><sec><title>S</title><p>Text</p></sec>\
             </body></article>",
            "Title: T\nAuthor: Ann Lee\nHeadings: S\nIdentifier: doi:10.1/x | pmid:7\nLanguage: en\nLanguage-Source: declared\n\
             Date: 2009-01\nDate-Source: markup\nPublication: J\n\
             Partial-Text: S | Text | J | 7 | 10.1/x | Lee | Ann | 1 | 2009",
        );
        check(
            "<TEI xmlns='http://www.tei-c.org/ns/1.0'><teiHeader><fileDesc><titleStmt><title>T</title>\
             <author><surname>Lee</surname></author></titleStmt><publicationStmt><publisher>P</publisher>\
             <idno type='DOI'>10.1/x</idno></publicationStmt></fileDesc></teiHeader><text><body><div>\
             <head>H</head><p>Text <ref target='http://l.example/'>r</ref></p></div></body></text></TEI>",
            "Title: T\nAuthor: Lee\nHeadings: H\nIdentifier: doi:10.1/x\nPublisher: P\n\
             URL-References: http://l.example/\n\
             Partial-Text: H | Text | r | Lee | P | 10.1/x",
        );
    }

    #[test]
    fn feeds() {
        check(
            "<feed xmlns='http://www.w3.org/2005/Atom'><title>F</title><author><name>Ann</name>\
             <email>a@b</email></author><link href='http://l.example/'/><updated>2020</updated>\
             <entry><title>E</title><author><name>Bo</name></author>\
             <content type='html'>&lt;p&gt;One&lt;p&gt;two &amp;amp;</content></entry></feed>",
            "Title: F\nAuthor: Ann\nHeadings: E\nDate: 2020\nDate-Source: markup\nURL-References: http://l.example/\n\
             Partial-Text: Ann | a@b | 2020 | E | Bo | One | two &",
        );
        check(
            "<rss version='2.0'><channel><title>F</title><link>http://l.example/</link>\
             <description>About</description><item><title>I</title>\
             <description><![CDATA[<b>bold</b> text]]></description></item></channel></rss>",
            "Title: F\nDescription: About\nHeadings: I\nURL-References: http://l.example/\n\
             Partial-Text: http://l.example/ | About | I | bold text",
        );
    }

    #[test]
    fn an_element_ends_with_its_line_if_another_of_its_name_follows() {
        check(
            "<article xmlns='http://docbook.org/ns/docbook'><section><title>A<title>B</title>c</title>d\
             </section></article>",
            "Title: B\nHeadings: A\nPartial-Text: A | cd",
        );
    }

    #[test]
    fn a_vocabulary_is_known_by_namespace_then_document_type_then_root() {
        let title = |text: &str| {
            let seen = render("d.xml", Type::Xml, text.as_bytes());
            seen.lines().next().unwrap_or_default().to_owned()
        };
        let dita = "<topic id='a'><title>T</title></topic>";
        assert_eq!(title(dita), "Title: T");
        assert_eq!(title("<!DOCTYPE html><r><meta name='dc.title' content='T'/></r>"), "Title: T");
        let xhtml = "<x:html xmlns:x='http://www.w3.org/1999/xhtml'><title>T</title></x:html>";
        assert_eq!(title(xhtml), "Title: T");
        assert_eq!(title("<html><h1>T</h1></html>"), "Title: T");
        assert_eq!(
            title("<page xmlns='http://projectmallard.org/1.0/'><title>T</title></page>"),
            "Title: T"
        );
        assert_eq!(title("<unheard><of><title>T</title></of></unheard>"), "Title: T");
        assert_eq!(title(""), "Title: d.xml");
    }

    #[test]
    fn entities_do_not_grow() {
        let mut text = String::from("<?xml version='1.0'?><!DOCTYPE l [<!ENTITY l0 'lol'>");
        for number in 1..10 {
            let inner = format!("&l{};", number - 1).repeat(10);
            text.push_str(&format!("<!ENTITY l{number} '{inner}'>"));
        }
        text.push_str("]><l>words &l9; &#65;</l>");
        check(&text, "Title: d.xml\nPartial-Text: words &l9; A");
    }

    #[test]
    fn hostile_documents_end() {
        let check = |open: &str, rest: &str| {
            let object = Object::whole("http://h.example/d.xml", format!("<a>words {open}{rest}"));
            for r#type in [Type::Xml, Type::Sgml] {
                let summary = testing::summarize(&object, r#type, &Settings::default(), &|| false);
                assert!(summary.record.text("Keywords").unwrap().contains("words"), "{open}");
            }
        };
        check("", &"<b>".repeat(100_000));
        check("", &"</b>".repeat(100_000));
        check("<title>", &"<title>".repeat(50_000));
        check("", &"<title><author><summary>".repeat(20_000));
        check("", &"<a b='c' d>".repeat(30_000));
        check("<a ", &"b='c' ".repeat(100_000));
        check("", &format!("<title>{}", "<x>".repeat(100_000)));
    }
}
