//! The spool: the chunks of a file while the file is read. They are used only if the file did not
//! change meanwhile.

use std::os::unix::fs::FileExt as _;

use super::super::chunk::Extent;
use super::super::error::Error;
use super::super::manifest::{EXTENT_BYTES, first_extent};
use super::super::output::Output;
use crate::version::Hash;

/// Maximum number of chunks held in memory: those of a file of about a gigabyte.
const HELD_MAX: usize = 1 << 16;

/// Chunks in order, the first in memory and the others on disk.
#[derive(Debug)]
pub(super) struct Spool {
    held: Vec<Extent>,
    rest: Output,
    hasher: blake3::Hasher,
    next: usize,
    /// Position of the next chunk on disk.
    next_at: u64,
}

impl Spool {
    pub(super) fn new(rest: Output) -> Self {
        let hasher = blake3::Hasher::new();
        Self { held: Vec::new(), rest, hasher, next: 0, next_at: 0 }
    }

    pub(super) fn clear(&mut self) {
        self.held.clear();
        self.rest.rewind();
        self.hasher.reset();
        (self.next, self.next_at) = (0, 0);
    }

    pub(super) fn push(&mut self, chunk: &[u8]) -> Result<(), Error> {
        // No chunk has more than 64 KiB.
        let bytes = u32::try_from(chunk.len()).unwrap_or(u32::MAX);
        let extent = Extent { hash: Hash::of(chunk), bytes };
        self.hasher.update(&extent.hash.0);
        if self.held.len() < HELD_MAX {
            self.held.push(extent);
            return Ok(());
        }
        let written = self.rest.write(&extent.bytes.to_le_bytes());
        written.and_then(|()| self.rest.write(&extent.hash.0)).map_err(Error::io(self.rest.path()))
    }

    pub(super) fn digest(&self) -> Hash {
        Hash(*self.hasher.finalize().as_bytes())
    }

    /// Flushes the chunks on disk, so that all can be read.
    pub(super) fn finish(&mut self) -> Result<(), Error> {
        self.rest.flush().map_err(Error::io(self.rest.path()))
    }

    pub(super) fn next_extent(&mut self) -> Result<Option<Extent>, Error> {
        if let Some(extent) = self.held.get(self.next) {
            self.next += 1;
            return Ok(Some(*extent));
        }
        if self.next_at == self.rest.position() {
            return Ok(None);
        }
        let mut bytes = [0; EXTENT_BYTES];
        let read = self.rest.file().read_exact_at(&mut bytes, self.next_at);
        read.map_err(Error::io(self.rest.path()))?;
        self.next_at += EXTENT_BYTES as u64;
        Ok(first_extent(&bytes))
    }
}
