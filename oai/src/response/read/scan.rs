//! The scan of a response that is not XML: each item is located in the bytes and read alone.
//!
//! Source: ours, from errors that occur in real harvests. A parser that continues after an error
//! loses records silently, so the scan cuts the page into items first. Each is parsed as it is; if
//! that fails, it is mended and parsed; if that fails, it is left out and named. The text around
//! the items is mended and parsed as a response without items, which shows whether the page is
//! complete.

use std::ops::Range;

use memchr::memmem::{Finder, FinderRev, find};

use crate::request::Verb;
use crate::response::Quarantined;

use super::attribute::unescaped;
use super::mend::mend;
use super::notes::{NoteKind, Notes};
use super::page::{Items, Page, RECORD_BYTES_MAX, ResponseParts, item_name};
use super::walk::{Binding, Cause, Step, Stop, Walker, is_clean};
use super::{Reading, Unreadable, beginning, excerpt, finish, partial_reading};

/// Maximum length of a response without its items, in bytes.
pub const AROUND_BYTES_MAX: usize = 16 * 1024 * 1024;

/// Longest tag of an item, in bytes.
const TAG_BYTES_MAX: usize = 1_024;

/// Bytes at the beginning of an HTML page in which its title is looked for.
const TITLE_BYTES_MAX: usize = 65_536;

/// Longest identifier of an unreadable item, in bytes.
const IDENTIFIER_BYTES_MAX: usize = 1_024;

/// Reads a response that could not be parsed; it begins at byte `base` of the answer.
pub(super) fn scan(
    bytes: &[u8],
    base: usize,
    asked: Verb,
    mut notes: Notes,
) -> Result<Reading, Unreadable> {
    let Some(root) = root(bytes) else { return Err(not_a_response(bytes)) };
    let (before, page) = bytes.split_at(root);
    if let Some(at) = find(&before.to_ascii_uppercase(), b"<!DOCTYPE") {
        return Err(Unreadable::Doctype { offset: (base + at) as u64 });
    }
    let end = last_end_tag(page, b"OAI-PMH").map_or(page.len(), |it| it.1);
    let (page, behind) = page.split_at(end);
    if is_junk(before) || !behind.trim_ascii().is_empty() {
        notes.add(NoteKind::Junk, base as u64);
    }
    let base = base + root;
    let spans = item_name(asked).map_or_else(Vec::new, |name| cut(page, name, asked));
    let first = spans.first().map_or(page.len(), |it| it.start);
    let last = spans.last().map_or(page.len(), |it| it.end);
    let around_bytes = first + page.len() - last;
    let too_large = || Unreadable::Malformed {
        offset: base as u64,
        problem: format!("more than {AROUND_BYTES_MAX} bytes that belong to no record"),
        whole: None,
    };
    if AROUND_BYTES_MAX < around_bytes {
        return Err(too_large());
    }
    let around = [page.split_at(first).0, page.split_at(last).1].concat();
    let around = mend(&around, AROUND_BYTES_MAX, base as u64, &mut notes).ok_or_else(too_large)?;
    let mut found = ResponseParts::default();
    let mut walker = Walker::new(&around, &[], true);
    let outcome = Page::new(&mut walker, asked, bytes.len(), base).response(&mut found);
    if walker.has_forgiven {
        notes.add(NoteKind::Prefix, base as u64);
    }
    let is_cut = matches!(&outcome, Err(Stop { cause: Cause::End, .. }));
    for (nth, range) in spans.iter().enumerate() {
        let span = page.get(range.clone()).unwrap_or_default();
        let item = Span { bytes: span, offset: base + range.start, asked, page_bytes: bytes.len() };
        let is_last = nth + 1 == spans.len();
        item.read(&found.scope, is_last && is_cut, &mut found.items);
    }
    found.items.notes.append(notes);
    match outcome {
        Ok(()) => finish(found, asked),
        Err(Stop { cause: Cause::End, .. }) => {
            let offset = (base + page.len()) as u64;
            Err(Unreadable::Truncated { offset, whole: partial_reading(found, asked) })
        }
        Err(Stop { at, cause: Cause::Malformed(problem) }) => {
            let problem = format!("{problem}: {}", excerpt(around.as_bytes(), at));
            // After the items, add the bytes that were taken out.
            let offset = if at < first { base + at } else { base + at - first + last };
            Err(Unreadable::Malformed {
                offset: offset as u64,
                problem,
                whole: partial_reading(found, asked),
            })
        }
    }
}

/// A possible item: from its start tag to its end tag, or to the beginning of the next item.
#[derive(Debug)]
struct Span<'b> {
    bytes: &'b [u8],
    offset: usize,
    asked: Verb,
    page_bytes: usize,
}

