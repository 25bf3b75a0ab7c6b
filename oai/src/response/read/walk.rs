//! The walker through the text of a response: starts, ends and text, each with its position.
//!
//! Source: XML 1.0 §2 (documents), §4.1 (references); Namespaces in XML 1.0. quick-xml provides
//! tokens and matches end tags. It leaves names, attributes, references and namespaces to its user;
//! they are checked here, because we serve accepted slices of the response again.
//!
//! Only text that a caller asks for is copied. No entity is ever declared, so the only references
//! are the five entities of XML, and characters by number.

use std::borrow::Cow;

use quick_xml::Error;
use quick_xml::errors::{IllFormedError, SyntaxError};
use quick_xml::escape::resolve_xml_entity;
use quick_xml::events::Event;
use quick_xml::reader::Reader;

use super::attribute::{Attributes, is_name};
use crate::response::is_char;

/// Deepest nesting of elements.
pub const DEPTH_MAX: usize = 256;

/// Maximum number of namespace declarations in force at one position.
pub const BINDINGS_MAX: usize = 256;

/// Longest name (URI) of a namespace, in bytes.
pub const NAMESPACE_BYTES_MAX: usize = 2 * 1024;

/// Longest text of an element outside metadata (an identifier, a token), in bytes.
pub const FIELD_BYTES_MAX: usize = 64 * 1024;

/// Prefixes that repositories forget to declare, with their usual namespaces.
const WELL_KNOWN: [(&str, &str); 6] = [
    ("xsi", "http://www.w3.org/2001/XMLSchema-instance"),
    ("xlink", "http://www.w3.org/1999/xlink"),
    ("dc", "http://purl.org/dc/elements/1.1/"),
    ("dcterms", "http://purl.org/dc/terms/"),
    ("oai_dc", "http://www.openarchives.org/OAI/2.0/oai_dc/"),
    ("mods", "http://www.loc.gov/mods/v3"),
];

/// The end of a walk that cannot continue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Stop {
    /// Position in the text, in bytes.
    pub(super) at: usize,
    pub(super) cause: Cause,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Cause {
    /// The text ends within an element.
    End,
    /// The text is not well-formed, or beyond a limit.
    Malformed(String),
}

impl Stop {
    pub(super) fn malformed(at: usize, problem: impl Into<String>) -> Self {
        Self { at, cause: Cause::Malformed(problem.into()) }
    }
}

/// A start tag.
#[derive(Clone, Copy, Debug)]
pub(super) struct Tag<'a> {
    /// The text between `<` and `>` or `/>`.
    raw: &'a str,
    name: &'a str,
    /// Position of its `<`.
    pub(super) start: usize,
}

impl<'a> Tag<'a> {
    /// Returns its name without the prefix.
    pub(super) fn local(&self) -> &'a str {
        split(self.name).1
    }

    /// Returns the value of the attribute with that local name and any prefix.
    pub(super) fn attribute(&self, local: &str) -> Option<&'a str> {
        let mut all = Attributes::new(self.raw, self.name.len()).flatten();
        all.find(|(name, _)| split(name).1 == local).map(|(_, value)| value)
    }
}

/// One step of the walk.
#[derive(Debug)]
pub(super) enum Step<'a> {
    Start(Tag<'a>),
    End,
    Text(Cow<'a, str>),
    /// A character by reference.
    Char(char),
    /// The end of the text, with no element open.
    Eof,
}

impl Step<'_> {
    /// Returns whether the step is text other than white space.
    pub(super) fn is_words(&self) -> bool {
        match self {
            Self::Text(text) => !text.trim_ascii().is_empty(),
            Self::Char(_) => true,
            Self::Start(_) | Self::End | Self::Eof => false,
        }
    }
}

/// A declared namespace.
#[derive(Clone, Copy, Debug)]
pub(super) struct Binding<'a> {
    prefix: &'a str,
    /// The raw name, in which references are not replaced.
    uri: &'a str,
    /// Depth of the declaring element; 0 if it is outside the text.
    depth: usize,
}

/// An element that is self-contained with the declarations after its name.
#[derive(Debug)]
pub(super) struct Element<'a> {
    head: &'a str,
    declarations: String,
    rest: &'a str,
}

