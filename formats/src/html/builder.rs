//! The draft builder of HTML and other markup: applies the tables' rules element by element, and collects
//! values, links and text.
//!
//! There is no tree. A captured element ends at its end tag, and in HTML also at the next start tag
//! of its name (any heading ends a heading). In other markup, inner elements of its name are
//! counted, and an element without an end tag ends with its line. So does one whose rule has
//! `line = true`. In asides and in the element with the main text, inner elements of their name are
//! always counted.

use super::super::markup::{Action, Attribute, Rule, Tables};
use super::super::{Draft, Input};
use super::characters::in_attribute;
use super::links::Links;
use super::main_text::MainText;
use super::tokens::Attributes;
use super::values::Values;
use crate::limit::Limit;
use crate::text::Body;

/// Maximum number of open elements whose text is captured.
const CAPTURES_MAX: usize = 16;

/// The draft of a document while it is read.
#[derive(Debug)]
pub(super) struct DraftBuilder<'t, 'r> {
    html: bool,
    pub(super) main_text: MainText<'t>,
    captures: Vec<Capture<'t, 'r>>,
    pub(super) values: Values,
    pub(super) links: Links<'t>,
    text_bytes_max: usize,
}

/// An open element whose text is captured.
#[derive(Debug)]
struct Capture<'t, 'r> {
    name: &'t str,
    rules: Vec<&'r Rule>,
    text: Body,
    /// The text of the inner elements that make up its value.
    parts: Vec<Body>,
    /// The index in `parts` of the part that is open.
    part: Option<usize>,
    /// Count of elements of the same name that are open in it.
    nested: u32,
    /// Whether its text is left out of the document's text.
    apart: bool,
    /// Whether it ends with its line.
    is_line: bool,
}

impl<'t, 'r> DraftBuilder<'t, 'r> {
    /// Returns an empty builder for the input's object, which is HTML or other markup.
    pub(super) fn new(input: &Input<'_>, html: bool) -> Self {
        let text_bytes_max = input.text_bytes_max();
        Self {
            html,
            main_text: MainText::new(text_bytes_max),
            captures: Vec::new(),
            values: Values::default(),
            links: Links::new(input.base(), input.settings),
            text_bytes_max,
        }
    }

    /// Returns whether text and links have reached their limits.
    pub(super) fn is_full(&self) -> bool {
        self.main_text.is_full() && self.links.is_full()
    }

    /// Returns whether an element is open whose end matters.
    pub(super) fn is_inside(&self) -> bool {
        self.main_text.is_inside() || !self.captures.is_empty()
    }

    /// Starts an element with the rules that apply to it. `is_line` returns whether it lacks an end tag.
    pub(super) fn start(
        &mut self,
        name: &'t str,
        rules: impl Iterator<Item = &'r Rule>,
        attributes: &Attributes<'t>,
        is_line: impl FnOnce() -> bool,
    ) {
        let empty = !self.html && attributes.are_all();
        self.enter(name, empty);
        let mut capturing = Vec::new();
        for rule in rules {
            match (rule.action, &rule.value_of) {
                (Action::Aside | Action::Ignore | Action::Main, _) if empty => {}
                (Action::Aside, _) => self.main_text.start_aside(name, true),
                (Action::Ignore, _) => self.main_text.start_aside(name, false),
                (Action::Main, _) => self.main_text.start_main(name),
                (Action::Attribute(attribute), Some(value_of)) => {
                    if let Some(value) = attributes.get(value_of) {
                        self.add_value(attribute, rule, value);
                    }
                }
                (Action::Attribute(Attribute::Text), None) => {}
                // Headings of menus are none of the page; their words are in its text.
                (Action::Attribute(Attribute::Headings | Attribute::Title), None)
                    if self.html && self.main_text.is_aside() => {}
                (Action::Attribute(_), None) if !empty => capturing.push(rule),
                (Action::Attribute(_), None) => {}
            }
        }
        if !capturing.is_empty() {
            self.end_line();
            if self.captures.len() < CAPTURES_MAX {
                let is_line = capturing.iter().any(|it| it.line) || is_line();
                self.capture(name, capturing, is_line);
            }
        }
    }

