//! Wire forms of messages, byte by byte.
//!
//! Sans-I/O.

use super::{
    Announcement, CHUNK_BYTES_MAX, CHUNKS_MAX, GROUP_BYTES_MAX, Message, NAMESPACES_MAX, Request,
    Route, VersionSummary,
};
use crate::id::{GroupId, MemberId};
use crate::version::{Hash, Namespace, Number, VERSION_BYTES_MAX};
use crate::wire::{Reader, put_text};

const GROUP: u8 = 1;
const ANNOUNCE: u8 = 2;
const EVIDENCE: u8 = 3;
const DIGEST: u8 = 4;
const VERSIONS: u8 = 5;
const HELD: u8 = 6;
const REQUEST: u8 = 7;
const CANCEL: u8 = 8;
const CHUNK: u8 = 9;
const GONE: u8 = 10;

/// Bytes that are not a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{bytes} bytes of kind {kind} are no message: they are wrong at byte {at}")]
pub struct MessageError {
    /// Number of bytes.
    pub bytes: usize,
    /// The first byte; 0 if there is none.
    pub kind: u8,
    /// Position of the error.
    pub at: usize,
}

impl Message {
    /// Writes the message; lists that are too long are cut.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut to = Vec::new();
        match self {
            Self::Group { group, bytes } => {
                head(&mut to, GROUP, *group);
                to.extend(&bytes[..bytes.len().min(GROUP_BYTES_MAX)]);
            }
            Self::Announce(Announcement { group, route, version }) => {
                head(&mut to, ANNOUNCE, *group);
                to.push(route.distance);
                to.extend(route.entry.0.to_be_bytes());
                to.extend(version);
            }
            Self::Evidence { group, first, second } => {
                head(&mut to, EVIDENCE, *group);
                // A version has at most VERSION_BYTES_MAX bytes.
                to.push(u8::try_from(first.len()).unwrap_or_default());
                to.extend(first);
                to.extend(second);
            }
            Self::Digest { group, digest } => {
                head(&mut to, DIGEST, *group);
                to.extend(digest);
            }
            Self::Versions { group, asks, known } => {
                head(&mut to, VERSIONS, *group);
                to.push(u8::from(*asks));
                known.iter().take(NAMESPACES_MAX).for_each(|it| write_summary(&mut to, it));
            }
            Self::Held { namespace, number } => {
                to.push(HELD);
                write_namespace(&mut to, namespace);
                write_number(&mut to, *number);
            }
            Self::Request(Request { namespace, number, priority, chunks }) => {
                to.push(REQUEST);
                write_namespace(&mut to, namespace);
                write_number(&mut to, *number);
                to.push(*priority);
                write_hashes(&mut to, chunks);
            }
            Self::Cancel(chunks) => {
                to.push(CANCEL);
                write_hashes(&mut to, chunks);
            }
            Self::Chunk(bytes) => return Self::chunk(bytes),
            Self::Gone(chunks) => {
                to.push(GONE);
                write_hashes(&mut to, chunks);
            }
        }
        to
    }

    /// Writes the [`Message::Chunk`] of these bytes, with one copy of them.
    pub fn chunk(bytes: &[u8]) -> Vec<u8> {
        let mut to = Vec::with_capacity(1 + bytes.len());
        to.push(CHUNK);
        to.extend_from_slice(bytes);
        to
    }

    /// Reads exactly the bytes that [`Message::to_bytes`] writes.
    ///
    /// # Errors
    ///
    /// The bytes are not a message: close the link, and report the sender.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, MessageError> {
        let mut from = Reader(bytes);
        let message = parse(&mut from).filter(|_| from.0.is_empty());
        message.ok_or_else(|| {
            let kind = bytes.first().copied().unwrap_or_default();
            MessageError { bytes: bytes.len(), kind, at: bytes.len() - from.0.len() }
        })
    }
}

fn head(to: &mut Vec<u8>, kind: u8, group: GroupId) {
    to.push(kind);
    to.extend(group.0.to_be_bytes());
}

fn write_number(to: &mut Vec<u8>, number: Number) {
    to.extend(number.epoch.to_be_bytes());
    to.extend(number.sequence.to_be_bytes());
}

fn write_namespace(to: &mut Vec<u8>, namespace: &Namespace) {
    to.extend(namespace.origin.0.to_be_bytes());
    put_text(to, namespace.name.as_str());
}

fn write_summary(to: &mut Vec<u8>, known: &VersionSummary) {
    write_namespace(to, &known.namespace);
    write_number(to, known.number);
    to.extend(known.root);
    to.push(u8::from(known.contradicted.is_some()));
    if let Some(number) = known.contradicted {
        write_number(to, number);
    }
}

fn write_hashes(to: &mut Vec<u8>, hashes: &[Hash]) {
    to.extend(hashes.iter().take(CHUNKS_MAX).flat_map(|it| it.0));
}

fn parse(from: &mut Reader<'_>) -> Option<Message> {
    Some(match from.u8()? {
        GROUP => Message::Group { group: group(from)?, bytes: from.rest(0..=GROUP_BYTES_MAX)? },
        ANNOUNCE => Message::Announce(Announcement {
            group: group(from)?,
            route: Route { distance: from.u8()?, entry: MemberId(from.u64()?) },
            version: from.rest(0..=VERSION_BYTES_MAX)?,
        }),
        EVIDENCE => {
            let group = group(from)?;
            let length = usize::from(from.u8()?);
            let first = (length <= VERSION_BYTES_MAX).then(|| from.bytes(length))??.to_vec();
            Message::Evidence { group, first, second: from.rest(0..=VERSION_BYTES_MAX)? }
        }
        DIGEST => Message::Digest { group: group(from)?, digest: from.array()? },
        VERSIONS => {
            let (group, asks) = (group(from)?, from.flag()?);
            let mut known = Vec::new();
            while !from.0.is_empty() {
                let next = summary(from)?;
                let follows = |last: &VersionSummary| last.namespace < next.namespace;
                if NAMESPACES_MAX <= known.len() || !known.last().is_none_or(follows) {
                    return None;
                }
                known.push(next);
            }
            Message::Versions { group, asks, known }
        }
        HELD => Message::Held { namespace: namespace(from)?, number: from.number()? },
        REQUEST => Message::Request(Request {
            namespace: namespace(from)?,
            number: from.number()?,
            priority: from.u8()?,
            chunks: hashes(from)?,
        }),
        CANCEL => Message::Cancel(hashes(from)?),
        CHUNK => Message::Chunk(from.rest(1..=CHUNK_BYTES_MAX)?),
        GONE => Message::Gone(hashes(from)?),
        _ => return None,
    })
}

fn group(from: &mut Reader<'_>) -> Option<GroupId> {
    from.u64().map(GroupId)
}

fn namespace(from: &mut Reader<'_>) -> Option<Namespace> {
    Some(Namespace { origin: MemberId(from.u64()?), name: from.name()? })
}

fn summary(from: &mut Reader<'_>) -> Option<VersionSummary> {
    let (namespace, number, root) = (namespace(from)?, from.number()?, from.array()?);
    let contradicted = from.option(Reader::number)?;
    Some(VersionSummary { namespace, number, root, contradicted })
}

/// Reads hashes up to the end, at least one.
fn hashes(from: &mut Reader<'_>) -> Option<Vec<Hash>> {
    let (hashes, odd) = from.0.as_chunks::<32>();
    if !odd.is_empty() || hashes.is_empty() || CHUNKS_MAX < hashes.len() {
        return None;
    }
    from.0 = &[];
    Some(hashes.iter().copied().map(Hash).collect())
}