impl Element<'_> {
    /// Returns its length in bytes.
    pub(super) fn len(&self) -> usize {
        self.head.len() + self.declarations.len() + self.rest.len()
    }

    /// Returns the bytes of the added declarations.
    pub(super) fn added(&self) -> usize {
        self.declarations.len()
    }

    pub(super) fn to_xml(&self) -> String {
        [self.head, &self.declarations, self.rest].concat()
    }
}

/// The outer declarations that the elements of a container use.
#[derive(Debug)]
struct Capture {
    /// Number of declarations before the container's content.
    outer: usize,
    depth: usize,
    used: Vec<usize>,
}

#[derive(Debug)]
pub(super) struct Walker<'a> {
    text: &'a str,
    reader: Reader<&'a [u8]>,
    /// The declarations in force.
    pub(super) bindings: Vec<Binding<'a>>,
    depth: usize,
    capture: Option<Capture>,
    /// Number of bindings from [`WELL_KNOWN`].
    forgiven: usize,
    /// Whether one of them has been used.
    pub(super) has_forgiven: bool,
}

impl<'a> Walker<'a> {
    /// Begins a walk through a text where `outer` is declared. If `is_forgiving`, well-known
    /// prefixes need no declaration.
    pub(super) fn new(text: &'a str, outer: &[Binding<'a>], is_forgiving: bool) -> Self {
        let mut reader = Reader::from_str(text);
        let config = reader.config_mut();
        config.expand_empty_elements = true;
        config.check_comments = true;
        let mut bindings = Vec::with_capacity(outer.len() + 8);
        if is_forgiving {
            let known = WELL_KNOWN.iter().map(|&(prefix, uri)| Binding { prefix, uri, depth: 0 });
            bindings.extend(known);
        }
        let forgiven = bindings.len();
        bindings.extend(outer.iter().map(|it| Binding { depth: 0, ..*it }));
        Self { text, reader, bindings, depth: 0, capture: None, forgiven, has_forgiven: false }
    }

    /// Returns the position after the last step.
    pub(super) fn position(&self) -> usize {
        usize::try_from(self.reader.buffer_position()).unwrap_or(usize::MAX)
    }

    /// Returns the namespace of an open tag.
    pub(super) fn namespace(&self, tag: &Tag<'a>) -> Option<&'a str> {
        let prefix = split(tag.name).0;
        let found = self.bindings.iter().rev().find(|it| it.prefix == prefix);
        found.map(|it| it.uri).filter(|it| !it.is_empty())
    }

    /// Makes one step. Comments and processing instructions are steps with empty text. Fails if the
    /// text ends within an element, or is not well-formed: the walk cannot continue.
    pub(super) fn step(&mut self) -> Result<Step<'a>, Stop> {
        let before = self.position();
        let event = self.reader.read_event().map_err(|error| self.stopped(before, &error))?;
        match event {
            Event::Start(_) | Event::Empty(_) => {
                let tag = self.tag(before);
                self.open(&tag)?;
                Ok(Step::Start(tag))
            }
            Event::End(_) => {
                self.depth = self.depth.saturating_sub(1);
                while self.bindings.last().is_some_and(|it| self.depth < it.depth) {
                    self.bindings.pop();
                }
                Ok(Step::End)
            }
            Event::Text(text) => {
                let text = text.into_inner();
                // Most text has no `>`.
                if memchr::memchr(b'>', text.as_bytes()).is_some() && text.contains("]]>") {
                    return Err(Stop::malformed(before, "]]> in text"));
                }
                Ok(Step::Text(text))
            }
            Event::CData(text) => Ok(Step::Text(text.into_inner())),
            Event::GeneralRef(reference) => match referred(&reference) {
                Some(char) => Ok(Step::Char(char)),
                None => {
                    let name: String = reference.chars().take(40).collect();
                    Err(Stop::malformed(before, format!("&{name}; is unknown")))
                }
            },
            Event::Decl(_) if 0 < before => {
                Err(Stop::malformed(before, "an XML declaration that is not at the beginning"))
            }
            Event::DocType(_) => Err(Stop::malformed(before, "a DOCTYPE")),
            Event::Decl(_) | Event::Comment(_) | Event::PI(_) => Ok(Step::Text(Cow::Borrowed(""))),
            Event::Eof if 0 < self.depth => Err(Stop { at: before, cause: Cause::End }),
            Event::Eof => Ok(Step::Eof),
        }
    }

    /// Goes to the next child of the element in which the walk is; returns `None` at its end.
    pub(super) fn child(&mut self) -> Result<Option<Tag<'a>>, Stop> {
        loop {
            match self.step()? {
                Step::Start(tag) => return Ok(Some(tag)),
                Step::End | Step::Eof => return Ok(None),
                Step::Text(_) | Step::Char(_) => {}
            }
        }
    }

    /// Goes to the end of the element whose start was the last step.
    pub(super) fn skip(&mut self) -> Result<(), Stop> {
        let depth = self.depth;
        while depth <= self.depth {
            self.step()?;
        }
        Ok(())
    }

    /// Returns the trimmed text of the element whose start was the last step, without that of its
    /// children.
    pub(super) fn field(&mut self) -> Result<String, Stop> {
        let depth = self.depth;
        let mut text = String::new();
        while depth <= self.depth {
            match self.step()? {
                Step::Text(more) if depth == self.depth => text.push_str(&more),
                Step::Char(char) if depth == self.depth => text.push(char),
                _ => {}
            }
            if FIELD_BYTES_MAX < text.len() {
                let problem = format!("a text longer than {FIELD_BYTES_MAX} bytes");
                return Err(Stop::malformed(self.position(), problem));
            }
        }
        let trimmed = text.trim();
        Ok(if trimmed.len() == text.len() { text } else { trimmed.to_owned() })
    }

    /// Returns the children of the element whose start was the last step.
    pub(super) fn container(&mut self) -> Result<Vec<Element<'a>>, Stop> {
        let depth = self.depth;
        let outer = self.bindings.len();
        self.capture = Some(Capture { outer, depth, used: Vec::new() });
        let mut found = Vec::new();
        let mut start = None;
        while depth <= self.depth {
            let was = self.depth;
            match self.step()? {
                Step::Start(tag) if was == depth => start = Some(tag),
                Step::End if self.depth == depth => {
                    found.extend(start.take().map(|tag| self.element(&tag)));
                }
                _ => {}
            }
        }
        self.capture = None;
        Ok(found)
    }

    /// Returns the element of the tag, which has just ended.
    fn element(&self, tag: &Tag<'a>) -> Element<'a> {
        let name_end = tag.start + 1 + tag.name.len();
        let mut declarations = String::new();
        for at in self.capture.iter().flat_map(|it| &it.used) {
            let Some(binding) = self.bindings.get(*at) else { continue };
            declarations.push_str(" xmlns");
            if !binding.prefix.is_empty() {
                declarations.push(':');
                declarations.push_str(binding.prefix);
            }
            declarations.push_str("=\"");
            declarations.push_str(&binding.uri.replace('"', "&quot;"));
            declarations.push('"');
        }
        let head = self.text.get(tag.start..name_end).unwrap_or_default();
        let rest = self.text.get(name_end..self.position()).unwrap_or_default();
        Element { head, declarations, rest }
    }

    /// Returns the tag at `before`, which has just been read.
    fn tag(&self, before: usize) -> Tag<'a> {
        let whole = self.text.get(before..self.position()).unwrap_or_default();
        let raw = whole.strip_prefix('<').unwrap_or(whole);
        let raw = raw.strip_suffix('>').unwrap_or(raw);
        let raw = raw.strip_suffix('/').unwrap_or(raw);
        let length = raw.bytes().position(|it| matches!(it, b' ' | b'\t' | b'\n' | b'\r'));
        let name = raw.get(..length.unwrap_or(raw.len())).unwrap_or_default();
        Tag { raw, name, start: before }
    }

    fn open(&mut self, tag: &Tag<'a>) -> Result<(), Stop> {
        self.depth += 1;
        if DEPTH_MAX < self.depth {
            let problem = format!("elements nest more than {DEPTH_MAX} deep");
            return Err(Stop::malformed(tag.start, problem));
        }
        if let Some(capture) = &mut self.capture
            && capture.depth + 1 == self.depth
        {
            capture.used.clear();
        }
        if !is_name(tag.name) {
            return Err(Stop::malformed(tag.start, "an element with an invalid name"));
        }
        if tag.name.len() < tag.raw.len() {
            self.declare(tag)?;
            for (name, value) in Attributes::new(tag.raw, tag.name.len()).flatten() {
                match split(name) {
                    ("xmlns", _) | ("", "xmlns") => continue,
                    ("" | "xml", _) => {}
                    (prefix, _) => self.resolve(prefix, tag)?,
                }
                // A value may have a prefix, such as that of xsi:type.
                if let Some((prefix, _)) = value.split_once(':') {
                    self.mark(prefix);
                }
            }
        }
        match split(tag.name).0 {
            "xml" => Ok(()),
            "" => {
                self.mark("");
                Ok(())
            }
            prefix => self.resolve(prefix, tag),
        }
    }

    /// Records the namespaces that a tag declares, and checks all its attributes.
    fn declare(&mut self, tag: &Tag<'a>) -> Result<(), Stop> {
        for attribute in Attributes::new(tag.raw, tag.name.len()) {
            let (name, uri) = attribute.map_err(|problem| Stop::malformed(tag.start, problem))?;
            let prefix = match split(name) {
                ("xmlns", prefix) => prefix,
                ("", "xmlns") => "",
                _ => continue,
            };
            if BINDINGS_MAX <= self.bindings.len() || NAMESPACE_BYTES_MAX < uri.len() {
                return Err(Stop::malformed(tag.start, "too many namespaces, or too long a one"));
            }
            self.bindings.push(Binding { prefix, uri, depth: self.depth });
        }
        Ok(())
    }

    fn resolve(&mut self, prefix: &str, tag: &Tag<'a>) -> Result<(), Stop> {
        if self.mark(prefix) {
            return Ok(());
        }
        let prefix: String = prefix.chars().take(40).collect();
        Err(Stop::malformed(tag.start, format!("the prefix {prefix:?} is not declared")))
    }

    /// Returns whether a prefix is declared, and records the use of a declaration outside the
    /// capture.
    fn mark(&mut self, prefix: &str) -> bool {
        let Some(at) = self.bindings.iter().rposition(|it| it.prefix == prefix) else {
            return false;
        };
        if let Some(capture) = &mut self.capture
            && at < capture.outer
            && !capture.used.contains(&at)
            && self.bindings.get(at).is_some_and(|it| !it.uri.is_empty())
        {
            capture.used.push(at);
        }
        self.has_forgiven |= at < self.forgiven;
        true
    }

    fn stopped(&self, before: usize, error: &Error) -> Stop {
        let cause = match error {
            Error::Syntax(SyntaxError::InvalidBangMarkup) => Cause::Malformed(error.to_string()),
            // All other syntax errors are markup that is not closed.
            Error::Syntax(_) => Cause::End,
            Error::IllFormed(IllFormedError::UnclosedReference)
                if self.text.len() <= self.position() =>
            {
                Cause::End
            }
            _ => Cause::Malformed(error.to_string().chars().take(200).collect()),
        };
        Stop { at: before, cause }
    }
}

