//! Wire forms of messages, byte by byte.
//!
//! Sans-I/O.

use super::{
    Announcement, CHUNK_BYTES_MAX, CHUNKS_MAX, GROUP_BYTES_MAX, Message, NAMESPACES_MAX, Request,
    Route, VersionSummary,
};
use crate::id::{GroupId, MemberId};
use crate::version::{Hash, Name, Namespace, Number, VERSION_BYTES_MAX};

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
    /// How many bytes there are.
    pub bytes: usize,
    /// The first byte; 0 if there is none.
    pub kind: u8,
    /// Position of the error.
    pub at: usize,
}

pub(super) fn write(message: &Message) -> Vec<u8> {
    let mut to = Vec::new();
    match message {
        Message::Group { group, bytes } => {
            head(&mut to, GROUP, *group);
            to.extend(&bytes[..bytes.len().min(GROUP_BYTES_MAX)]);
        }
        Message::Announce(Announcement { group, route, version }) => {
            head(&mut to, ANNOUNCE, *group);
            to.push(route.distance);
            to.extend(route.entry.0.to_be_bytes());
            to.extend(version);
        }
        Message::Evidence { group, first, second } => {
            head(&mut to, EVIDENCE, *group);
            // Versions have at most VERSION_BYTES_MAX.
            to.push(u8::try_from(first.len()).unwrap_or_default());
            to.extend(first);
            to.extend(second);
        }
        Message::Digest { group, digest } => {
            head(&mut to, DIGEST, *group);
            to.extend(digest);
        }
        Message::Versions { group, asks, known } => {
            head(&mut to, VERSIONS, *group);
            to.push(u8::from(*asks));
            known.iter().take(NAMESPACES_MAX).for_each(|it| write_summary(&mut to, it));
        }
        Message::Held { namespace, number } => {
            to.push(HELD);
            write_namespace(&mut to, namespace);
            write_number(&mut to, *number);
        }
        Message::Request(Request { namespace, number, priority, chunks }) => {
            to.push(REQUEST);
            write_namespace(&mut to, namespace);
            write_number(&mut to, *number);
            to.push(*priority);
            write_hashes(&mut to, chunks);
        }
        Message::Cancel(chunks) => {
            to.push(CANCEL);
            write_hashes(&mut to, chunks);
        }
        Message::Chunk(bytes) => return write_chunk(bytes),
        Message::Gone(chunks) => {
            to.push(GONE);
            write_hashes(&mut to, chunks);
        }
    }
    to
}