    fn capture(&mut self, name: &'t str, rules: Vec<&'r Rule>, is_line: bool) {
        let is_title = |it: &&&Rule| it.action == Action::Attribute(Attribute::Title);
        let apart = rules.iter().all(|it| is_title(&it) && !self.values.has(Attribute::Title, it));
        let parts = rules.first().map_or(0, |it| it.parts.len());
        // One byte more shows that there is more.
        let bytes_max = Limit::Value.bound() + 4;
        let part = |_number| Body::new(bytes_max);
        self.captures.push(Capture {
            name,
            rules,
            text: Body::new(bytes_max),
            parts: (0..parts).map(part).collect(),
            part: None,
            nested: 0,
            apart,
            is_line,
        });
    }

    /// Enters an element inside the open ones.
    fn enter(&mut self, name: &str, empty: bool) {
        if empty {
            return;
        }
        self.main_text.enter(name);
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

    pub(super) fn end(&mut self, name: &str) {
        self.main_text.end(name);
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

    /// Ends the innermost captured element that `name` can end ([`is_same`]), and those in it.
    fn close(&mut self, name: &str) {
        let Some(at) = self.captures.iter().rposition(|it| is_same(it.name, name)) else { return };
        for capture in self.captures.split_off(at) {
            self.finish(&capture);
        }
    }

    fn finish(&mut self, capture: &Capture<'t, 'r>) {
        let parts = capture.parts.iter().map(|it| it.as_str().trim()).filter(|it| !it.is_empty());
        let join = capture.rules.first().map_or(" ", |it| &it.join);
        let composed = parts.collect::<Vec<_>>().join(join);
        let value = if composed.is_empty() { capture.text.as_str() } else { &composed };
        for rule in &capture.rules {
            match rule.action {
                Action::Attribute(Attribute::References) => self.links.add_text(value.trim()),
                _ => self.values.add(rule, value),
            }
        }
    }

    /// Adds the markup attribute's value `written` as the record's `attribute`.
    pub(super) fn add_value(&mut self, attribute: Attribute, rule: &Rule, written: &'t str) {
        match attribute {
            Attribute::References => self.links.add(written),
            Attribute::Text => {
                let text = in_attribute(written);
                self.space();
                self.text(&text);
                self.space();
            }
            _ => self.values.add(rule, &in_attribute(written)),
        }
    }

    /// Starts a line in the text, and separates words in captures.
    pub(super) fn line(&mut self) {
        self.main_text.line();
        self.captures.iter_mut().for_each(Capture::space);
    }

    pub(super) fn space(&mut self) {
        self.main_text.space();
        self.captures.iter_mut().for_each(Capture::space);
    }

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
            _ => self.captures.iter_mut().for_each(|it| it.push(text)),
        }
        self.main_text.text(shown);
    }

    /// Ends the innermost captured element, if it ends with its line.
    pub(super) fn end_line(&mut self) {
        if let Some(line) = self.captures.pop_if(|it| it.is_line) {
            self.finish(&line);
        }
    }

    pub(super) fn draft(mut self, tables: &Tables) -> Draft<'static> {
        for capture in std::mem::take(&mut self.captures) {
            self.finish(&capture);
        }
        let mut draft = Draft::default();
        self.values.fill(tables, &mut draft);
        (draft.references, draft.leads) = self.links.finish();
        self.main_text.finish(self.text_bytes_max, &mut draft);
        draft
    }
}

impl Capture<'_, '_> {
    fn push(&mut self, text: &str) {
        match self.part.and_then(|at| self.parts.get_mut(at)) {
            Some(part) => part.push_squeezed(text),
            None => self.text.push_squeezed(text),
        }
    }

    fn space(&mut self) {
        self.part.and_then(|at| self.parts.get_mut(at)).unwrap_or(&mut self.text).space();
    }

    /// Adds the text up to the end of the line. Returns the rest if the line is over, or all text if the
    /// line is too long.
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

/// Returns whether an end tag of one name ends an element of the other: equal, or both headings.
fn is_same(name: &str, other: &str) -> bool {
    let level = |it: &str| matches!(it.as_bytes(), [b'h' | b'H', b'1'..=b'6']);
    name.eq_ignore_ascii_case(other) || level(name) && level(other)
}