impl Span<'_> {
    /// Reads the item as it is, or mended. An unreadable item is quarantined, unless the page is
    /// cut off there.
    fn read(&self, scope: &[Binding<'_>], is_cut: bool, items: &mut Items) {
        if RECORD_BYTES_MAX < self.bytes.len() {
            return self.quarantine("it is larger than 16 MiB".to_owned(), items);
        }
        if let Ok(text) = std::str::from_utf8(self.bytes)
            && is_clean(text)
            && self.parse(text, scope, false, items).is_ok()
        {
            return;
        }
        let mut notes = Notes::default();
        let mended = mend(self.bytes, RECORD_BYTES_MAX, self.offset as u64, &mut notes);
        let Some(mended) = mended else {
            return self.quarantine("it is larger than 16 MiB once mended".to_owned(), items);
        };
        match self.parse(&mended, scope, true, items) {
            Ok(()) => items.notes.append(notes),
            Err(_) if is_cut => {}
            Err(Stop { at, cause }) => {
                let problem = match cause {
                    Cause::End => "it has no end tag".to_owned(),
                    Cause::Malformed(problem) => problem,
                };
                let near = excerpt(mended.as_bytes(), at);
                self.quarantine(format!("{problem}: {near}"), items);
            }
        }
    }

    fn parse(
        &self,
        text: &str,
        scope: &[Binding<'_>],
        is_forgiving: bool,
        items: &mut Items,
    ) -> Result<(), Stop> {
        let mut walker = Walker::new(text, scope, is_forgiving);
        let name = item_name(self.asked);
        let tag = match walker.step()? {
            Step::Start(tag) if name == Some(tag.local()) => tag,
            _ => return Err(Stop::malformed(0, "it does not begin as it should")),
        };
        let mut found = items.fresh();
        Page::new(&mut walker, self.asked, self.page_bytes, self.offset).item(&tag, &mut found)?;
        if walker.has_forgiven {
            found.notes.add(NoteKind::Prefix, self.offset as u64);
        }
        items.append(found);
        let (_, rest) = text.split_at(walker.position().min(text.len()));
        if rest.trim_ascii().is_empty() {
            return Ok(());
        }
        let rest = rest.trim_ascii_start();
        let offset = (self.offset + text.len() - rest.len()) as u64;
        if is_item_like(rest.as_bytes(), self.asked) {
            let problem =
                format!("it does not begin as it should: {}", excerpt(rest.as_bytes(), 0));
            let identifier = identifier(rest.as_bytes(), self.asked);
            items.quarantine(Quarantined { identifier, offset, problem });
        } else {
            items.notes.add(NoteKind::Junk, offset);
        }
        Ok(())
    }

    fn quarantine(&self, problem: String, items: &mut Items) {
        let identifier = identifier(self.bytes, self.asked);
        items.quarantine(Quarantined { identifier, offset: self.offset as u64, problem });
    }
}

/// Returns the ranges of a page's items; each range reaches to the next item.
fn cut(page: &[u8], name: &str, asked: Verb) -> Vec<Range<usize>> {
    let is_record = name == "record";
    let starts = start_tags(page, name.as_bytes());
    // Records may contain records (MARC): the records of a response begin with a header.
    let starts = starts.filter(|at| !is_record || has_header(page.split_at(*at).1));
    let mut starts: Vec<usize> = starts.collect();
    let list = start_tags(page, asked.name().as_bytes()).next();
    let list = list.and_then(|at| Some(at + memchr::memchr(b'>', page.get(at..)?)? + 1));
    // The text before the first item may be an item without its start tag.
    if let Some(list) = list
        && let Some(before) = page.get(list..starts.first().copied().unwrap_or(page.len()))
        && is_item_like(before, asked)
        && start_tags(before, b"resumptionToken").next().is_none_or(|_| starts.is_empty())
    {
        starts.insert(0, list);
    }
    let Some(last) = starts.last().copied() else { return Vec::new() };
    let (_, rest) = page.split_at(last);
    let length = last_end_tag(rest, name.as_bytes()).map(|it| it.1).or_else(|| {
        let token = start_tags(rest, b"resumptionToken").next();
        token.or_else(|| last_end_tag(rest, asked.name().as_bytes()).map(|it| it.0))
    });
    let end = last + length.unwrap_or(rest.len());
    let ends = starts.iter().skip(1).copied().chain([end]);
    starts.iter().zip(ends).map(|(start, end)| *start..end).collect()
}

/// Returns whether the bytes have a part of an item, which must not be lost silently.
fn is_item_like(bytes: &[u8], asked: Verb) -> bool {
    let name = item_name(asked).unwrap_or_default().as_bytes();
    let key: &[u8] = if asked == Verb::ListSets { b"setSpec" } else { b"identifier" };
    let has =
        |name| start_tags(bytes, name).next().is_some() || last_end_tag(bytes, name).is_some();
    has(name) || has(key) || has(b"header")
}

/// Returns whether a header follows the start tag.
fn has_header(bytes: &[u8]) -> bool {
    let head = bytes.get(..TAG_BYTES_MAX).unwrap_or(bytes);
    let Some(end) = memchr::memchr(b'>', head) else { return false };
    let rest = head.split_at(end + 1).1.trim_ascii_start();
    let near = rest.get(..256).unwrap_or(rest);
    start_tags(near, b"header").next() == Some(0)
}

/// Returns the position of the root element.
pub(super) fn root(bytes: &[u8]) -> Option<usize> {
    start_tags(bytes, b"OAI-PMH").next()
}

/// Returns the positions of start tags with that name and any prefix.
fn start_tags<'b>(bytes: &'b [u8], name: &'b [u8]) -> impl Iterator<Item = usize> + 'b {
    let finder = Finder::new(name).into_owned();
    let mut from = 0;
    std::iter::from_fn(move || {
        loop {
            let at = from + finder.find(bytes.get(from..)?)?;
            from = at + name.len();
            let is_ended = bytes.get(from).is_some_and(|it| b" \t\r\n/>".contains(it));
            if let Some(start) = mark_before(bytes.split_at(at).0, b'<').filter(|_| is_ended) {
                return Some(start);
            }
        }
    })
}

/// Returns the beginning and the end of the last end tag with that name.
pub(super) fn last_end_tag(bytes: &[u8], name: &[u8]) -> Option<(usize, usize)> {
    let finder = FinderRev::new(name).into_owned();
    let mut until = bytes.len();
    loop {
        let at = finder.rfind(bytes.get(..until)?)?;
        until = at + name.len() - 1;
        let behind = bytes.split_at(at + name.len()).1;
        let white = behind.len() - behind.trim_ascii_start().len();
        let is_ended = behind.get(white) == Some(&b'>');
        let before = bytes.split_at(at).0;
        let start = mark_before(before, b'/').filter(|_| is_ended);
        if let Some(slash) = start
            && let Some(start) = slash.checked_sub(1)
            && bytes.get(start) == Some(&b'<')
        {
            return Some((start, at + name.len() + white + 1));
        }
    }
}

/// Returns the position of the `mark` before a name that follows these bytes, perhaps with a
/// prefix.
fn mark_before(before: &[u8], mark: u8) -> Option<usize> {
    let unprefixed = before.strip_suffix(b":").map_or(before, |it| {
        let is_name = |it: &u8| it.is_ascii_alphanumeric() || b"_-.".contains(it) || 0x80 <= *it;
        let length = it.iter().rev().take(64).take_while(|it| is_name(it)).count();
        it.split_at(it.len() - length).0
    });
    (unprefixed.last() == Some(&mark)).then(|| unprefixed.len() - 1)
}

/// Returns whether the bytes contain more than white space and an XML declaration.
fn is_junk(before: &[u8]) -> bool {
    let rest = before.trim_ascii();
    let rest = match (rest.starts_with(b"<?xml"), find(rest, b"?>")) {
        (true, Some(end)) => rest.split_at(end + 2).1,
        _ => rest,
    };
    !rest.trim_ascii().is_empty()
}

/// Returns the identifier of an item that cannot be parsed, as written.
fn identifier(bytes: &[u8], asked: Verb) -> Option<String> {
    let name: &[u8] = if asked == Verb::ListSets { b"setSpec" } else { b"identifier" };
    let at = start_tags(bytes, name).next()?;
    let rest = bytes.split_at(at).1;
    let rest = rest.split_at(memchr::memchr(b'>', rest)? + 1).1;
    let rest = rest.get(..IDENTIFIER_BYTES_MAX).unwrap_or(rest);
    let text = rest.split_at(memchr::memchr(b'<', rest).unwrap_or(rest.len())).0;
    let text = String::from_utf8_lossy(text.trim_ascii());
    let text: String = text.chars().filter(|it| !it.is_control()).collect();
    Some(text).filter(|it| !it.is_empty())
}

fn not_a_response(bytes: &[u8]) -> Unreadable {
    let head = bytes.get(..TITLE_BYTES_MAX).unwrap_or(bytes);
    let lower = head.to_ascii_lowercase();
    let (front, _) = lower.split_at(lower.len().min(4_096));
    if find(front, b"<html").is_none() && find(front, b"<!doctype html").is_none() {
        return Unreadable::NotOai { began: beginning(bytes) };
    }
    let title = start_tags(&lower, b"title").next().and_then(|at| {
        let from = at + memchr::memchr(b'>', lower.get(at..)?)? + 1;
        let length = find(lower.get(from..)?, b"</title")?;
        mend(head.get(from..from + length)?, TITLE_BYTES_MAX, 0, &mut Notes::default())
    });
    Unreadable::Html { title: beginning(unescaped(&title.unwrap_or_default()).as_bytes()) }
}