pub(super) fn write_chunk(bytes: &[u8]) -> Vec<u8> {
    let mut to = Vec::with_capacity(1 + bytes.len());
    to.push(CHUNK);
    to.extend_from_slice(bytes);
    to
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
    let name = namespace.name.as_str();
    // Names have at most 40 bytes.
    to.push(u8::try_from(name.len()).unwrap_or_default());
    to.extend(name.as_bytes());
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

pub(super) fn read(bytes: &[u8]) -> Result<Message, MessageError> {
    let mut rest = bytes;
    let message = parse(&mut rest).filter(|_| rest.is_empty());
    message.ok_or_else(|| {
        let kind = bytes.first().copied().unwrap_or_default();
        MessageError { bytes: bytes.len(), kind, at: bytes.len() - rest.len() }
    })
}

fn parse(rest: &mut &[u8]) -> Option<Message> {
    Some(match byte(rest)? {
        GROUP => {
            Message::Group { group: read_group(rest)?, bytes: all(rest, 0..=GROUP_BYTES_MAX)? }
        }
        ANNOUNCE => Message::Announce(Announcement {
            group: read_group(rest)?,
            route: Route { distance: byte(rest)?, entry: MemberId(long(rest)?) },
            version: all(rest, 0..=VERSION_BYTES_MAX)?,
        }),
        EVIDENCE => {
            let group = read_group(rest)?;
            let length = usize::from(byte(rest)?);
            let first = (length <= VERSION_BYTES_MAX).then(|| take(rest, length))??.to_vec();
            Message::Evidence { group, first, second: all(rest, 0..=VERSION_BYTES_MAX)? }
        }
        DIGEST => Message::Digest { group: read_group(rest)?, digest: array(rest)? },
        VERSIONS => {
            let (group, asks) = (read_group(rest)?, flag(rest)?);
            let mut known = Vec::new();
            while !rest.is_empty() {
                let next = read_summary(rest)?;
                let follows = |last: &VersionSummary| last.namespace < next.namespace;
                if NAMESPACES_MAX <= known.len() || !known.last().is_none_or(follows) {
                    return None;
                }
                known.push(next);
            }
            Message::Versions { group, asks, known }
        }
        HELD => Message::Held { namespace: read_namespace(rest)?, number: read_number(rest)? },
        REQUEST => Message::Request(Request {
            namespace: read_namespace(rest)?,
            number: read_number(rest)?,
            priority: byte(rest)?,
            chunks: read_hashes(rest)?,
        }),
        CANCEL => Message::Cancel(read_hashes(rest)?),
        CHUNK => Message::Chunk(all(rest, 1..=CHUNK_BYTES_MAX)?),
        GONE => Message::Gone(read_hashes(rest)?),
        _ => return None,
    })
}

fn take<'a>(rest: &mut &'a [u8], bytes: usize) -> Option<&'a [u8]> {
    let (taken, behind) = rest.split_at_checked(bytes)?;
    *rest = behind;
    Some(taken)
}

fn array<const N: usize>(rest: &mut &[u8]) -> Option<[u8; N]> {
    let (taken, behind) = rest.split_first_chunk()?;
    *rest = behind;
    Some(*taken)
}

fn byte(rest: &mut &[u8]) -> Option<u8> {
    array::<1>(rest).map(|[it]| it)
}

fn flag(rest: &mut &[u8]) -> Option<bool> {
    match byte(rest)? {
        0 => Some(false),
        1 => Some(true),
        _ => None,
    }
}

fn long(rest: &mut &[u8]) -> Option<u64> {
    array(rest).map(u64::from_be_bytes)
}

/// Takes all the rest if its length is in `lengths`.
fn all(rest: &mut &[u8], lengths: std::ops::RangeInclusive<usize>) -> Option<Vec<u8>> {
    let length = rest.len();
    lengths.contains(&length).then(|| take(rest, length))?.map(<[u8]>::to_vec)
}

fn read_group(rest: &mut &[u8]) -> Option<GroupId> {
    long(rest).map(GroupId)
}

fn read_number(rest: &mut &[u8]) -> Option<Number> {
    Some(Number { epoch: long(rest)?, sequence: long(rest)? })
}

fn read_namespace(rest: &mut &[u8]) -> Option<Namespace> {
    let origin = MemberId(long(rest)?);
    let length = usize::from(byte(rest)?);
    let name = std::str::from_utf8(take(rest, length)?).ok()?;
    Some(Namespace { origin, name: Name::new(name).ok()? })
}

fn read_summary(rest: &mut &[u8]) -> Option<VersionSummary> {
    let (namespace, number, root) = (read_namespace(rest)?, read_number(rest)?, array(rest)?);
    let contradicted = if flag(rest)? { Some(read_number(rest)?) } else { None };
    Some(VersionSummary { namespace, number, root, contradicted })
}

/// Reads hashes up to the end, at least one.
fn read_hashes(rest: &mut &[u8]) -> Option<Vec<Hash>> {
    let (hashes, odd) = rest.as_chunks::<32>();
    if !odd.is_empty() || hashes.is_empty() || CHUNKS_MAX < hashes.len() {
        return None;
    }
    *rest = &[];
    Some(hashes.iter().copied().map(Hash).collect())
}
