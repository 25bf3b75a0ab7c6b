//! Web archives: WARC, and ARC before it. Every page that was fetched with success is a member.
//!
//! Source: ISO 28500 (WARC 1.0 and 1.1): §4 (records), §6 (types); "Arc File Format" (M. Burner, B. Kahle,
//! 1996), version 1; RFC 9112 §7.1 for chunks of HTTP.
//!
//! # Differences from the specification
//!
//! * Members are the contents of `response` records with a status of success, without the head of HTTP,
//!   and of `resource` and `conversion` records. Requests, metadata, revisits and answers of name
//!   servers have no content of their own and are left out.
//! * Segmented records are members by the part that has the URL.

use jiff::Timestamp;
use memchr::memmem;

use super::budget::Fault;
use super::{Decoded, Walk};
use crate::Draft;
use crate::object::ProblemKind;
use crate::text::decode;

/// First bytes of every WARC record.
pub(super) const MARK: &[u8] = b"WARC/";
/// First bytes of an ARC file.
pub(super) const ARC_MARK: &[u8] = b"filedesc://";
/// Longest head of a record, in bytes.
const HEAD_BYTES_MAX: usize = 64 * 1024;
/// Records between two checks of the time limit.
const POLL_RECORDS: usize = 256;

/// The head of a record, of either format.
#[derive(Debug, Default)]
struct Record {
    kind: RecordKind,
    url: Vec<u8>,
    modified: Option<u64>,
    size: usize,
}

/// The content of a record.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum RecordKind {
    /// An answer by HTTP, with its head.
    Response,
    /// A file.
    Resource,
    /// Fields about the archive.
    About,
    #[default]
    Other,
}

pub(super) fn members(walk: &mut Walk<'_, '_>) -> Result<(), Fault> {
    let object = walk.object;
    let mut rest: &[u8] = &object.bytes;
    let is_warc = rest.starts_with(MARK);
    let mut number = 0_usize;
    loop {
        rest = rest.trim_ascii_start();
        if rest.is_empty() {
            return Ok(());
        }
        if number.is_multiple_of(POLL_RECORDS) && walk.budget.is_late() {
            walk.stop.set(Some(super::Stop::Time));
            return Ok(());
        }
        number += 1;
        let front = rest.get(..rest.len().min(HEAD_BYTES_MAX)).unwrap_or_default();
        let head = if is_warc { warc_head(front) } else { arc_head(front) };
        let Some((record, content)) = head else {
            let message = format!("record {number} cannot be read; the rest was left out");
            return Err((ProblemKind::Broken, message));
        };
        let content = rest.get(content..).unwrap_or_default();
        let end = record.size.min(content.len());
        let (content, after) = content.split_at_checked(end).unwrap_or_default();
        let is_cut = content.len() < record.size;
        match record.kind {
            RecordKind::About if walk.about.is_none() => walk.about = Some(about(content)),
            RecordKind::Response | RecordKind::Resource => member(walk, &record, content, is_cut)?,
            RecordKind::About | RecordKind::Other => {}
        }
        rest = after;
    }
}

/// Hands on the content of a record.
fn member(
    walk: &mut Walk<'_, '_>,
    record: &Record,
    content: &[u8],
    is_cut: bool,
) -> Result<(), Fault> {
    let bytes = match record.kind {
        RecordKind::Response => match body(content) {
            Some(bytes) => bytes,
            None => return Ok(()),
        },
        _ => content.to_vec(),
    };
    let fault = is_cut.then(|| {
        let message = format!("breaks off after {} of {} bytes", content.len(), record.size);
        (ProblemKind::Broken, message)
    });
    let name = name(&record.url);
    walk.emit(&record.url, Some(name), Decoded { bytes, modified: record.modified, fault })
}

/// Returns the file name at the end of a URL's path; `index` for the page of a folder.
fn name(url: &[u8]) -> String {
    let url = String::from_utf8_lossy(url);
    let path = url.split(['?', '#']).next().unwrap_or_default();
    let path = path.split_once("://").map_or(path, |(_, it)| it);
    let last = path.split_once('/').map_or("", |(_, it)| it.rsplit('/').next().unwrap_or_default());
    let last = if last.is_empty() { "index" } else { last };
    percent_encoding::percent_decode_str(last).decode_utf8_lossy().into_owned()
}

