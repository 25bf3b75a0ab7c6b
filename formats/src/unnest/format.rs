//! Container formats, told apart by content: a type such as `Archive` covers many.

use super::mail::may_have_attachments;
use super::stream::Packing;
use super::warc;
use crate::object::Object;
use crate::office::outlook;
use crate::{Language, Type};

/// Maximum number of bytes at the front of an object that are searched for its format.
const FRONT_BYTES: usize = 64 * 1024;

/// The mark of all shell archives, in their first bytes.
const SHAR_MARK: &[u8] = b"# This is a shell archive";
/// Maximum number of bytes that are searched for the mark.
const SHAR_BYTES: usize = 1024;

/// The format of a container, which decides how it is opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// One content, compressed.
    Stream(Packing),
    /// tar.
    Tar,
    /// tar inside a compressed stream.
    PackedTar(Packing),
    /// zip, and the packages that are zips.
    Zip,
    /// 7-Zip.
    SevenZip,
    /// cpio.
    Cpio,
    /// ar: a library.
    Ar,
    /// Debian package.
    Deb,
    /// RPM package.
    Rpm,
    /// Shell archive.
    Shar,
    /// uuencoded, or `begin-base64`.
    Uuencoded,
    /// BinHex 4.0.
    BinHex,
    /// A mail message with attachments.
    Message,
    /// Mail messages one after the other.
    Mailbox,
    /// An item of Outlook, which may have attachments.
    Outlook,
    /// Pages of the web, as WARC or ARC.
    Warc,
    /// A format of this name that is known but not opened.
    Closed(&'static str),
}

impl Format {
    /// All formats, with one kind of stream.
    pub const ALL: &[Self] = &[
        Self::Stream(Packing::Gzip),
        Self::Tar,
        Self::PackedTar(Packing::Gzip),
        Self::Zip,
        Self::SevenZip,
        Self::Cpio,
        Self::Ar,
        Self::Deb,
        Self::Rpm,
        Self::Shar,
        Self::Uuencoded,
        Self::BinHex,
        Self::Message,
        Self::Mailbox,
        Self::Outlook,
        Self::Warc,
        Self::Closed("RAR"),
    ];

    /// Returns the format of `object`, which was recognized as `type`; `None` if it is not a
    /// container. Office documents and books are not containers here: they are summarized as a
    /// whole.
    pub fn of(object: &Object, r#type: Type) -> Option<Self> {
        let head = object.bytes.get(..object.bytes.len().min(FRONT_BYTES)).unwrap_or_default();
        Self::of_head(head, r#type)
    }

    /// Returns the format as [`Self::of`] does, from the front of the content.
    pub fn of_head(head: &[u8], r#type: Type) -> Option<Self> {
        match r#type {
            Type::Gzip | Type::Compressed => {
                Packing::of(head).map(Self::Stream).or_else(|| by_magic(head))
            }
            Type::GzipTar | Type::CompressedTar | Type::Crate | Type::SourceDistribution => {
                Packing::of(head).map(Self::PackedTar).or_else(|| by_magic(head))
            }
            Type::Tar => Some(Self::Tar),
            Type::Zip | Type::Archive | Type::Deb | Type::Rpm | Type::Wheel | Type::Jar => {
                by_magic(head)
            }
            Type::Warc => [warc::MARK, warc::ARC_MARK]
                .into_iter()
                .any(|it| head.starts_with(it))
                .then_some(Self::Warc),
            Type::MacCompressed => is_binhex(head).then_some(Self::BinHex),
            Type::ShellArchive => Some(Self::Shar),
            // The first line is the same as in other scripts.
            Type::Source(Language::Shell) => {
                let front = head.get(..head.len().min(SHAR_BYTES)).unwrap_or_default();
                memchr::memmem::find(front, SHAR_MARK).map(|_| Self::Shar)
            }
            Type::Uuencoded => Some(Self::Uuencoded),
            Type::Mail | Type::Mailbox if head.starts_with(b"From ") => Some(Self::Mailbox),
            Type::Mail | Type::Mailbox if outlook::is_item(head) => Some(Self::Outlook),
            Type::Mail | Type::News => may_have_attachments(head).then_some(Self::Message),
            _ => None,
        }
    }

    /// Returns whether the summarizer of its type makes the container's own record; else that record is
    /// the list of members.
    pub fn is_summarized(self) -> bool {
        matches!(self, Self::Message | Self::Mailbox | Self::Outlook)
    }

    /// Returns whether members behind the front of a long object are read, too.
    pub(super) fn reads_rest(self) -> bool {
        match self {
            Self::PackedTar(packing) => packing.reads_rest(),
            Self::Tar | Self::Zip | Self::SevenZip | Self::Cpio | Self::Deb | Self::Rpm => true,
            // Not opened at all.
            Self::Closed(_) => true,
            Self::Stream(_) | Self::Ar | Self::Shar | Self::Uuencoded | Self::BinHex => false,
            Self::Message | Self::Mailbox | Self::Outlook | Self::Warc => false,
        }
    }
}

fn by_magic(head: &[u8]) -> Option<Format> {
    Some(match head {
        [b'P', b'K', 3, 4, ..] | [b'P', b'K', 5, 6, ..] => Format::Zip,
        [b'7', b'z', 0xbc, 0xaf, 0x27, 0x1c, ..] => Format::SevenZip,
        [0xed, 0xab, 0xee, 0xdb, ..] => Format::Rpm,
        [b'0', b'7', b'0', b'7', b'0', b'1' | b'2' | b'7', ..] => Format::Cpio,
        [0xc7, 0x71, ..] | [0x71, 0xc7, ..] => Format::Cpio,
        [0x1f, 0x1e, ..] => Format::Closed("pack"),
        [0x1f, 0xa0, ..] => Format::Closed("SCO's compress (LZH)"),
        [0x1f, 0x9e | 0x9f, ..] => Format::Closed("freeze"),
        [0x04, 0x22, 0x4d, 0x18, ..] => Format::Closed("LZ4"),
        [b'R', b'a', b'r', b'!', 0x1a, 7, ..] => Format::Closed("RAR"),
        head if head.starts_with(b"!<arch>\ndebian-binary") => Format::Deb,
        head if head.starts_with(b"!<arch>\n") => Format::Ar,
        head if head.get(257..262) == Some(b"ustar") => Format::Tar,
        _ => return None,
    })
}

fn is_binhex(head: &[u8]) -> bool {
    memchr::memmem::find(head, super::binhex::MARK).is_some()
}
