//! What HTML and other markup have in common: tables are followed element by element, and text goes
//! where it belongs.
//!
//! There is no tree. What an element holds ends at its end tag; elements of the same name inside it are
//! counted, but for HTML, where one that follows ends it.
//!
//! Sans-I/O.

use url::Url;

use super::super::markup::{Action, Attribute, Rule, Tables};
use super::super::{Draft, Input};
use super::characters::in_attribute;
use super::found::{Found, VALUE_BYTES_MAX, joined};
use super::links::Links;
use super::tokens::Attributes;
use crate::text::{Body, front};

/// Most elements whose text is gathered at one place of the document.
const CAPTURES_MAX: usize = 16;
/// Longest value of an attribute that is looked at, in bytes: references in it may be long.
pub(super) const WRITTEN_BYTES_MAX: usize = 64 * 1024;

/// What has been read of a document.
#[derive(Debug)]
pub(super) struct Sheet<'t, 'r> {
    html: bool,
    body: Body,
    /// What surrounds the document's own text.
    around: Body,
    /// The element whose text is not the document's own.
    astray: Option<Astray<'t>>,
    captures: Vec<Capture<'t, 'r>>,
    pub(super) found: Found,
    pub(super) links: Links<'t>,
    text_bytes_max: usize,
}

/// An element whose text is told last, or not at all.
#[derive(Debug)]
struct Astray<'t> {
    name: &'t str,
    is_told: bool,
    /// How many elements of its name are open in it.
    nested: u32,
}

/// An element whose text is gathered.
#[derive(Debug)]
struct Capture<'t, 'r> {
    name: &'t str,
    rules: Vec<&'r Rule>,
    text: Body,
    /// What the elements in it hold that make up its value.
    parts: Vec<Body>,
    /// Which of them is open.
    part: Option<usize>,
    /// How many elements of its name are open in it.
    nested: u32,
    /// Whether it is no part of the document's text.
    apart: bool,
    /// Whether it ends with the line.
    is_line: bool,
}

impl<'t, 'r> Sheet<'t, 'r> {
    /// Returns an empty sheet for the input's object, which is HTML or other markup.
    pub(super) fn new(input: &Input<'_>, html: bool) -> Self {
        // A member of an archive has no place that others could be found from.
        let base = Url::parse(&input.object.url).ok().filter(|url| url.fragment().is_none());
        let text_bytes_max = input.text_bytes_max();
        Self {
            html,
            body: Body::new(text_bytes_max),
            around: Body::new(text_bytes_max),
            astray: None,
            captures: Vec::new(),
            found: Found::default(),
            links: Links::new(base, input.settings.references_max),
            text_bytes_max,
        }
    }

    /// Whether nothing more is wanted.
    pub(super) fn is_full(&self) -> bool {
        self.body.is_full() && self.links.is_full()
    }

    /// Whether an element is open whose end matters.
    pub(super) fn is_inside(&self) -> bool {
        self.astray.is_some() || !self.captures.is_empty()
    }

    /// Starts an element with the rules that apply to it. `is_line` asks whether it lacks an end tag.
    pub(super) fn start(
        &mut self,
        name: &'t str,
        rules: impl Iterator<Item = &'r Rule>,
        attributes: &Attributes<'t>,
        is_line: impl FnOnce() -> bool,
    ) {
        let empty = !self.html && attributes.are_all();
        self.reopen(name, empty);
        let mut gathering = Vec::new();
        for rule in rules {
            match (rule.action, &rule.value_of) {
                (Action::Aside | Action::Ignore, _) if self.astray.is_none() && !empty => {
                    let is_told = rule.action == Action::Aside;
                    self.astray = Some(Astray { name, is_told, nested: 0 });
                }
                (Action::Aside | Action::Ignore, _) => {}
                (Action::Tell(attribute), Some(value_of)) => {
                    if let Some(value) = attributes.get(value_of) {
                        self.value(attribute, rule, value);
                    }
                }
                (Action::Tell(Attribute::Text), None) => {}
                (Action::Tell(_), None) if !empty => gathering.push(rule),
                (Action::Tell(_), None) => {}
            }
        }
        if !gathering.is_empty() {
            self.end_line();
            if self.captures.len() < CAPTURES_MAX {
                let is_line = gathering.iter().any(|it| it.line) || is_line();
                self.capture(name, gathering, is_line);
            }
        }
    }

    fn capture(&mut self, name: &'t str, rules: Vec<&'r Rule>, is_line: bool) {
        let is_title = |it: &&&Rule| it.action == Action::Tell(Attribute::Title);
        let apart = rules.iter().all(|it| is_title(&it) && !self.found.has(Attribute::Title, it));
        let parts = rules.first().map_or(0, |it| it.parts.len());
        let part = |_number| Body::new(VALUE_BYTES_MAX);
        self.captures.push(Capture {
            name,
            rules,
            text: Body::new(VALUE_BYTES_MAX),
            parts: (0..parts).map(part).collect(),
            part: None,
            nested: 0,
            apart,
            is_line,
        });
    }

    /// Goes into an element within those that are open.
    fn reopen(&mut self, name: &str, empty: bool) {
        if empty {
            return;
        }
        if let Some(astray) = self.astray.as_mut().filter(|it| it.name.eq_ignore_ascii_case(name)) {
            astray.nested += 1;
        }
        if self.html && self.captures.iter().any(|it| is_same(it.name, name)) {
            self.close(name);
            return;
        }
        for capture in &mut self.captures {
            if capture.name.eq_ignore_ascii_case(name) {
                capture.nested += 1;
            }
            let parts = capture.rules.first().map(|it| &it.parts);
            let mut parts = parts.into_iter().flatten();
            if let Some(part) = parts.position(|it| it.eq_ignore_ascii_case(name)) {
                capture.part = Some(part);
                capture.space();
            }
        }
    }

