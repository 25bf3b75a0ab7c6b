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
                self.start(bare(name, self.prefix), &attributes, rest);
            }
            Token::End(_, name) => self.end(bare(name, self.prefix)),
        }
    }

    fn start(&mut self, name: &'t str, attributes: &Attributes<'t>, rest: &Tokens<'t>) {
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
            // As it is written, for there its end is looked for.
            self.sheet.start(name, rules, attributes, || !rest.has_end(name));
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
