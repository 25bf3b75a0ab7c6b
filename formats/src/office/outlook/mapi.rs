//! The properties of items: their numbers, their values, and the text of these.
//!
//! Source: Microsoft's \[MS-OXPROPS\] for the numbers, \[MS-OXCDATA\] 2.11 for the kinds of values.
//!
//! # Differences from the specification
//!
//! * Text without Unicode is in the code page that the item names, unless it is valid UTF-8. If it names
//!   none, the charset is guessed.
//! * Properties of several values are not read.

use std::borrow::Cow;

use crate::numbers::{le16, le32, le64};
use crate::office::codepage;
use crate::office::compound::{time, utf16};
use crate::text::decode;

/// The number of a property; a named one has the low byte of its set before the number in the set.
pub(super) type Key = u32;

pub(super) const CLASS: Key = 0x001a;
pub(super) const SUBJECT: Key = 0x0037;
pub(super) const SUBMIT_TIME: Key = 0x0039;
pub(super) const REPRESENTED_NAME: Key = 0x0042;
pub(super) const REPRESENTED_ADDRESS: Key = 0x0065;
pub(super) const TRANSPORT_HEADERS: Key = 0x007d;
pub(super) const RECIPIENT_KIND: Key = 0x0c15;
pub(super) const SENDER_NAME: Key = 0x0c1a;
pub(super) const SENDER_ADDRESS: Key = 0x0c1f;
pub(super) const DISPLAY_CC: Key = 0x0e03;
pub(super) const DISPLAY_TO: Key = 0x0e04;
pub(super) const DELIVERY_TIME: Key = 0x0e06;
pub(super) const NORMAL_SUBJECT: Key = 0x0e1d;
pub(super) const BODY: Key = 0x1000;
pub(super) const RTF: Key = 0x1009;
pub(super) const HTML: Key = 0x1013;
pub(super) const MESSAGE_ID: Key = 0x1035;
pub(super) const REFERENCES: Key = 0x1039;
pub(super) const IN_REPLY_TO: Key = 0x1042;
pub(super) const DISPLAY_NAME: Key = 0x3001;
pub(super) const ADDRESS: Key = 0x3003;
pub(super) const CREATION_TIME: Key = 0x3007;
pub(super) const ATTACHED: Key = 0x3701;
pub(super) const FILE_NAME: Key = 0x3704;
pub(super) const LONG_FILE_NAME: Key = 0x3707;
pub(super) const MEDIA_TYPE: Key = 0x370e;
pub(super) const SMTP_ADDRESS: Key = 0x39fe;
pub(super) const INTERNET_PAGE: Key = 0x3fde;
pub(super) const MESSAGE_PAGE: Key = 0x3ffd;
pub(super) const SENDER_SMTP: Key = 0x5d01;
pub(super) const REPRESENTED_SMTP: Key = 0x5d02;
pub(super) const LOCATION: Key = 0x0002_8208;
pub(super) const START: Key = 0x0002_820d;
pub(super) const DUE: Key = 0x0003_8105;

/// What cards of people say, in the order of their text: company, title, department, telephones, the
/// postal address, and those of e-mail, the web and messengers.
pub(super) const CARD: [Key; 12] = [
    0x3a16,
    0x3a17,
    0x3a18,
    0x3a08,
    0x3a09,
    0x3a1c,
    0x3a15,
    0x0004_8083,
    0x0004_8093,
    0x0004_80a3,
    0x0004_802b,
    0x0004_8062,
];

/// Properties that are read, beside those of cards. What is attached is read apart.
const READ: [Key; 33] = [
    CLASS,
    SUBJECT,
    SUBMIT_TIME,
    REPRESENTED_NAME,
    REPRESENTED_ADDRESS,
    TRANSPORT_HEADERS,
    RECIPIENT_KIND,
    SENDER_NAME,
    SENDER_ADDRESS,
    DISPLAY_CC,
    DISPLAY_TO,
    DELIVERY_TIME,
    NORMAL_SUBJECT,
    BODY,
    RTF,
    HTML,
    MESSAGE_ID,
    REFERENCES,
    IN_REPLY_TO,
    DISPLAY_NAME,
    ADDRESS,
    CREATION_TIME,
    FILE_NAME,
    LONG_FILE_NAME,
    MEDIA_TYPE,
    SMTP_ADDRESS,
    INTERNET_PAGE,
    MESSAGE_PAGE,
    SENDER_SMTP,
    REPRESENTED_SMTP,
    LOCATION,
    START,
    DUE,
];

/// The set of properties of appointments is the first of a row of sets.
const SETS: u32 = 0x0006_2000;