    /// Ends an element.
    pub(super) fn end(&mut self, name: &str) {
        if let Some(astray) = self.astray.as_mut().filter(|it| it.name.eq_ignore_ascii_case(name)) {
            match astray.nested.checked_sub(1) {
                Some(nested) => astray.nested = nested,
                None => {
                    self.line();
                    self.astray = None;
                }
            }
        }
        for capture in &mut self.captures {
            let part = capture.part.and_then(|at| capture.rules.first()?.parts.get(at));
            if part.is_some_and(|it| it.eq_ignore_ascii_case(name)) {
                capture.part = None;
            }
        }
        let mut ended = false;
        for capture in self.captures.iter_mut().filter(|it| is_same(it.name, name)) {
            match capture.nested.checked_sub(1) {
                Some(nested) => capture.nested = nested,
                None => ended = true,
            }
        }
        if ended {
            self.close(name);
        }
    }

    /// Ends the last element of this name that is open, and those in it.
    fn close(&mut self, name: &str) {
        let Some(at) = self.captures.iter().rposition(|it| is_same(it.name, name)) else { return };
        for capture in self.captures.split_off(at) {
            self.gathered(&capture);
        }
    }

    fn gathered(&mut self, capture: &Capture<'t, 'r>) {
        let parts = capture.parts.iter().map(|it| it.as_str().trim()).filter(|it| !it.is_empty());
        let join = capture.rules.first().map_or(" ", |it| &it.join);
        let composed = parts.collect::<Vec<_>>().join(join);
        let value = if composed.is_empty() { capture.text.as_str() } else { &composed };
        for rule in &capture.rules {
            match rule.action {
                Action::Tell(Attribute::References) => self.links.add_text(value.trim()),
                _ => self.found.add(rule, value),
            }
        }
    }

    /// Takes the value of an attribute, as written.
    pub(super) fn value(&mut self, attribute: Attribute, rule: &Rule, written: &'t str) {
        match attribute {
            Attribute::References => self.links.add(written),
            Attribute::Text => {
                let text = in_attribute(front(written, WRITTEN_BYTES_MAX));
                self.space();
                self.text(&text);
                self.space();
            }
            _ => self.found.add(rule, &in_attribute(front(written, WRITTEN_BYTES_MAX))),
        }
    }

    /// Returns where text goes that is shown.
    fn place(&mut self) -> Option<&mut Body> {
        match &self.astray {
            None => Some(&mut self.body),
            Some(astray) => astray.is_told.then_some(&mut self.around),
        }
    }

    /// Starts a line in the text; elsewhere it parts words only.
    pub(super) fn line(&mut self) {
        if let Some(place) = self.place() {
            place.line();
        }
        self.captures.iter_mut().for_each(Capture::space);
    }

    /// Parts words.
    pub(super) fn space(&mut self) {
        if let Some(place) = self.place() {
            place.space();
        }
        self.captures.iter_mut().for_each(Capture::space);
    }

    /// Adds text.
    pub(super) fn text(&mut self, text: &str) {
        let apart = self.captures.iter().any(|it| it.apart);
        let mut shown = if apart { "" } else { text };
        match self.captures.last_mut() {
            Some(capture) if capture.is_line => {
                if let Some(rest) = capture.line(text) {
                    shown = if apart { rest } else { text };
                    self.end_line();
                }
            }
            _ => self.captures.iter_mut().for_each(|it| it.gather(text)),
        }
        if let Some(place) = self.place() {
            place.push_squeezed(shown);
        }
    }

    /// Ends the element that lacks an end tag, if one is open.
    pub(super) fn end_line(&mut self) {
        if let Some(line) = self.captures.pop_if(|it| it.is_line) {
            self.gathered(&line);
        }
    }

    /// Returns the draft of what was read.
    pub(super) fn draft(mut self, tables: &Tables) -> Draft<'static> {
        for capture in std::mem::take(&mut self.captures) {
            self.gathered(&capture);
        }
        let mut draft = Draft::default();
        self.found.tell(tables, &mut draft);
        draft.references = self.links.finish();
        draft.body = joined(self.body.finish(), self.around.as_str(), self.text_bytes_max);
        draft
    }
}

impl Capture<'_, '_> {
    fn gather(&mut self, text: &str) {
        match self.part.and_then(|at| self.parts.get_mut(at)) {
            Some(part) => part.push_squeezed(text),
            None => self.text.push_squeezed(text),
        }
    }

    /// Parts words.
    fn space(&mut self) {
        self.part.and_then(|at| self.parts.get_mut(at)).unwrap_or(&mut self.text).space();
    }

    /// Takes what belongs to the line; returns the rest if the line is over, all of it if it is too long
    /// for one.
    fn line<'p>(&mut self, text: &'p str) -> Option<&'p str> {
        let text = if self.text.as_str().is_empty() { text.trim_start() } else { text };
        let (line, rest) = text.find('\n').map_or((text, ""), |at| text.split_at(at));
        self.text.push_squeezed(line);
        if self.text.is_full() {
            return Some(text);
        }
        (!rest.is_empty()).then_some(rest)
    }
}

/// Whether the end of the one element is that of the other: a heading's ends any.
fn is_same(name: &str, other: &str) -> bool {
    let level = |it: &str| matches!(it.as_bytes(), [b'h' | b'H', b'1'..=b'6']);
    name.eq_ignore_ascii_case(other) || level(name) && level(other)
}
