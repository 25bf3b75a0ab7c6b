//! XML and SGML of any vocabulary that the tables have, and of others by what they have in common.
//!
//! Source: XML 1.0 (fifth edition), Namespaces in XML 1.0. The elements that mean something are those of
//! the tables; see `markup`.
//!
//! # Differences from the specification
//!
//! * Entities that a document type declares are not replaced: what they would grow to is no concern
//!   here. References to characters are.
//! * A prefix is not resolved: elements with the root's prefix are known by their bare names, others by
//!   the prefix that they usually have.
//! * What is not well-formed is read on; in SGML an element may lack its end tag, and its line is its
//!   value.
//!
//! Sans-I/O.

use super::super::markup::{Root, Tables, Vocabulary, applying};
use super::super::{Draft, Input};
use super::POLL_TOKENS;
use super::characters::in_text;
use super::elements::Element;
use super::sheet::Sheet;
use super::tokens::{Attributes, Token, Tokens};
use crate::object::ProblemKind;

/// How far the document type may stand in the document, in bytes.
const PROLOG_BYTES_MAX: usize = 4 * 1024;
/// How deep elements are told apart by what is around them.
const DEPTH_MAX: usize = 128;

/// Returns the vocabulary of a document, and the root's prefix with its colon.
pub(super) fn vocabulary<'t, 'r>(text: &'t str, tables: &'r Tables) -> (&'r Vocabulary, &'t str) {
    let mut tokens = Tokens::new(text, false);
    let first = tokens.find_map(|token| match token {
        Token::Start(_, name, attributes) => Some((name, attributes)),
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

/// Returns the document type, if there is one: what stands between `<!` and `>` or `[`.
fn doctype(text: &str) -> &str {
    let prolog = text.get(..text.floor_char_boundary(PROLOG_BYTES_MAX)).unwrap_or_default();
    let mut declarations = memchr::memmem::find_iter(prolog.as_bytes(), b"<!");
    let found = declarations.find_map(|at| {
        let from = prolog.get(at + 2..)?;
        let is_doctype = from.get(..7).is_some_and(|it| it.eq_ignore_ascii_case("doctype"));
        is_doctype.then(|| from.split(['>', '[']).next()).flatten()
    });
    found.unwrap_or_default()
}

/// Returns a name without the root's prefix.
fn bare<'t>(name: &'t str, prefix: &str) -> &'t str {
    name.strip_prefix(prefix).unwrap_or(name)
}

/// What has been seen of a document.
struct Reading<'t, 'r> {
    vocabulary: &'r Vocabulary,
    prefix: &'t str,
    sheet: Sheet<'t, 'r>,
    /// The elements that are open.
    open: Vec<&'t str>,
    /// How many are open within those.
    deeper: usize,
}

/// Summarizes a document of this vocabulary, whose root has this prefix.
pub(super) fn read<'a>(
    input: &Input<'a>,
    text: &str,
    vocabulary: &Vocabulary,
    prefix: &str,
) -> Draft<'a> {
    let sheet = Sheet::new(input, false);
    let mut reading = Reading { vocabulary, prefix, sheet, open: Vec::new(), deeper: 0 };
    let mut tokens = Tokens::new(text, false);
    let (mut number, mut in_time) = (0_usize, true);
    while let Some(token) = tokens.next() {
        if number.is_multiple_of(POLL_TOKENS) && (input.cancelled)() {
            in_time = false;
            break;
        }
        number += 1;
        if reading.sheet.is_full() {
            break;
        }
        reading.token(token, &tokens);
    }
    let mut draft = reading.sheet.draft(&input.settings.markup);
    if !in_time {
        draft.problem(ProblemKind::Time, "ran out of time on the document");
    }
    draft
}

impl<'t> Reading<'t, '_> {
    fn token(&mut self, token: Token<'t>, rest: &Tokens<'t>) {
        match token {
            Token::Text(text) => self.text(&in_text(text)),
            Token::Verbatim(text) => self.text(text),
            Token::Data(_) => {}
            Token::Start(_, name, attributes) => {
                self.start(name, &attributes, rest);
            }
            Token::End(_, name) => self.end(bare(name, self.prefix)),
        }
    }

    fn start(&mut self, written: &'t str, attributes: &Attributes<'t>, rest: &Tokens<'t>) {
        let name = bare(written, self.prefix);
        self.sheet.line();
        // A paragraph cannot be in a line.
        if name.eq_ignore_ascii_case("p") {
            self.sheet.end_line();
        }
        let rules = self.vocabulary.rules(name);
        if !rules.is_empty() || self.sheet.is_inside() {
            let around = |at: usize| {
                let at = self.open.len().checked_sub(at + 1).filter(|_| self.deeper == 0)?;
                self.open.get(at).copied()
            };
            let rules = applying(rules, around, |it| attributes.get(it));
            self.sheet.start(name, rules, attributes, || !rest.has_end(written));
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
        if self.sheet.is_inside() {
            self.sheet.end(name);
        }
        if let Some(deeper) = self.deeper.checked_sub(1) {
            self.deeper = deeper;
        } else if let Some(at) = self.open.iter().rposition(|it| it.eq_ignore_ascii_case(name)) {
            self.open.truncate(at);
        }
    }

    fn text(&mut self, text: &str) {
        if !(self.vocabulary.is_escaped() && text.contains('<')) {
            self.sheet.text(text);
            return;
        }
        for token in Tokens::new(text, true) {
            match token {
                Token::Text(text) => self.sheet.text(&in_text(text)),
                Token::Verbatim(text) => self.sheet.text(text),
                Token::Start(Element::Block | Element::Heading, ..) => self.sheet.line(),
                Token::Start(..) | Token::End(..) | Token::Data(_) => {}
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
            "Title: Das Buch\nAuthor: Ann Lee\nAbstract: Kurz.\nHeadings: Eins\nLanguage: de\n\
             Date: 1999\nURL-References: http://l.example/\n\
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
            "Title: T\nAuthor: Ann Lee\nHeadings: S\nIdentifier: doi:10.1/x | pmid:7\nLanguage: en\n\
             Date: 2009-1\nPublication: J\n\
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
            "Title: F\nAuthor: Ann\nHeadings: E\nDate: 2020\nURL-References: http://l.example/\n\
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
    fn an_element_that_one_of_its_name_follows_is_a_line() {
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
                let found = testing::summarize(&object, r#type, &Settings::default(), &|| false);
                assert!(found.record.text("Keywords").unwrap().contains("words"), "{open}");
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
