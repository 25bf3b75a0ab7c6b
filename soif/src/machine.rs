//! The state machine under the reader: it finds the next event in a window of the stream.
//!
//! The machine owns no bytes. The window starts at `base` bytes into the stream. The window grows
//! only at its end, and loses only bytes before [`Machine::needed`]. Decisions depend on bytes
//! within a bounded distance, never on where the window ends. So any split of the stream gives the
//! same events.
//!
//! Source: TR §3; the original's parser, whose quirks [`Mode::Lenient`] accepts.
//!
//! Sans-I/O.

use std::borrow::Cow;
use std::ops::Range;

use memchr::{memchr, memchr2, memmem, memrchr};

use crate::error::{ErrorKind, ParseError};
use crate::record::{RecordRef, Span};
use crate::scan::{
    Scan, byte_count, closed_on_its_line, is_name, name_end, repaired, text, trim_end, trim_start,
};
use crate::stream::{Event, Limits, Mode, Section};
use crate::writer::{is_no_url_start, is_url_byte};

/// Maximum number of problems kept between two calls of `problems`; the rest is only counted.
const PROBLEMS_MAX: usize = 1024;
/// Maximum number of bytes of white space in a template header, beside its type and URL.
const HEADER_SPACE_BYTES_MAX: usize = 64;

/// Kind of the event that a step found. Its bytes are those from `Machine::start` to `Machine::at`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EventKind {
    Open(Section),
    Record,
    Close(Section),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ParserState {
    /// Between objects.
    Top,
    /// Inside an object, between attributes.
    Attributes,
    /// After damage, looking for the next object.
    Lost,
}

/// Result of looking at one part of the stream.
enum Step {
    Continue,
    /// More bytes are needed.
    Wait,
    Found(EventKind),
    Damage(ErrorKind),
}

#[derive(Debug)]
pub(crate) struct Machine {
    mode: Mode,
    limits: Limits,
    state: ParserState,
    section: Option<Section>,
    /// Damage was found since a section was closed, so the open section may have lost its brace.
    section_damaged: bool,
    /// Start of the object in the window; the bytes before it are no longer needed.
    start: usize,
    /// How far the window has been parsed.
    pub(crate) at: usize,
    /// The record at `start` has been handed out.
    emitted: bool,
    template: Range<usize>,
    url: Range<usize>,
    /// The URL when it differs from its bytes in the window.
    url_repaired: Option<String>,
    spans: Vec<Span>,
    failed: Option<ParseError>,
    /// The problems that were not taken yet (lenient), at most [`PROBLEMS_MAX`].
    pub(crate) problems: Vec<ParseError>,
    pub(crate) problems_total: u64,
}

impl Machine {
    pub(crate) fn new(mode: Mode, limits: Limits) -> Self {
        // So that sums of sizes cannot overflow.
        let bounded = |bytes: usize| bytes.min(usize::MAX / 8);
        Self {
            mode,
            limits: Limits {
                name_bytes_max: bounded(limits.name_bytes_max),
                url_bytes_max: bounded(limits.url_bytes_max),
                value_bytes_max: bounded(limits.value_bytes_max),
                attributes_max: limits.attributes_max,
                record_bytes_max: bounded(limits.record_bytes_max),
            },
            state: ParserState::Top,
            section: None,
            section_damaged: false,
            start: 0,
            at: 0,
            emitted: false,
            template: 0..0,
            url: 0..0,
            url_repaired: None,
            spans: Vec::new(),
            failed: None,
            problems: Vec::new(),
            problems_total: 0,
        }
    }

    /// Returns the offset in the window of the first byte that is still needed.
    pub(crate) fn needed(&mut self) -> usize {
        self.release();
        self.start
    }

    /// Adjusts to a window that lost its first `count` bytes, at most [`Machine::needed`].
    pub(crate) fn shift(&mut self, count: usize) {
        self.start -= count;
        self.at -= count;
    }

    /// Returns whether the stream may end here.
    pub(crate) fn is_between_objects(&self, window: &[u8]) -> bool {
        let rest = window.get(self.at..).unwrap_or_default();
        self.state == ParserState::Top && self.section.is_none() && rest.trim_ascii().is_empty()
    }

    /// Remembers the error that ends the stream.
    pub(crate) fn fail(&mut self, error: ParseError) -> ParseError {
        *self.failed.get_or_insert(error)
    }

