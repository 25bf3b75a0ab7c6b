//! Levels: a stream as a tree of chunks under one *root* chunk. The stream is cut into chunks by
//! its content; the list of these chunks is cut in the same way, and so on, until one chunk holds
//! the last list.
//!
//! A chunk of the stream is a *leaf*, a chunk of a list a *node*. Two streams that differ in one
//! place differ in one or two leaves, and in one or two nodes of each list. A list is cut after
//! records with certain hashes.
//!
//! docs/replication.md has the bytes.
//!
//! Source: ours; Merkle, "A Digital Signature Based on a Conventional Encryption Function" (1987),
//! for the tree; Muthitacharoen et al., "A Low-bandwidth Network File System" (SOSP 2001), for the
//! cuts.
//!
//! Sans-I/O.

#[cfg(test)]
mod tests;

use std::collections::VecDeque;

use super::chunk::{Chunker, MANIFEST};
use crate::version::{Hash, Kind};

/// Maximum length of a leaf, in bytes.
pub const LEAF_BYTES_MAX: usize = MANIFEST.max;
/// Maximum number of records in a node, or in the root.
pub const NODE_RECORDS_MAX: usize = 1024;
/// Maximum length of a node or root, in bytes: below the 64 KiB that any chunk may have.
pub const NODE_BYTES_MAX: usize = HEAD_BYTES + NODE_RECORDS_MAX * RECORD_BYTES;
/// Maximum number of levels of lists, with the list in the root.
pub const LEVELS_MAX: u8 = 8;
/// Maximum length of a stream, in bytes.
pub const STREAM_BYTES_MAX: u64 = 64 << 30;
/// Maximum number of chunks that a [`Walk`] wants at once, in the order of the stream.
pub const LOOK_AHEAD_CHUNKS: usize = 256;

/// Maximum number of nodes among the wanted chunks, because each leads to up to
/// [`NODE_RECORDS_MAX`] more.
const LOOK_AHEAD_NODES: usize = 16;
/// A list of at most this many records is not cut: the root holds it.
const ROOT_RECORDS_MAX: usize = 256;
/// Maximum length of a stream that is stored in the root itself, in bytes.
const INLINE_BYTES_MAX: usize = MANIFEST.average;
const NODE_RECORDS_MIN: usize = 32;
/// One record in this number ends a node, on average.
const NODE_RECORDS_MEAN: u32 = 128;
/// Bytes of a record: hash, length of the chunk, length of the stream in or below it.
const RECORD_BYTES: usize = 32 + 4 + 8;
/// Bytes of the head of the root: format, kind, level, length of the stream.
const HEAD_BYTES: usize = 1 + 1 + 1 + 8;
const FORMAT: u8 = 1;

/// A record of a list, which names a chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Record {
    hash: Hash,
    bytes: u32,
    /// Number of bytes of the stream in or below the chunk.
    stream_bytes: u64,
}

impl Record {
    fn ends_node(&self) -> bool {
        u32::from_le_bytes(self.hash.first()).is_multiple_of(NODE_RECORDS_MEAN)
    }

    fn put(&self, out: &mut Vec<u8>) {
        out.extend(self.hash.0);
        out.extend(self.bytes.to_le_bytes());
        out.extend(self.stream_bytes.to_le_bytes());
    }

    fn parse(bytes: &[u8; RECORD_BYTES]) -> Option<Self> {
        let (hash, rest) = bytes.split_first_chunk()?;
        let (bytes, rest) = rest.split_first_chunk()?;
        let stream_bytes = u64::from_le_bytes(*rest.first_chunk()?);
        Some(Self { hash: Hash(*hash), bytes: u32::from_le_bytes(*bytes), stream_bytes })
    }
}

/// A chunk that a [`Builder`] made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Piece {
    /// The hash of its bytes.
    pub hash: Hash,
    /// Whether the chunk is a leaf. Leaves come in the order of the stream, and together they are
    /// the stream.
    pub is_leaf: bool,
    /// Its bytes.
    pub bytes: Vec<u8>,
}