/// Maximum number of values that are kept of a property; the first that has any text is used.
const VALUES_MAX: usize = 16;

/// Returns whether the property is read.
pub(super) fn is_read(key: Key) -> bool {
    READ.contains(&key) || CARD.contains(&key)
}

/// Returns the key of a named property; `set` is the beginning of its set's identifier.
pub(super) fn named(set: u32, number: u32) -> Option<Key> {
    let set = set.checked_sub(SETS).filter(|it| *it < 0x100)?;
    (number <= 0xffff).then_some(set << 16 | number)
}

/// A value of a property.
#[derive(Debug)]
pub(super) enum Value<'a> {
    Text(String),
    /// Text in the code page of the item.
    Narrow(Cow<'a, [u8]>),
    Bytes(Cow<'a, [u8]>),
    Object(Cow<'a, [u8]>),
    Number(u32),
    Time(i64),
}

impl<'a> Value<'a> {
    /// Returns the value of this kind in these bytes.
    pub(super) fn of(kind: u16, bytes: Cow<'a, [u8]>) -> Option<Self> {
        Some(match kind {
            0x0002 => Self::Number(le16(&bytes, 0)?.into()),
            0x0003 | 0x000b => Self::Number(le32(&bytes, 0)?),
            0x0040 => Self::Time(le64(&bytes, 0)?.cast_signed()),
            0x001e => Self::Narrow(bytes),
            0x001f => Self::Text(utf16(&bytes)),
            0x000d => Self::Object(bytes),
            0x0102 => Self::Bytes(bytes),
            _ => return None,
        })
    }
}

/// Properties of an item, a recipient or an attachment.
#[derive(Debug, Default)]
pub(super) struct PropertyBag<'a> {
    values: Vec<(Key, Value<'a>)>,
    /// The code page of text, if something beside the properties says it.
    pub(super) page: Option<u32>,
    /// The date, if something beside the properties says it.
    pub(super) sent: Option<String>,
}

impl<'a> PropertyBag<'a> {
    pub(super) fn of_page(page: Option<u32>) -> Self {
        Self { page, ..Self::default() }
    }

    /// Adds a property that is read; well-formed items have each once or twice.
    pub(super) fn add(&mut self, key: Key, value: Value<'a>) {
        let is_wanted = is_read(key) || key == ATTACHED;
        if is_wanted && self.all(key).count() < VALUES_MAX {
            self.values.push((key, value));
        }
    }

    fn all(&self, key: Key) -> impl Iterator<Item = &Value<'a>> {
        self.values.iter().filter(move |(it, _)| *it == key).map(|(_, value)| value)
    }

    pub(super) fn number(&self, key: Key) -> Option<u32> {
        self.all(key).find_map(|it| if let Value::Number(it) = it { Some(*it) } else { None })
    }

    /// Returns the first of these times that is there, as RFC 3339 has it.
    pub(super) fn time(&self, keys: &[Key]) -> Option<String> {
        let ticks = |it: &Value<'_>| if let Value::Time(it) = it { time(*it) } else { None };
        keys.iter().find_map(|key| self.all(*key).find_map(ticks))
    }

    /// Returns the bytes of a property, or of an object that is one.
    pub(super) fn bytes(&self, key: Key) -> Option<&[u8]> {
        self.all(key).find_map(|it| match it {
            Value::Bytes(it) | Value::Object(it) => Some(&**it),
            _ => None,
        })
    }

    pub(super) fn is_object(&self, key: Key) -> bool {
        self.all(key).any(|it| matches!(it, Value::Object(_)))
    }

    /// Returns the text of the first of these properties that has any, up to its end mark.
    pub(super) fn text(&self, keys: &[Key]) -> String {
        let mut all =
            keys.iter().flat_map(move |key| self.all(*key).map(move |it| self.text_of(it)));
        all.find(|it| !it.trim().is_empty()).unwrap_or_default()
    }

    fn text_of(&self, value: &Value<'_>) -> String {
        let text = match value {
            Value::Text(text) => Cow::Borrowed(&**text),
            Value::Narrow(bytes) => self.decoded(bytes, &[MESSAGE_PAGE, INTERNET_PAGE]),
            _ => Cow::Borrowed(""),
        };
        text.split('\0').next().unwrap_or_default().to_owned()
    }

    /// Returns text in the code page that the first of these properties says.
    pub(super) fn decoded<'t>(&self, bytes: &'t [u8], pages: &[Key]) -> Cow<'t, str> {
        let page = pages.iter().find_map(|it| self.number(*it)).or(self.page);
        decode(bytes, page.map(|it| codepage::of_number(it.into()).name()))
    }
}