    /// Returns the kind of the next event; `None` if it needs more bytes or the stream is over.
    /// `ended` says that the window reaches to the end of the stream.
    pub(crate) fn step(
        &mut self,
        window: &[u8],
        base: u64,
        ended: bool,
    ) -> Result<Option<EventKind>, ParseError> {
        if let Some(error) = self.failed {
            return Err(error);
        }
        self.release();
        loop {
            let step = match self.state {
                ParserState::Top => self.step_top(window, base),
                ParserState::Attributes => self.step_attribute(window, base),
                ParserState::Lost => self.step_lost(window, ended),
            };
            match step {
                Step::Continue => {}
                Step::Found(found) => return Ok(Some(found)),
                Step::Damage(kind) => self.damage(kind, base)?,
                Step::Wait if !ended => return Ok(None),
                Step::Wait => {
                    if !self.handle_end(window, base)? {
                        return Ok(self.close_section().map(EventKind::Close));
                    }
                }
            }
        }
    }

    /// Returns the event of the kind that a step found.
    pub(crate) fn event<'a>(&'a self, kind: EventKind, window: &'a [u8], base: u64) -> Event<'a> {
        match kind {
            EventKind::Open(section) => Event::Open(section),
            EventKind::Close(section) => Event::Close(section),
            EventKind::Record => {
                let source = window.get(self.start..self.at).unwrap_or_default();
                let url = match &self.url_repaired {
                    Some(url) => Cow::Borrowed(url.as_str()),
                    None => Cow::Borrowed(text(source, &self.url)),
                };
                let template = text(source, &self.template);
                let offset = base + self.start as u64;
                Event::Record(RecordRef { source, template, url, spans: &self.spans, offset })
            }
        }
    }

    /// Releases the record that was handed out.
    fn release(&mut self) {
        if self.emitted {
            self.emitted = false;
            self.start = self.at;
            self.spans.clear();
        }
    }

    /// Handles the end of the stream when the window holds no whole event. Returns whether to parse
    /// on: an incomplete object may contain the next ones.
    fn handle_end(&mut self, window: &[u8], base: u64) -> Result<bool, ParseError> {
        let whole = self.state == ParserState::Top
            && window.get(self.at..).unwrap_or_default().trim_ascii().is_empty();
        if whole || self.state == ParserState::Lost {
            self.at = window.len();
            if self.section.is_some() && !self.section_damaged {
                self.section_damaged = true;
                self.report(ErrorKind::Truncated, base + window.len() as u64)?;
            }
            return Ok(false);
        }
        self.report(ErrorKind::Truncated, base + self.start as u64)?;
        self.lose();
        Ok(true)
    }

    /// Reports damage at the current offset and chooses the next state.
    fn damage(&mut self, kind: ErrorKind, base: u64) -> Result<(), ParseError> {
        self.report(kind, base + self.at as u64)?;
        if kind == ErrorKind::Unclosed {
            self.spans.clear();
            self.state = ParserState::Top;
        } else if kind == ErrorKind::StrayBrace {
            self.at += 1;
        } else if kind != ErrorKind::NestedSection {
            self.lose();
        }
        Ok(())
    }

    fn lose(&mut self) {
        self.spans.clear();
        self.section_damaged = true;
        self.state = ParserState::Lost;
        self.start = self.at;
    }

    /// Ends the stream (strict) or puts the problem on the list (lenient).
    fn report(&mut self, kind: ErrorKind, offset: u64) -> Result<(), ParseError> {
        let error = ParseError { kind, offset };
        if self.mode == Mode::Strict {
            return Err(self.fail(error));
        }
        self.problems_total += 1;
        if self.problems.len() < PROBLEMS_MAX {
            self.problems.push(error);
        }
        Ok(())
    }

    fn close_section(&mut self) -> Option<Section> {
        self.section_damaged = false;
        self.section.take()
    }

    fn is_space(&self, byte: u8) -> bool {
        matches!(byte, b' ' | b'\t' | b'\n') || (byte == b'\r' && self.mode == Mode::Lenient)
    }

    /// Skips white space and returns the byte after it.
    fn skip_space(&mut self, window: &[u8]) -> Option<u8> {
        while let Some(&byte) = window.get(self.at) {
            if !self.is_space(byte) {
                return Some(byte);
            }
            self.at += 1;
        }
        None
    }

