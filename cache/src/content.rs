//! The content of a stored object: its body, wherever it is.

use std::io;
use std::sync::Arc;

use bytes::Bytes;
use disk::File;
use net::body::{self, Body};
use xxhash_rust::xxh3::xxh3_64;

use crate::policy::range::Part;
use crate::store::Files;
use crate::store::record::BLOCK_BYTES;
use crate::transfer::Transfer;

/// A body. Clones share it.
#[derive(Clone, Debug)]
pub enum Content {
    /// In memory.
    Memory(Bytes),
    /// On disk, in blocks.
    Disk(Box<Blocks>),
    /// Whole in its transfer, until it is on disk.
    Transfer(Arc<Transfer>),
}

/// A body on disk, with the checksum of each block.
#[derive(Clone, Debug)]
pub struct Blocks {
    pub(crate) files: Files,
    /// Where it starts in its segment, in bytes.
    pub(crate) at: u64,
    pub(crate) length: u64,
    pub(crate) sums: Arc<[u64]>,
}

impl Content {
    /// Returns the length, in bytes.
    pub fn len(&self) -> u64 {
        match self {
            Self::Memory(bytes) => bytes.len() as u64,
            Self::Disk(blocks) => blocks.length,
            Self::Transfer(transfer) => transfer.arrived(),
        }
    }

    /// Returns the body, if it is in memory.
    pub fn in_memory(&self) -> Option<Bytes> {
        match self {
            Self::Memory(bytes) => Some(bytes.clone()),
            Self::Disk(_) | Self::Transfer(_) => None,
        }
    }

    /// Returns whether there is not a byte.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the bytes that it takes in memory.
    pub fn weight(&self) -> usize {
        match self {
            Self::Memory(bytes) => bytes.len(),
            Self::Disk(blocks) => blocks.sums.len() * size_of::<u64>(),
            Self::Transfer(_) => crate::transfer::MEMORY_BYTES_MAX,
        }
    }

    /// Returns a part of it, as the body of an answer.
    pub fn part(&self, part: Part) -> Body {
        let Part { start, end } = part;
        match self {
            Self::Memory(bytes) => {
                let at = |it| usize::try_from(it).unwrap_or(usize::MAX).min(bytes.len());
                body::full(bytes.slice(at(start)..at(end)))
            }
            Self::Disk(blocks) => {
                let (blocks, mut next) = (blocks.clone(), start);
                // It stays as it is while it is sent, even if its segment makes room.
                let file = blocks.files.file();
                let read = move || {
                    let gone = || io::Error::other("a stored body has made room");
                    let bytes = blocks.read(file.as_deref().ok_or_else(gone)?, next, end)?;
                    next += bytes.len() as u64;
                    Ok((!bytes.is_empty()).then_some(bytes))
                };
                body::pieces(read, end - start)
            }
            Self::Transfer(transfer) => body::boxed(transfer.read().part(start, end)),
        }
    }
}

impl Blocks {
    /// Returns whether its segment is still there.
    pub(crate) fn is_there(&self) -> bool {
        self.files.file().is_some()
    }

    /// Returns the bytes from a place on, up to the end of their block. Blocks.
    fn read(&self, file: &File, at: u64, end: u64) -> io::Result<Bytes> {
        if end <= at {
            return Ok(Bytes::new());
        }
        let (index, size) = (at / BLOCK_BYTES as u64, BLOCK_BYTES as u64);
        let first = index * size;
        let count = usize::try_from((self.length - first).min(size)).map_err(io::Error::other)?;
        let mut block = vec![0; count];
        file.read_exact_at(&mut block, self.at + first)?;
        let sum = usize::try_from(index).ok().and_then(|it| self.sums.get(it).copied());
        if sum != Some(xxh3_64(&block)) {
            return Err(io::Error::other("a stored body is damaged"));
        }
        let place = |it: u64| usize::try_from(it - first).unwrap_or(usize::MAX).min(count);
        Ok(Bytes::from(block).slice(place(at)..place(end)))
    }
}
