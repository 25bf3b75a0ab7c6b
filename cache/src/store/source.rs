//! The source of a record's body.

use std::io;

use disk::File;

use crate::transfer::Transfer;

/// Where the body of a record comes from.
pub(super) enum Source<'a> {
    Bytes(&'a [u8]),
    /// A file, from a place on, so many bytes.
    File(&'a File, u64, u64),
    Transfer(&'a Transfer),
}

impl Source<'_> {
    pub(super) fn bytes(&self) -> u64 {
        match self {
            Self::Bytes(bytes) => bytes.len() as u64,
            Self::File(_, _, bytes) => *bytes,
            Self::Transfer(transfer) => transfer.arrived(),
        }
    }

    /// Fills `block` from a place on.
    pub(super) fn read(&self, at: u64, block: &mut [u8]) -> io::Result<()> {
        match self {
            Self::Bytes(bytes) => {
                let at = usize::try_from(at).map_err(io::Error::other)?;
                let from = bytes.get(at..at + block.len()).ok_or(io::ErrorKind::UnexpectedEof)?;
                block.copy_from_slice(from);
                Ok(())
            }
            Self::File(file, from, _) => file.read_exact_at(block, from + at),
            Self::Transfer(transfer) => transfer.read_at(at, block),
        }
    }
}