impl Piece {
    fn new(bytes: Vec<u8>, is_leaf: bool) -> Self {
        Self { hash: Hash::of(&bytes), is_leaf, bytes }
    }
}

/// A stream is longer than [`STREAM_BYTES_MAX`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a manifest of {0} bytes is too long: replicate fewer files, or in several trees")]
pub struct TooLong(pub u64);

/// An unfinished list.
#[derive(Debug, Default)]
struct List {
    records: Vec<Record>,
    /// Whether the list was too long for the root, and has been cut into nodes.
    is_cut: bool,
}

/// Cuts a stream. Holds at most one leaf, and one node of each level.
#[derive(Debug)]
pub struct Builder {
    kind: Kind,
    chunker: Chunker,
    /// The whole stream so far, while it fits into the root.
    start: Option<Vec<u8>>,
    lists: Vec<List>,
    pieces: VecDeque<Piece>,
    stream_bytes: u64,
}

impl Builder {
    /// Begins the stream of a manifest of this kind.
    pub fn new(kind: Kind) -> Self {
        Self {
            kind,
            chunker: Chunker::new(MANIFEST),
            start: Some(Vec::new()),
            lists: Vec::new(),
            pieces: VecDeque::new(),
            stream_bytes: 0,
        }
    }

    /// Adds bytes of the stream, in order. Take all chunks from [`Builder::next_piece`] before the
    /// next call.
    pub fn feed(&mut self, bytes: &[u8]) {
        self.stream_bytes += bytes.len() as u64;
        match &mut self.start {
            Some(start) if start.len() + bytes.len() <= INLINE_BYTES_MAX => {
                start.extend_from_slice(bytes);
                return;
            }
            Some(start) => {
                self.chunker.feed(start);
                self.start = None;
            }
            None => {}
        }
        self.chunker.feed(bytes);
        while let Some(leaf) = self.chunker.next_chunk().map(<[u8]>::to_vec) {
            self.leaf(leaf);
        }
    }

    /// Returns the next finished chunk; `None` if more bytes must be fed first.
    pub fn next_piece(&mut self) -> Option<Piece> {
        self.pieces.pop_front()
    }

    /// Ends the stream: returns the root's hash and the remaining chunks, the root last.
    ///
    /// # Errors
    ///
    /// The stream is too long: other members would refuse it.
    pub fn finish(mut self) -> Result<(Hash, Vec<Piece>), TooLong> {
        if STREAM_BYTES_MAX < self.stream_bytes {
            return Err(TooLong(self.stream_bytes));
        }
        while let Some(leaf) = self.chunker.finish().map(<[u8]>::to_vec) {
            self.leaf(leaf);
        }
        let mut level = 0;
        // Cutting a list adds a record to the list above.
        while self.lists.get(level).is_some_and(|it| it.is_cut) {
            self.cut(level);
            level += 1;
        }
        let root = self.root(level);
        let hash = root.hash;
        self.pieces.push_back(root);
        Ok((hash, self.pieces.into()))
    }

    fn leaf(&mut self, bytes: Vec<u8>) {
        let stream_bytes = bytes.len() as u64;
        let piece = Piece::new(bytes, true);
        self.add(0, piece, stream_bytes);
    }

    fn add(&mut self, level: usize, piece: Piece, stream_bytes: u64) {
        // No chunk has more than 64 KiB.
        let bytes = u32::try_from(piece.bytes.len()).unwrap_or(u32::MAX);
        let record = Record { hash: piece.hash, bytes, stream_bytes };
        self.pieces.push_back(piece);
        if self.lists.len() == level {
            self.lists.push(List::default());
        }
        let Some(list) = self.lists.get_mut(level) else { return };
        list.records.push(record);
        if list.is_cut {
            self.cut_if_due(level);
        } else if ROOT_RECORDS_MAX < list.records.len() {
            list.is_cut = true;
            let records = std::mem::take(&mut list.records);
            for record in records {
                if let Some(list) = self.lists.get_mut(level) {
                    list.records.push(record);
                }
                self.cut_if_due(level);
            }
        }
    }

