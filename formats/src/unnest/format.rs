//! What a container is, to the byte: a type such as `Archive` covers many.
//!
//! Sans-I/O.

use super::mail::may_have_attachments;
use super::stream::Packing;
use crate::object::Object;
use crate::{Language, Type};

/// How far into a text its container is looked for, in bytes.
const LOOK_BYTES: usize = 64 * 1024;

/// What shell archives of every make say of themselves, in their first bytes.
const SHAR_MARK: &[u8] = b"# This is a shell archive";
/// How many of those are looked at.
const SHAR_BYTES: usize = 1024;

/// What a container is, and so how it is opened.
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
    /// Known by this name, and not opened.
    Closed(&'static str),
}

impl Format {
    /// Every one of them, with one kind of stream.
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
        Self::Closed("RAR"),
    ];

    /// Returns what `object` is to be opened as, which was recognized as `type`; `None` when it is no
    /// container. Office documents and books are none: they are summarized as a whole.
    pub fn of(object: &Object, r#type: Type) -> Option<Self> {
        let head = object.bytes.get(..object.bytes.len().min(LOOK_BYTES)).unwrap_or_default();
        Self::of_head(head, r#type)
    }

    /// The same by the front of the content.
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
            Type::MacCompressed => is_binhex(head).then_some(Self::BinHex),
            Type::ShellArchive => Some(Self::Shar),
            // Its first line is that of any script.
            Type::Source(Language::Shell) => {
                let front = head.get(..head.len().min(SHAR_BYTES)).unwrap_or_default();
                memchr::memmem::find(front, SHAR_MARK).map(|_| Self::Shar)
            }
            Type::Uuencoded => Some(Self::Uuencoded),
            Type::Mail | Type::Mailbox if head.starts_with(b"From ") => Some(Self::Mailbox),
            Type::Mail | Type::News => may_have_attachments(head).then_some(Self::Message),
            _ => None,
        }
    }

    /// Whether the summarizer for its type says what there is to say of the container itself; else it
    /// is the list of its members.
    pub fn is_summarized(self) -> bool {
        matches!(self, Self::Message | Self::Mailbox)
    }
}

/// Whether an object of this type is opened wherever it can be, so that no summarizer sees it.
pub fn is_opened(r#type: Type) -> bool {
    matches!(
        r#type,
        Type::Gzip
            | Type::Compressed
            | Type::GzipTar
            | Type::CompressedTar
            | Type::Crate
            | Type::SourceDistribution
            | Type::Tar
            | Type::Zip
            | Type::Archive
            | Type::Deb
            | Type::Rpm
            | Type::Wheel
            | Type::Jar
            | Type::MacCompressed
            | Type::ShellArchive
            | Type::Uuencoded
    )
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
