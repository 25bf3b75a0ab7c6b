//! Mail containers: the attachments of a message or of an item of Outlook, and the messages of a mailbox.
//!
//! Source: MIME (RFC 2045, 2046, 2183); mbox (RFC 4155, and the quoting of `From ` as mboxrd has it);
//! [`outlook`] for its items.
//!
//! The summarizer makes the records of message, item and mailbox. Text that is shown in a message belongs to
//! the message; it is not an attachment.

use std::collections::HashSet;

use mail_parser::{MessageParser, MessagePart, MimeHeaders, PartType};
use memchr::memmem;

use super::budget::Fault;
use super::{Decoded, Walk};
use crate::limit::Limit;
use crate::office::outlook;
use crate::prose::mail::{nested, starts};

/// Longest Message-Id that identifies a message, in bytes; a message with a longer one is known by number.
const KEY_BYTES_MAX: usize = 200;
/// Maximum number of bytes of a message's header that are searched for its Message-Id.
const HEADER_BYTES_MAX: usize = 64 * 1024;
/// Messages between two checks of the time limit.
const POLL_MESSAGES: usize = 100;

/// Opens a message. Its attachments are known by name, or by number if they have none.
pub(super) fn message(walk: &mut Walk<'_, '_>) -> Result<(), Fault> {
    let object = walk.object;
    let most = Limit::Attached.bound();
    let bytes = object.bytes.get(..object.bytes.len().min(most)).unwrap_or_default();
    let nested_max = Limit::NestedMessages.bound();
    if nested_max < nested(bytes) {
        let message = format!("may hold more than {nested_max} messages in it; not opened");
        return Err((Limit::NestedMessages.kind(), message));
    }
    let message = MessageParser::default().parse(bytes);
    let mut paths = Paths::default();
    for part in message.iter().flat_map(|it| it.attachments()) {
        let content = Decoded { bytes: content(part), ..Decoded::default() };
        let extension = if part.is_message() { ".eml" } else { "" };
        let name = part.attachment_name().unwrap_or_default();
        walk.emit(paths.next(name, extension).as_bytes(), None, content)?;
    }
    if most < object.bytes.len() { Err(Limit::Attached.cut().problem()) } else { Ok(()) }
}

/// Opens an item of Outlook; what is attached is known as that of other messages is.
pub(super) fn outlook(walk: &mut Walk<'_, '_>) -> Result<(), Fault> {
    let object = walk.object;
    let mut paths = Paths::default();
    outlook::attachments(&object.bytes, &mut |it| {
        let content = Decoded { bytes: it.bytes, fault: it.fault, ..Decoded::default() };
        walk.emit(paths.next(&it.name, it.extension).as_bytes(), None, content)
    })
}

/// The paths of attachments.
#[derive(Default)]
struct Paths {
    count: usize,
    seen: HashSet<String>,
}

impl Paths {
    /// Returns the path of the next attachment: its name, or its number with what ends names of its kind.
    /// A repeated name gets the number in front.
    fn next(&mut self, name: &str, extension: &str) -> String {
        self.count += 1;
        let name = match name.trim() {
            "" => format!("{}{extension}", self.count),
            name => name.to_owned(),
        };
        if self.seen.insert(name.clone()) { name } else { format!("{}/{name}", self.count) }
    }
}

/// Returns whether a message that starts with `bytes` may hold more than one text: a kind of MIME
/// type other than text stands before some slash.
pub(super) fn may_have_attachments(bytes: &[u8]) -> bool {
    let kinds: [&[u8]; 6] =
        [b"multipart", b"message", b"application", b"image", b"audio", b"video"];
    memchr::memchr_iter(b'/', bytes).any(|at| {
        let before = bytes.get(at.saturating_sub(16)..at).unwrap_or_default().trim_ascii_end();
        kinds.iter().any(|kind| {
            let start = before.len().checked_sub(kind.len());
            start.and_then(|it| before.get(it..)).is_some_and(|it| it.eq_ignore_ascii_case(kind))
        })
    })
}

fn content(part: &MessagePart<'_>) -> Vec<u8> {
    match &part.body {
        PartType::Message(message) => message.raw_message().to_vec(),
        PartType::Multipart(_) => Vec::new(),
        _ => part.contents().to_vec(),
    }
}

/// Opens a mailbox. Its messages are known by their Message-Id, or by number if they have none.
pub(super) fn mailbox(walk: &mut Walk<'_, '_>) -> Result<(), Fault> {
    let object = walk.object;
    let bytes: &[u8] = &object.bytes;
    let mut starts = starts(bytes).chain([bytes.len()]);
    let (mut start, mut number) = (0, 0_usize);
    while start < bytes.len() {
        if number % POLL_MESSAGES == 0 && walk.budget.is_late() {
            walk.stop.set(Some(super::Stop::Time));
            return Ok(());
        }
        let end = starts.next().unwrap_or(bytes.len());
        let message = bytes.get(start..end).unwrap_or_default();
        start = end;
        // The separator line stands before the header.
        let header = memchr::memchr(b'\n', message).map_or(message.len(), |at| at + 1);
        let message = unquoted(message.get(header..).unwrap_or_default());
        if message.trim_ascii().is_empty() {
            continue;
        }
        number += 1;
        let key = message_id(&message).unwrap_or_else(|| number.to_string().into_bytes());
        // The name shows the type; a Message-Id would not.
        let name = Some(format!("{number}.eml"));
        walk.emit(&key, name, Decoded { bytes: message, ..Decoded::default() })?;
    }
    Ok(())
}

/// Removes one `>` from every line that quotes a `From `, at any depth of quoting.
fn unquoted(message: &[u8]) -> Vec<u8> {
    if memmem::find(message, b">From ").is_none() {
        return message.to_vec();
    }
    let mut out = Vec::with_capacity(message.len());
    for line in message.split_inclusive(|byte| *byte == b'\n') {
        let marks = line.iter().take_while(|it| **it == b'>').count();
        let is_quoted = line.get(marks..).is_some_and(|it| it.starts_with(b"From "));
        let skipped = usize::from(0 < marks && is_quoted);
        out.extend_from_slice(line.get(skipped..).unwrap_or_default());
    }
    out
}

fn message_id(message: &[u8]) -> Option<Vec<u8>> {
    let head = message.get(..message.len().min(HEADER_BYTES_MAX)).unwrap_or_default();
    let mut lines = head.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii_end);
    let mut lines = lines.by_ref().take_while(|line| !line.is_empty());
    let field = lines.find_map(|line| {
        let (name, value) = line.split_at_checked(11)?;
        name.eq_ignore_ascii_case(b"message-id:").then_some(value)
    });
    // A long id stands on the next line.
    let value = field.map(<[u8]>::trim_ascii);
    let value = value.and_then(|it| if it.is_empty() { lines.next() } else { Some(it) })?;
    let id = value.trim_ascii();
    let id = id.strip_prefix(b"<").unwrap_or(id);
    let id = id.split(|byte| *byte == b'>').next().unwrap_or_default();
    (1..=KEY_BYTES_MAX).contains(&id.len()).then(|| id.to_vec())
}