/// Splits a name into its prefix, which may be empty, and its local name.
fn split(name: &str) -> (&str, &str) {
    let colon = name.bytes().position(|it| it == b':');
    colon.map_or(("", name), |at| {
        (name.get(..at).unwrap_or_default(), name.get(at + 1..).unwrap_or_default())
    })
}

/// Returns the character of a reference (without `&` and `;`), if XML allows it.
pub(super) fn referred(reference: &str) -> Option<char> {
    let Some(number) = reference.strip_prefix('#') else {
        return resolve_xml_entity(reference)?.chars().next();
    };
    let (digits, radix) = number.strip_prefix('x').map_or((number, 10), |hex| (hex, 16));
    let sound = digits.bytes().all(|it| it.is_ascii_hexdigit());
    let code = u32::from_str_radix(digits, radix).ok().filter(|_| sound)?;
    char::from_u32(code).filter(|it| is_char(*it))
}

/// Returns whether a text has only characters of XML 1.0.
pub(super) fn is_clean(text: &str) -> bool {
    let bytes = text.as_bytes();
    // There is no early end within a piece, so that the compiler vectorizes the loop.
    let is_low = |it: u8| it < 0x20 && !matches!(it, b'\t' | b'\n' | b'\r');
    let low = |piece: &[u8]| piece.iter().fold(false, |bad, it| bad | is_low(*it));
    if bytes.chunks(4_096).any(low) {
        return false;
    }
    !text.contains('\u{fffe}') && !text.contains('\u{ffff}')
}
