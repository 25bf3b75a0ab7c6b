//! The Transport Neutral Encapsulation Format (`winmail.dat`, `.tnef`): an item of Outlook as one attachment
//! of a mail.
//!
//! Source: Microsoft's \[MS-OXTNEF\] 2.1.
//!
//! # Differences from the specification
//!
//! * Checksums are not verified: what can be read of a damaged item is read.
//! * Attributes of the item itself are read only where no property says the same.

use std::borrow::Cow;

use super::mapi::{self, ATTACHED, PropertyBag, SUBJECT, Value};
use super::{Attachment, Fault, Item};
use crate::limit::Limit;
use crate::numbers::{le_len32, le16, le32, slice, up_to_zero};
use crate::object::ProblemKind;

/// First bytes of every item.
pub(in crate::office) const MAGIC: &[u8] = b"\x78\x9f\x3e\x22";
/// Bytes before the attributes: the mark and a key.
const HEADER_BYTES: usize = 6;
/// Bytes before the data of an attribute: its level, its number, its length.
const ATTRIBUTE_HEADER_BYTES: usize = 9;
/// Bytes of the checksum behind the data.
const CHECKSUM_BYTES: usize = 2;
/// Bytes of the identifier of an interface before an object.
const INTERFACE_BYTES: usize = 16;
/// The interface of items.
const ITEM_INTERFACE: &[u8] = b"\x07\x03\x02\0\0\0\0\0\xc0\0\0\0\0\0\0\x46";

/// Numbers of attributes.
const FROM: u32 = 0x0000_8000;
const SUBJECT_TEXT: u32 = 0x0001_8004;
const SENT: u32 = 0x0003_8005;
const CLASS_NAME: u32 = 0x0007_8008;
const BODY_TEXT: u32 = 0x0002_800c;
const ATTACHED_DATA: u32 = 0x0006_800f;
const ATTACHED_NAME: u32 = 0x0001_8010;
const NEXT_ATTACHMENT: u32 = 0x0006_9002;
const PROPERTIES: u32 = 0x0006_9003;
const RECIPIENTS: u32 = 0x0006_9004;
const ATTACHED_PROPERTIES: u32 = 0x0006_9005;
const PAGE: u32 = 0x0006_9007;

/// An attachment while it is read.
#[derive(Default)]
struct Attached<'a> {
    properties: PropertyBag<'a>,
    data: &'a [u8],
}

/// The attributes of an item, as far as they are used.
#[derive(Default)]
struct Attributes<'a> {
    item: Item<'a>,
    attachments: Vec<Attached<'a>>,
    /// Number of all attachments, beside the recipients that the item says it has.
    attached: usize,
    recipients: usize,
}

fn attributes(bytes: &[u8]) -> Attributes<'_> {
    let mut all = Attributes::default();
    let mut rest = bytes.get(HEADER_BYTES..).unwrap_or_default();
    // Behind the attributes, mail programs may have put line ends.
    while ATTRIBUTE_HEADER_BYTES <= rest.len() {
        let data = le_len32(rest, 5).and_then(|it| slice(rest, ATTRIBUTE_HEADER_BYTES, it));
        let (Some(number), Some(data)) = (le32(rest, 1), data) else {
            let message = "breaks off in an attribute of Outlook".to_owned();
            all.item.faults.push((ProblemKind::Broken, message));
            break;
        };
        all.add(number, data);
        let length = ATTRIBUTE_HEADER_BYTES + data.len() + CHECKSUM_BYTES;
        rest = rest.get(length..).unwrap_or_default();
    }
    all
}

impl<'a> Attributes<'a> {
    fn add(&mut self, number: u32, data: &'a [u8]) {
        let properties = &mut self.item.properties;
        let narrow = Value::Narrow(Cow::Borrowed(data));
        match number {
            PAGE => properties.page = le32(data, 0),
            FROM => {
                sender(data, properties);
            }
            SUBJECT_TEXT => properties.add(mapi::NORMAL_SUBJECT, narrow),
            BODY_TEXT => properties.add(mapi::BODY, narrow),
            CLASS_NAME => properties.add(mapi::CLASS, narrow),
            SENT => properties.sent = date(data),
            PROPERTIES => {
                read(data, properties);
            }
            RECIPIENTS => {
                let page = properties.page;
                self.recipients(data, page);
            }
            NEXT_ATTACHMENT => {
                let page = properties.page;
                self.attached += 1;
                if self.attached <= Limit::Entries.bound() {
                    let properties = PropertyBag::of_page(page);
                    self.attachments.push(Attached { properties, data: &[] });
                }
            }
            _ => {
                let Some(last) = self.attachments.last_mut() else { return };
                match number {
                    ATTACHED_DATA => last.data = data,
                    ATTACHED_NAME => last.properties.add(mapi::FILE_NAME, narrow),
                    ATTACHED_PROPERTIES => {
                        read(data, &mut last.properties);
                    }
                    _ => {}
                }
            }
        }
    }

    /// Adds recipients: their number, then the properties of each.
    fn recipients(&mut self, data: &'a [u8], page: Option<u32>) {
        let count = le_len32(data, 0).unwrap_or(0);
        self.recipients = self.recipients.saturating_add(count);
        let mut rest = data.get(4..).unwrap_or_default();
        while self.item.recipients.len() < Limit::Recipients.bound().min(self.recipients) {
            let mut recipient = PropertyBag::of_page(page);
            let Some(after) = read(rest, &mut recipient) else { break };
            self.item.recipients.push(recipient);
            rest = after;
        }
    }
}

