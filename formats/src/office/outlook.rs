//! Items of Outlook: messages, appointments, contacts, notes and others, in files of their own or within
//! mail.
//!
//! Source: Microsoft's \[MS-OXCMSG\] 2.2 (messages), \[MS-OXOCAL\], \[MS-OXOCNTC\] and \[MS-OXOTASK\] (properties
//! of appointments, contacts and tasks). [`msg`] and [`tnef`] read the two forms in which items are stored;
//! here they become records like those of other mail.
//!
//! # Differences from the specification
//!
//! * Of the forms of its text that an item may have, the first of plain text, HTML and RTF that is not empty
//!   is read.
//! * Addresses of Exchange (`/O=…`), which mean nothing outside, are left out.

mod lzfu;
mod mapi;
mod msg;
mod tnef;

use mapi::{Key, PropertyBag};

use super::compound::Compound;
use super::{COMPOUND, rtf};
use crate::limit::Limit;
use crate::object::{Object, ProblemKind};
use crate::prose::mail::{MessageHeader, field, first_words};
use crate::text::Body;
use crate::{Draft, Input, Type, html};

pub(super) use msg::PROPERTIES;

type Fault = (ProblemKind, String);

/// Kinds of recipients.
const TO: u32 = 1;
const CC: u32 = 2;
/// First line that some servers write before the fields of a header.
const HEADER_MARK: &str = "Microsoft Mail Internet Headers Version 2.0";

/// An item, of whichever form.
#[derive(Default)]
struct Item<'a> {
    properties: PropertyBag<'a>,
    recipients: Vec<PropertyBag<'a>>,
    /// The properties of its attachments, without what is attached.
    attachments: Vec<PropertyBag<'a>>,
    /// What is wrong with it, and what was left out.
    faults: Vec<Fault>,
}

/// What is attached to an item.
#[derive(Default)]
pub(crate) struct Attachment {
    /// Its file's name; may be empty.
    pub(crate) name: String,
    /// What ends the names of files of its kind, if that is known.
    pub(crate) extension: &'static str,
    pub(crate) bytes: Vec<u8>,
    pub(crate) fault: Option<Fault>,
}

/// Returns whether this is an item in either form, or another compound file.
pub(crate) fn is_item(bytes: &[u8]) -> bool {
    bytes.starts_with(COMPOUND) || is_tnef(bytes)
}

pub(crate) fn is_tnef(bytes: &[u8]) -> bool {
    bytes.starts_with(tnef::MAGIC)
}

pub(crate) fn summarize<'a>(input: &Input<'a>) -> Draft<'a> {
    let mut draft = in_memory(input);
    input.report_front(&mut draft);
    draft
}

fn in_memory<'a>(input: &Input<'a>) -> Draft<'a> {
    let bytes = &*input.object.bytes;
    if is_tnef(bytes) {
        return tnef::item(bytes).draft(input);
    }
    let Some(file) = Compound::open(bytes) else {
        return Draft::with_problem(ProblemKind::Broken, "has no directory that can be read");
    };
    match msg::item(&file) {
        Ok(item) => {
            let mut draft = item.draft(input);
            draft.add_problems(std::iter::from_fn(|| file.cut()));
            draft
        }
        Err((kind, message)) => Draft::with_problem(kind, message),
    }
}

/// Calls `visit` with each attachment of an item.
pub(crate) fn attachments(
    bytes: &[u8],
    visit: &mut dyn FnMut(Attachment) -> Result<(), Fault>,
) -> Result<(), Fault> {
    if is_tnef(bytes) {
        return tnef::attachments(bytes, visit);
    }
    // The summarizer says what is wrong with a file that cannot be read.
    Compound::open(bytes).map_or(Ok(()), |file| msg::attachments(&file, visit))
}

/// Returns the name of an attachment's file.
fn name_of(properties: &PropertyBag<'_>) -> String {
    field(&properties.text(&[mapi::LONG_FILE_NAME, mapi::FILE_NAME, mapi::DISPLAY_NAME]))
}

/// Returns the problem if there are more of something than are listed.
fn too_many(count: usize, limit: Limit) -> Option<Fault> {
    (limit.bound() < count).then(|| limit.cut().problem())
}

