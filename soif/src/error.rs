//! Errors of a SOIF stream, with their offsets, and of the JSON form.
//!
//! Sans-I/O.

/// A stream that is not SOIF.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{kind} at byte {offset}")]
pub struct ParseError {
    /// What was wrong.
    pub kind: ErrorKind,
    /// Start of the damaged line or the incomplete object, in bytes from the start of the stream;
    /// the stream's end if only a section is not closed.
    pub offset: u64,
}

/// Kind of damage in a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The bytes between two objects are not white space.
    #[error("text outside an object")]
    Junk,
    /// An object does not start with `@TYPE { url`.
    #[error("bad template header, not `@TYPE {{ url`")]
    TemplateHeader,
    /// A URL is missing, starts with `@` or `}`, or holds white space, control characters or bytes
    /// that are not UTF-8.
    #[error("bad url, white space must be percent-encoded")]
    Url,
    /// A URL is longer than [`url_bytes_max`](crate::Limits::url_bytes_max).
    #[error("url longer than the limit")]
    UrlTooLong,
    /// An attribute's name is missing or holds white space, braces or bytes that are not UTF-8.
    #[error("bad attribute name")]
    Name,
    /// A name is longer than [`name_bytes_max`](crate::Limits::name_bytes_max).
    #[error("attribute name longer than the limit")]
    NameTooLong,
    /// A byte count is missing or is not a number.
    #[error("bad byte count, not `name{{size}}:`")]
    ByteCount,
    /// Name and value are not separated by a colon and a TAB.
    #[error("no colon and tab before the value")]
    Separator,
    /// A byte count is above [`value_bytes_max`](crate::Limits::value_bytes_max).
    #[error("value longer than the limit")]
    ValueTooLong,
    /// A value is not followed by a line feed.
    #[error("value does not end where its byte count says")]
    ValueEnd,
    /// A record has more than [`attributes_max`](crate::Limits::attributes_max) attributes.
    #[error("more attributes than the limit")]
    TooManyAttributes,
    /// A record is longer than [`record_bytes_max`](crate::Limits::record_bytes_max).
    #[error("record longer than the limit")]
    RecordTooLong,
    /// An object starts before the previous one is closed.
    #[error("object not closed before the next one")]
    Unclosed,
    /// A closing brace stands outside any object or section.
    #[error("closing brace outside an object")]
    StrayBrace,
    /// A section starts inside a section.
    #[error("section inside a section")]
    NestedSection,
    /// The stream ends inside an object or a section.
    #[error("stream ends inside an object")]
    Truncated,
}

/// JSON that is not a record in the form of [`json`](crate::json).
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum JsonError {
    /// A member of the object is missing or of another type.
    #[error("\"{member}\" is missing or is not {expected}")]
    Member {
        /// The member's name.
        member: &'static str,
        /// The type that the member must have.
        expected: &'static str,
    },
    /// An attribute is not `[name, value]`.
    #[error("attribute {index} is not [name, value] with a string or {{\"base64\": …}} as value")]
    Attribute {
        /// Index of the attribute, from 0.
        index: usize,
    },
    /// A value's base64 is broken.
    #[error("attribute {index} is not base64")]
    Base64 {
        /// Index of the attribute, from 0.
        index: usize,
    },
}