/// Adds the sender: lengths, name and address.
fn sender(data: &[u8], properties: &mut PropertyBag<'_>) -> Option<()> {
    let name_bytes = usize::from(le16(data, 4)?);
    let address_bytes = usize::from(le16(data, 6)?);
    let name = up_to_zero(slice(data, 8, name_bytes)?);
    let address = up_to_zero(slice(data, 8 + name_bytes, address_bytes)?);
    // `SMTP:ann@a.example`
    let kind = memchr::memchr(b':', address).map_or(0, |at| at + 1);
    let address = address.get(kind..).unwrap_or_default();
    let value = |text: &[u8]| Value::Narrow(Cow::Owned(text.to_vec()));
    properties.add(mapi::SENDER_NAME, value(name));
    properties.add(mapi::SENDER_ADDRESS, value(address));
    Some(())
}

/// Returns a date of six numbers, without a zone.
fn date(data: &[u8]) -> Option<String> {
    let part = |at: usize| le16(data, 2 * at).and_then(|it| i8::try_from(it).ok());
    let year = i16::try_from(le16(data, 0)?).ok()?;
    let date = jiff::civil::Date::new(year, part(1)?, part(2)?).ok()?;
    let time = jiff::civil::Time::new(part(3)?, part(4)?, part(5)?, 0).ok()?;
    Some(date.to_datetime(time).to_string())
}

/// Reads properties up to the first that is damaged; returns the bytes behind them.
fn read<'a>(data: &'a [u8], bag: &mut PropertyBag<'a>) -> Option<&'a [u8]> {
    let count = le_len32(data, 0)?;
    let mut rest = data.get(4..)?;
    for _ in 0..count {
        rest = property(rest, bag)?;
    }
    Some(rest)
}

/// Reads one property; returns the bytes behind it.
fn property<'a>(bytes: &'a [u8], bag: &mut PropertyBag<'a>) -> Option<&'a [u8]> {
    let (kind, number) = (le16(bytes, 0)?, le16(bytes, 2)?);
    let mut rest = bytes.get(4..)?;
    let mut key = Some(mapi::Key::from(number));
    if 0x8000 <= number {
        let (set, is_text) = (le32(rest, 0)?, le32(rest, 16)? != 0);
        let numbered = le32(rest, 20)?;
        key = if is_text { None } else { mapi::named(set, numbered) };
        let name_bytes = if is_text { padded(le_len32(rest, 20)?)? } else { 0 };
        rest = rest.get(24..)?.get(name_bytes..)?;
    }
    let is_several = kind & 0x1000 != 0;
    let kind = kind & 0x0fff;
    let width = match kind {
        0x0002 | 0x0003 | 0x0004 | 0x000a | 0x000b => Some(4),
        0x0005 | 0x0006 | 0x0007 | 0x0014 | 0x0040 => Some(8),
        0x0048 => Some(16),
        0x000d | 0x001e | 0x001f | 0x0102 => None,
        // Without a length, nothing behind it can be found.
        _ => return None,
    };
    let count = if is_several || width.is_none() {
        let count = le_len32(rest, 0)?;
        rest = rest.get(4..)?;
        count
    } else {
        1
    };
    for at in 0..count {
        let length = match width {
            Some(width) => width,
            None => {
                let length = le_len32(rest, 0)?;
                rest = rest.get(4..)?;
                length
            }
        };
        let value = rest.get(..length)?;
        rest = rest.get(padded(length)?..).unwrap_or_default();
        if at == 0
            && let Some(key) = key
            && let Some(value) = Value::of(kind, Cow::Borrowed(value))
        {
            bag.add(key, value);
        }
    }
    Some(rest)
}

/// Values end at a multiple of four bytes.
fn padded(length: usize) -> Option<usize> {
    length.checked_next_multiple_of(4)
}

pub(super) fn item(bytes: &[u8]) -> Item<'_> {
    let Attributes { mut item, attachments, attached, recipients } = attributes(bytes);
    item.faults.extend(super::too_many(attached, Limit::Attachments));
    if item.recipients.len() == Limit::Recipients.bound() {
        item.faults.extend(super::too_many(recipients, Limit::Recipients));
    }
    let all = attachments.into_iter().take(Limit::Attachments.bound());
    item.attachments = all.map(|it| it.properties).collect();
    item
}

/// Calls `visit` with each attachment.
pub(super) fn attachments(
    bytes: &[u8],
    visit: &mut dyn FnMut(Attachment) -> Result<(), Fault>,
) -> Result<(), Fault> {
    let Attributes { attachments, attached, .. } = attributes(bytes);
    for Attached { properties, data } in attachments {
        let object = properties.bytes(ATTACHED);
        let (interface, inner) = object
            .and_then(|it| it.split_at_checked(INTERFACE_BYTES))
            .filter(|_| properties.is_object(ATTACHED))
            .unwrap_or_else(|| (&[], object.unwrap_or_default()));
        let mut attachment =
            Attachment { name: super::name_of(&properties), ..Attachment::default() };
        attachment.bytes = if inner.is_empty() { data } else { inner }.to_vec();
        if interface == ITEM_INTERFACE {
            attachment.extension = ".tnef";
            if attachment.name.is_empty() {
                attachment.name =
                    item(&attachment.bytes).properties.text(&[SUBJECT, mapi::NORMAL_SUBJECT]);
            }
        }
        visit(attachment)?;
    }
    super::too_many(attached, Limit::Entries).map_or(Ok(()), Err)
}
