//! Compression of the members of a commit or a compaction.
//!
//! A member's header contains serials, which are known only under the writer's lock. This module
//! makes the rest of the member before the lock is taken.
//!
//! Source: RFC 1951, RFC 1952 §2.3.1 (the trailer).

use std::thread;

use flate2::{Compress, Compression, Crc, FlushCompress, Status};
use xxhash_rust::xxh3::xxh3_64;

use super::content::Draft;

/// Fewer drafts than this are packed by the calling thread alone.
const PARALLEL_MIN: usize = 4;
/// Maximum number of threads that pack one commit.
const THREADS_MAX: usize = 4;

/// A member without its header, which is known only under the writer's lock.
#[derive(Clone, Debug)]
pub(crate) struct Packed {
    /// Compressed bytes and trailer.
    pub(crate) bytes: Vec<u8>,
    pub(crate) deflate_bytes: u32,
    /// Checksum of all of `bytes`.
    pub(crate) checksum: u64,
    /// Number of changes (or notes).
    pub(crate) count: usize,
    /// Whether it holds notes.
    pub(crate) local: bool,
}

#[derive(Debug)]
pub(crate) struct Packer(Compress);

impl Packer {
    /// Makes a packer of `level` 1 (fast) to 9 (small).
    pub(crate) fn new(level: u32) -> Self {
        Self(Compress::new(Compression::new(level), false))
    }

    pub(crate) fn pack(&mut self, draft: &Draft) -> Packed {
        self.0.reset();
        let plain = draft.plain.as_slice();
        let mut bytes = Vec::with_capacity(plain.len() / 2 + 64);
        loop {
            let done = usize::try_from(self.0.total_in()).unwrap_or(usize::MAX);
            let rest = plain.get(done..).unwrap_or_default();
            // The only possible error is a misuse of the stream's state, which `reset` prevents.
            match self.0.compress_vec(rest, &mut bytes, FlushCompress::Finish) {
                Ok(Status::StreamEnd) | Err(_) => break,
                Ok(Status::Ok | Status::BufError) => bytes.reserve(plain.len() / 4 + 256),
            }
        }
        let deflate_bytes = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
        let mut crc = Crc::new();
        crc.update(plain);
        bytes.extend_from_slice(&crc.sum().to_le_bytes());
        bytes.extend_from_slice(&crc.amount().to_le_bytes());
        bytes.shrink_to_fit();
        let checksum = xxh3_64(&bytes);
        Packed { bytes, deflate_bytes, checksum, count: draft.len(), local: draft.local }
    }
}

/// Compresses drafts, on several threads if there are many; returns the results in the order of the
/// drafts.
pub(crate) fn pack(drafts: &[Draft], level: u32) -> Vec<Packed> {
    let one = |drafts: &[Draft]| -> Vec<Packed> {
        let mut packer = Packer::new(level);
        drafts.iter().map(|it| packer.pack(it)).collect()
    };
    let threads = thread::available_parallelism().map_or(1, usize::from).min(THREADS_MAX);
    if drafts.len() < PARALLEL_MIN || threads == 1 {
        return one(drafts);
    }
    thread::scope(|scope| {
        let chunks = drafts.chunks(drafts.len().div_ceil(threads));
        let running: Vec<_> = chunks.map(|it| scope.spawn(move || one(it))).collect();
        let mut packed = Vec::with_capacity(drafts.len());
        for thread in running {
            match thread.join() {
                Ok(part) => packed.extend(part),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
        packed
    })
}