    fn cut_if_due(&mut self, level: usize) {
        let Some(list) = self.lists.get(level) else { return };
        let is_end = list.records.last().is_some_and(Record::ends_node);
        let length = list.records.len();
        if (is_end && NODE_RECORDS_MIN <= length) || length == NODE_RECORDS_MAX {
            self.cut(level);
        }
    }

    /// Makes a node from the records of a list that are not in a node yet.
    fn cut(&mut self, level: usize) {
        let Some(list) = self.lists.get_mut(level) else { return };
        let records = std::mem::take(&mut list.records);
        if records.is_empty() {
            return;
        }
        let mut bytes = Vec::with_capacity(records.len() * RECORD_BYTES);
        records.iter().for_each(|it| it.put(&mut bytes));
        let stream_bytes = records.iter().map(|it| it.stream_bytes).sum();
        self.add(level + 1, Piece::new(bytes, false), stream_bytes);
    }

    fn root(&mut self, level: usize) -> Piece {
        // The number of levels grows with the logarithm of the stream's length, so it fits.
        let levels = if self.start.is_some() { 0 } else { u8::try_from(level + 1).unwrap_or(0) };
        let mut bytes = vec![FORMAT, self.kind.number(), levels];
        bytes.extend(self.stream_bytes.to_le_bytes());
        bytes.extend(self.start.take().unwrap_or_default());
        let records = self.lists.get(level).map(|it| it.records.as_slice()).unwrap_or_default();
        records.iter().for_each(|it| it.put(&mut bytes));
        Piece::new(bytes, false)
    }
}

/// The reason why chunks do not form a stream: the signer of the root is faulty or lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum WalkError {
    /// The root is too long, or its hash is not the announced one.
    #[error("a root does not have the hash {0}")]
    Root(Hash),
    /// The root has another format or kind, too many levels, or lengths that do not fit.
    #[error("a root is of an unknown format, another kind or too long")]
    Form,
    /// The chunk is not a list, or its lengths differ from the record that names it.
    #[error("chunk {0} does not match the list that names it")]
    Node(Hash),
}

/// The role of a wanted chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// A chunk of the stream itself.
    Leaf,
    /// A chunk of a list.
    Node,
}

/// A wanted chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wanted {
    /// The hash of its bytes.
    pub hash: Hash,
    /// The length of the chunk; other lengths are refused.
    pub bytes: u32,
}

#[derive(Debug)]
enum Slot {
    /// A wanted chunk and its level, 0 for a leaf.
    Wanted(Record, u8),
    Leaf(Vec<u8>),
}

/// Reads a stream from its root on, in order, while chunks come in any order. Holds at most
/// [`LOOK_AHEAD_CHUNKS`] leaves, 4 MB, and the records of the nodes that lead to them.
#[derive(Debug)]
pub struct Walk {
    slots: VecDeque<Slot>,
}

impl Walk {
    /// Begins a walk with the root.
    ///
    /// # Errors
    ///
    /// The chunk is not a root of this kind, or its hash is not `hash`.
    pub fn new(kind: Kind, hash: &Hash, root: &[u8]) -> Result<Self, WalkError> {
        if NODE_BYTES_MAX < root.len() || Hash::of(root) != *hash {
            return Err(WalkError::Root(*hash));
        }
        Self::parse(kind, root).ok_or(WalkError::Form)
    }

    fn parse(kind: Kind, root: &[u8]) -> Option<Self> {
        let (&[format, of, level], rest) = root.split_first_chunk()?;
        let (stream_bytes, rest) = rest.split_first_chunk()?;
        let stream_bytes = u64::from_le_bytes(*stream_bytes);
        if format != FORMAT
            || of != kind.number()
            || STREAM_BYTES_MAX < stream_bytes
            || LEVELS_MAX < level
        {
            return None;
        }
        let slots = match level.checked_sub(1) {
            None if rest.len() as u64 != stream_bytes || INLINE_BYTES_MAX < rest.len() => {
                return None;
            }
            None => VecDeque::from([Slot::Leaf(rest.to_vec())]),
            Some(below) => slots(rest, below, stream_bytes)?.into(),
        };
        Some(Self { slots })
    }