    fn step_top(&mut self, window: &[u8], base: u64) -> Step {
        let next = self.skip_space(window);
        self.start = self.at;
        match next {
            None => Step::Wait,
            Some(b'}') => {
                let Some(section) = self.close_section() else {
                    return Step::Damage(ErrorKind::StrayBrace);
                };
                self.at += 1;
                Step::Found(EventKind::Close(section))
            }
            Some(b'@') => match self.header(window, base) {
                Ok(Some(found)) => found,
                Ok(None) => Step::Wait,
                Err(kind) => Step::Damage(kind),
            },
            Some(_) => Step::Damage(ErrorKind::Junk),
        }
    }

    /// Reads `@TYPE {` and, for an object, its URL.
    fn header(&mut self, window: &[u8], base: u64) -> Scan<Step> {
        let rest = window.get(self.start..).unwrap_or_default();
        let head_max = 1 + self.limits.name_bytes_max + HEADER_SPACE_BYTES_MAX;
        let head = rest.get(..head_max).unwrap_or(rest);
        let brace = match memchr2(b'{', b'\n', head) {
            Some(at) if head.get(at) == Some(&b'{') => at,
            Some(_) => return Err(ErrorKind::TemplateHeader),
            None if head.len() == head_max => return Err(ErrorKind::TemplateHeader),
            None => return Ok(None),
        };
        let template = 1..1 + head.get(1..brace).unwrap_or_default().trim_ascii_end().len();
        let name = head.get(template.clone()).unwrap_or_default();
        if !is_name(name) || self.limits.name_bytes_max < name.len() {
            return Err(ErrorKind::TemplateHeader);
        }
        if let Some(section) = Section::by_name(name) {
            match self.section_start(rest, brace + 1)? {
                Some((length, true)) => return Ok(Some(self.open(section, length))),
                Some((_, false)) => {}
                None => return Ok(None),
            }
        }
        self.template = template;
        self.object_start(rest, brace + 1, base)
    }

    /// Returns the offset after `@UPDATE {` and white space, and whether the inside of a section
    /// starts there. Otherwise a URL starts there, and this is an object with that template type.
    fn section_start(&self, rest: &[u8], from: usize) -> Scan<(usize, bool)> {
        for at in from..from + HEADER_SPACE_BYTES_MAX {
            match rest.get(at) {
                None => return Ok(None),
                Some(b'\n' | b'}' | b'@') => return Ok(Some((at, true))),
                Some(&byte) if self.is_space(byte) => {}
                Some(_) => return Ok(Some((at, false))),
            }
        }
        Err(ErrorKind::TemplateHeader)
    }

    fn open(&mut self, section: Section, length: usize) -> Step {
        if self.section.is_some() {
            if !self.section_damaged {
                self.section_damaged = true;
                return Step::Damage(ErrorKind::NestedSection);
            }
            return match self.close_section() {
                Some(open) => Step::Found(EventKind::Close(open)),
                None => Step::Continue,
            };
        }
        self.section = Some(section);
        self.at += length;
        self.start = self.at;
        Step::Found(EventKind::Open(section))
    }

    /// Reads the URL up to the end of its line.
    fn object_start(&mut self, rest: &[u8], from: usize, base: u64) -> Scan<Step> {
        let tail = rest.get(from..).unwrap_or_default();
        let line_max = self.limits.url_bytes_max + HEADER_SPACE_BYTES_MAX;
        let line = tail.get(..=line_max).unwrap_or(tail);
        let Some(end) = memchr(b'\n', line) else {
            return if line.len() > line_max { Err(ErrorKind::UrlTooLong) } else { Ok(None) };
        };
        let line = line.get(..end).unwrap_or_default();
        let lead = line.len() - trim_start(line).len();
        let lenient = self.mode == Mode::Lenient;
        let mut url = trim_end(line.get(lead..).unwrap_or_default(), lenient);
        let mut next = from + end + 1;
        if lenient && let Some(empty) = closed_on_its_line(url) {
            url = empty;
            next = from + memrchr(b'}', line).unwrap_or(end);
        }
        if self.limits.url_bytes_max < url.len() {
            return Err(ErrorKind::UrlTooLong);
        }
        self.url = from + lead..from + lead + url.len();
        self.url_repaired = None;
        let good = url.first().is_some_and(|first| !is_no_url_start(*first))
            && url.iter().all(|byte| is_url_byte(*byte))
            && std::str::from_utf8(url).is_ok();
        if !good {
            if !lenient {
                return Err(ErrorKind::Url);
            }
            self.url_repaired = Some(repaired(url));
            // Lenient: the report cannot fail.
            let _ = self.report(ErrorKind::Url, base + self.start as u64);
        }
        self.at += next;
        self.state = ParserState::Attributes;
        Ok(Some(Step::Continue))
    }