impl Item<'_> {
    fn draft<'a>(self, input: &Input<'a>) -> Draft<'a> {
        let mut draft = Draft::default();
        self.header().write_to(&mut draft);
        draft.other("Location", field(&self.properties.text(&[mapi::LOCATION])));
        let mut body = Body::new(input.text_bytes_max());
        for key in mapi::CARD {
            body.push_squeezed_line(&self.properties.text(&[key]));
        }
        self.text(input, &mut body, &mut draft);
        draft.add_problems(self.faults);
        draft.set_body(body);
        draft.description = first_words(&draft.body);
        draft
    }

    /// Returns the header: the one with which it was sent through the net, filled up by the properties.
    fn header(&self) -> MessageHeader {
        let properties = &self.properties;
        let text = |keys: &[Key]| field(&properties.text(keys));
        let sent = properties.text(&[mapi::TRANSPORT_HEADERS]);
        let sent = sent.trim_start().trim_start_matches(HEADER_MARK).trim_start();
        let mut header = MessageHeader::read(sent.as_bytes());
        let title = text(&[mapi::SUBJECT, mapi::NORMAL_SUBJECT, mapi::DISPLAY_NAME]);
        fill(&mut header.subject, title);
        if header.from.is_empty() {
            let sender = [mapi::SENDER_SMTP, mapi::SENDER_ADDRESS];
            let represented = [mapi::REPRESENTED_SMTP, mapi::REPRESENTED_ADDRESS];
            let first = person(properties, mapi::REPRESENTED_NAME, &represented);
            let from = first.or_else(|| person(properties, mapi::SENDER_NAME, &sender));
            header.from.extend(from);
        }
        let all = [(&mut header.to, TO, mapi::DISPLAY_TO), (&mut header.cc, CC, mapi::DISPLAY_CC)];
        for (list, kind, shown) in all {
            if list.is_empty() {
                *list = self.recipients(kind, shown);
            }
        }
        // An appointment is where it is looked for: at its own time.
        let own = properties.time(&[mapi::START, mapi::DUE]);
        let times = [mapi::SUBMIT_TIME, mapi::DELIVERY_TIME];
        let date =
            own.or_else(|| Some(std::mem::take(&mut header.date)).filter(|it| !it.is_empty()));
        let date = date.or_else(|| properties.time(&times)).or_else(|| properties.sent.clone());
        header.date = date.or_else(|| properties.time(&[mapi::CREATION_TIME])).unwrap_or_default();
        fill(&mut header.id, identifiers(&text(&[mapi::MESSAGE_ID])));
        fill(&mut header.in_reply_to, identifiers(&text(&[mapi::IN_REPLY_TO])));
        fill(&mut header.references, identifiers(&text(&[mapi::REFERENCES])));
        header.attachments = self.attachments.iter().map(name_of).collect();
        header.attachments.retain(|it| !it.is_empty());
        header
    }

    fn recipients(&self, kind: u32, shown: Key) -> Vec<String> {
        let own = self.recipients.iter().filter(|it| it.number(mapi::RECIPIENT_KIND) == Some(kind));
        let addresses = [mapi::SMTP_ADDRESS, mapi::ADDRESS];
        let listed: Vec<String> =
            own.filter_map(|it| person(it, mapi::DISPLAY_NAME, &addresses)).collect();
        if !listed.is_empty() {
            return listed;
        }
        let shown = self.properties.text(&[shown]);
        shown.split(';').map(field).filter(|it| !it.is_empty()).collect()
    }

    /// Adds the text: plain, or a page, or RTF.
    fn text(&self, input: &Input<'_>, body: &mut Body, draft: &mut Draft<'_>) {
        let properties = &self.properties;
        let plain = properties.text(&[mapi::BODY]);
        if !plain.trim().is_empty() {
            body.push(&plain.replace("\r\n", "\n"));
            return;
        }
        let html = properties.text(&[mapi::HTML]);
        let html = if html.is_empty() {
            let bytes = properties.bytes(mapi::HTML).unwrap_or_default();
            match properties.number(mapi::INTERNET_PAGE) {
                Some(_) => {
                    properties.decoded(bytes, &[mapi::INTERNET_PAGE]).into_owned().into_bytes()
                }
                // The page may say its charset itself.
                None => bytes.to_vec(),
            }
        } else {
            html.into_bytes()
        };
        let mut add = |r#type, source: Vec<u8>| {
            // Under a URL with a fragment, relative links are left out.
            let object = Object::whole(format!("{}#body", input.object.url), source);
            let input = Input { object: &object, r#type, ..*input };
            let page = match r#type {
                Type::Rtf => rtf::summarize(&input),
                _ => html::summarize(&input),
            };
            body.push(&page.body);
            draft.references.extend(page.references);
            draft.add_problems(page.problems);
            !page.body.trim().is_empty()
        };
        if !html.is_empty() && add(Type::Html, html) {
            return;
        }
        let Some(packed) = properties.bytes(mapi::RTF) else { return };
        match lzfu::unpack(packed) {
            Some((text, is_cut)) => {
                add(Type::Rtf, text.into_owned());
                if is_cut {
                    draft.cut(Limit::OutlookText.cut());
                }
            }
            None => draft.problem(ProblemKind::Broken, "has a text in RTF that cannot be unpacked"),
        }
    }
}

fn fill(to: &mut String, value: String) {
    if to.is_empty() {
        *to = value;
    }
}

/// Returns a person as `name <address>`.
fn person(properties: &PropertyBag<'_>, name: Key, addresses: &[Key]) -> Option<String> {
    let name = properties.text(&[name]);
    let addresses = addresses.iter().map(|it| properties.text(&[*it]));
    let is_mail = |it: &String| it.contains('@') && !it.starts_with('/');
    let address = addresses.into_iter().find(is_mail).unwrap_or_default();
    // Some programs put the address into quotes for a name.
    let name = name.trim().trim_matches('\'');
    let person = match (name, address.trim()) {
        ("", address) => address.to_owned(),
        (name, "") => name.to_owned(),
        (name, address) if name.eq_ignore_ascii_case(address) => address.to_owned(),
        (name, address) => format!("{name} <{address}>"),
    };
    Some(field(&person)).filter(|it| !it.is_empty())
}

/// Returns message identifiers without their marks, one on each line.
fn identifiers(text: &str) -> String {
    let all = text.split_whitespace().map(|it| it.trim_start_matches('<').trim_end_matches('>'));
    all.collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
pub(crate) mod tests;