    /// Returns the chunks to get now, at most [`LOOK_AHEAD_CHUNKS`], the first needed first. The
    /// same chunk may be named twice.
    pub fn wanted(&self) -> impl Iterator<Item = Wanted> {
        self.window().map(|(_, it, _)| Wanted { hash: it.hash, bytes: it.bytes })
    }

    fn window(&self) -> impl Iterator<Item = (usize, Record, u8)> {
        let mut nodes = 0;
        let wanted = self.slots.iter().take(LOOK_AHEAD_CHUNKS).enumerate();
        let wanted = wanted.filter_map(|(at, slot)| match slot {
            Slot::Wanted(record, level) => Some((at, *record, *level)),
            Slot::Leaf(_) => None,
        });
        wanted.take_while(move |(_, _, level)| {
            nodes += usize::from(*level != 0);
            nodes <= LOOK_AHEAD_NODES
        })
    }

    /// Takes a chunk at the first position that wants it. Returns its role, or `None` if it is not
    /// wanted. The caller has checked its hash.
    ///
    /// # Errors
    ///
    /// The chunk does not match its record: the stream will never be whole.
    pub fn take(&mut self, hash: &Hash, bytes: &[u8]) -> Result<Option<Role>, WalkError> {
        let found = self.window().find(|(_, it, _)| it.hash == *hash);
        let Some((at, record, level)) = found else { return Ok(None) };
        let refused = WalkError::Node(*hash);
        if bytes.len() as u64 != u64::from(record.bytes) {
            return Err(refused);
        }
        let filled = match level.checked_sub(1) {
            None => vec![Slot::Leaf(bytes.to_vec())],
            Some(below) => slots(bytes, below, record.stream_bytes).ok_or(refused)?,
        };
        let mut rest = self.slots.split_off(at);
        rest.pop_front();
        self.slots.extend(filled);
        self.slots.append(&mut rest);
        Ok(Some(if level == 0 { Role::Leaf } else { Role::Node }))
    }

    /// Returns the next bytes of the stream; `None` if the next chunk has not come yet, and at the
    /// end.
    pub fn next_bytes(&mut self) -> Option<Vec<u8>> {
        match self.slots.pop_front()? {
            Slot::Leaf(bytes) => Some(bytes),
            wanted @ Slot::Wanted(..) => {
                self.slots.push_front(wanted);
                None
            }
        }
    }

    /// Returns whether the whole stream has been returned.
    pub fn is_done(&self) -> bool {
        self.slots.is_empty()
    }
}

/// Reads a list of chunks of this level, which together have `stream_bytes` bytes of the stream;
/// `None` if the list is invalid.
fn slots(list: &[u8], level: u8, stream_bytes: u64) -> Option<Vec<Slot>> {
    let (records, rest) = list.as_chunks();
    if !rest.is_empty() || records.is_empty() || NODE_RECORDS_MAX < records.len() {
        return None;
    }
    let mut sum = 0_u64;
    let mut slots = Vec::with_capacity(records.len());
    for record in records {
        let record = Record::parse(record)?;
        let bytes = u64::from(record.bytes);
        let fits = match level {
            0 => bytes == record.stream_bytes && bytes <= LEAF_BYTES_MAX as u64,
            _ => bytes <= NODE_BYTES_MAX as u64,
        };
        if !fits || bytes == 0 || record.stream_bytes == 0 {
            return None;
        }
        sum = sum.checked_add(record.stream_bytes)?;
        slots.push(Slot::Wanted(record, level));
    }
    (sum == stream_bytes).then_some(slots)
}