    fn step_attribute(&mut self, window: &[u8], base: u64) -> Step {
        // The maximum length of a record bounds the search, wherever the window ends.
        let most = window.len().min(self.start.saturating_add(self.limits.record_bytes_max));
        let next = self.skip_space(window.get(..most).unwrap_or_default());
        match next {
            None if most < window.len() => Step::Damage(ErrorKind::RecordTooLong),
            None => Step::Wait,
            Some(b'}') => {
                self.at += 1;
                self.state = ParserState::Top;
                self.emitted = true;
                Step::Found(EventKind::Record)
            }
            Some(b'@') => Step::Damage(ErrorKind::Unclosed),
            Some(_) => match self.attribute(window, base) {
                Ok(Some(())) => Step::Continue,
                Ok(None) => Step::Wait,
                Err(kind) => Step::Damage(kind),
            },
        }
    }

    /// Reads `name{size}:<TAB>value<LF>` and keeps the spans of name and value.
    fn attribute(&mut self, window: &[u8], base: u64) -> Scan<()> {
        let rest = window.get(self.at..).unwrap_or_default();
        let Some(name_end) = name_end(rest, self.limits.name_bytes_max)? else { return Ok(None) };
        let Some((size, digits_end)) = byte_count(rest, name_end + 1)? else { return Ok(None) };
        if self.limits.value_bytes_max < size {
            return Err(ErrorKind::ValueTooLong);
        }
        let Some(colon) = rest.get(digits_end + 1) else { return Ok(None) };
        if *colon != b':' {
            return Err(ErrorKind::ByteCount);
        }
        let Some(separator) = rest.get(digits_end + 2) else { return Ok(None) };
        let lenient = self.mode == Mode::Lenient;
        if *separator != b'\t' && !(lenient && *separator == b' ') {
            return Err(ErrorKind::Separator);
        }
        let value = digits_end + 3;
        let end = value + size;
        let record_end = self.at - self.start + end;
        if self.limits.record_bytes_max < record_end {
            return Err(ErrorKind::RecordTooLong);
        }
        let after = match (rest.get(end), rest.get(end + 1)) {
            (None, _) => return Ok(None),
            (Some(b'\n'), _) => end + 1,
            (Some(b'\r'), Some(b'\n')) if lenient => end + 2,
            (Some(b'\r'), None) if lenient => return Ok(None),
            (Some(_), _) => return Err(ErrorKind::ValueEnd),
        };
        if self.limits.attributes_max <= self.spans.len() {
            return Err(ErrorKind::TooManyAttributes);
        }
        if *separator == b' ' {
            // Lenient: the report cannot fail.
            let _ = self.report(ErrorKind::Separator, base + self.at as u64);
        }
        let from = self.at - self.start;
        self.spans.push(Span { name: from..from + name_end, value: from + value..from + end });
        self.at += after;
        Ok(Some(()))
    }

    /// Looks for a line that starts an object or a section.
    fn step_lost(&mut self, window: &[u8], ended: bool) -> Step {
        let rest = window.get(self.at..).unwrap_or_default();
        let Some(line_end) = memmem::find(rest, b"\n@") else {
            let kept = usize::from(rest.last() == Some(&b'\n'));
            self.at = window.len() - kept;
            self.start = self.at;
            return Step::Wait;
        };
        self.at += line_end;
        self.start = self.at;
        let head_max = 2 + self.limits.name_bytes_max + HEADER_SPACE_BYTES_MAX;
        let rest = rest.get(line_end..).unwrap_or_default();
        let head = rest.get(..head_max).unwrap_or(rest);
        let header = match memchr2(b'{', b'\n', head.get(1..).unwrap_or_default()) {
            Some(end) if head.get(end + 1) == Some(&b'{') => {
                is_name(head.get(2..=end).unwrap_or_default().trim_ascii_end())
            }
            Some(_) => false,
            None if head.len() == head_max || ended => false,
            None => return Step::Wait,
        };
        self.at += 1;
        self.start = self.at;
        if header {
            self.state = ParserState::Top;
        }
        Step::Continue
    }
}