/// Returns the head of a WARC record and the offset of its content.
fn warc_head(front: &[u8]) -> Option<(Record, usize)> {
    front.starts_with(MARK).then_some(())?;
    let (end, gap) = head_end(front)?;
    let mut record = Record::default();
    let mut size = None;
    for (name, value) in fields(front.get(..end)?) {
        match name.to_ascii_lowercase().as_slice() {
            b"warc-type" => {
                record.kind = match value {
                    b"response" => RecordKind::Response,
                    b"resource" | b"conversion" => RecordKind::Resource,
                    b"warcinfo" => RecordKind::About,
                    _ => RecordKind::Other,
                }
            }
            b"warc-target-uri" => {
                let bare = value.strip_prefix(b"<").and_then(|it| it.strip_suffix(b">"));
                record.url = bare.unwrap_or(value).to_vec();
            }
            b"warc-date" => {
                let date = std::str::from_utf8(value).ok().and_then(|it| it.parse().ok());
                record.modified = date.and_then(|it: Timestamp| u64::try_from(it.as_second()).ok());
            }
            b"content-length" => size = std::str::from_utf8(value).ok()?.parse().ok(),
            _ => {}
        }
    }
    // Answers of name servers are responses, too.
    if record.url.starts_with(b"dns:") || record.url.is_empty() && record.kind != RecordKind::About
    {
        record.kind = RecordKind::Other;
    }
    record.size = size?;
    Some((record, end + gap))
}

/// Returns the head of an ARC record, which is one line: URL, address, date, media type and size.
fn arc_head(front: &[u8]) -> Option<(Record, usize)> {
    let end = memchr::memchr(b'\n', front)?;
    let line = front.get(..end)?.trim_ascii_end();
    let words: Vec<&[u8]> = line.split(|it| *it == b' ').collect();
    let ([url, _, date, ..], size) = (words.as_slice(), words.last()?) else { return None };
    let kind = if url.starts_with(ARC_MARK) {
        RecordKind::Other
    } else if url.starts_with(b"http") {
        RecordKind::Response
    } else if url.starts_with(b"dns:") {
        RecordKind::Other
    } else {
        RecordKind::Resource
    };
    let date = std::str::from_utf8(date).ok()?;
    let modified = jiff::civil::DateTime::strptime("%Y%m%d%H%M%S", date).ok();
    let modified = modified.and_then(|it| it.to_zoned(jiff::tz::TimeZone::UTC).ok());
    let modified = modified.and_then(|it| u64::try_from(it.timestamp().as_second()).ok());
    let size = std::str::from_utf8(size).ok()?.parse().ok()?;
    Some((Record { kind, url: url.to_vec(), modified, size }, end + 1))
}

/// Returns the length of a head's lines, and that of the empty line after them.
fn head_end(front: &[u8]) -> Option<(usize, usize)> {
    memchr::memchr_iter(b'\n', front).find_map(|at| match front.get(at + 1..)? {
        [b'\n', ..] => Some((at + 1, 1)),
        [b'\r', b'\n', ..] => Some((at + 1, 2)),
        _ => None,
    })
}

/// Returns names and values of the fields of a head.
fn fields(head: &[u8]) -> impl Iterator<Item = (&[u8], &[u8])> {
    head.split(|it| *it == b'\n').filter_map(|line| {
        let colon = memchr::memchr(b':', line)?;
        let (name, value) = line.split_at_checked(colon)?;
        Some((name.trim_ascii(), value.get(1..)?.trim_ascii()))
    })
}

/// Returns the body of an HTTP answer; `None` if it is no success or has no body.
fn body(answer: &[u8]) -> Option<Vec<u8>> {
    if !answer.starts_with(b"HTTP/") {
        return Some(answer.to_vec()).filter(|it| !it.is_empty());
    }
    let (end, gap) = head_end(answer)?;
    let head = answer.get(..end)?;
    let status = head.split(|it| *it == b' ').nth(1)?;
    let is_chunked = fields(head).any(|(name, value)| {
        name.eq_ignore_ascii_case(b"transfer-encoding") && value.eq_ignore_ascii_case(b"chunked")
    });
    let body = answer.get(end + gap..).filter(|it| !it.is_empty() && status.starts_with(b"2"))?;
    Some(if is_chunked { whole(body).unwrap_or_else(|| body.to_vec()) } else { body.to_vec() })
}

/// Puts chunks together; `None` if they are none, since some crawlers have done that already.
fn whole(chunks: &[u8]) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    let mut rest = chunks;
    while let Some(end) = memmem::find(rest, b"\r\n") {
        let line = rest.get(..end.min(16))?;
        let digits = line.split(|it| *it == b';').next()?.trim_ascii();
        let size = usize::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()?;
        if size == 0 {
            return Some(bytes);
        }
        let chunk = rest.get(end + 2..)?;
        bytes.extend_from_slice(chunk.get(..size.min(chunk.len()))?);
        rest = chunk.get(size..).unwrap_or_default();
        rest = rest.strip_prefix(b"\r\n").unwrap_or(rest);
    }
    (!bytes.is_empty()).then_some(bytes)
}

/// Returns what a `warcinfo` record says of the archive.
fn about(content: &[u8]) -> Draft<'static> {
    let mut draft = Draft::default();
    for (name, value) in fields(content) {
        let value = decode(value, None).into_owned();
        match name.to_ascii_lowercase().as_slice() {
            b"software" => draft.other("Generator", value),
            b"operator" | b"creator" => draft.authors.push(value),
            b"ispartof" | b"title" => draft.title = value,
            b"description" => draft.description = value,
            b"publisher" => draft.other("Publisher", value),
            _ => {}
        }
    }
    draft
}
