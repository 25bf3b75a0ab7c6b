//! What a source may not do to a collection: swell without end, or take most of what it brought
//! away without an administrator's word.
//!
//! A source that answers with another collection than before (a wrong address, a disk that was
//! wiped, a neighbor's gatherer under the same name) begins a snapshot under a new generation. What
//! that names is taken; but before it releases what it does not name, the loss is looked at: more
//! than [`LOSS_SHARE_MAX`] and [`LOSS_OBJECTS_MIN`] wait for a confirmation. Every later pull asks
//! again, from the snapshot's end on, and goes on by itself once the source is what it was.

use net::clock;

use crate::change::{Batch, Note, Stamp};
use crate::collection::Collection;
use crate::error::Error;
use crate::holders::HOLDERS;
use crate::member::{get, put};

/// Largest share of what a source holds that a snapshot releases without being told to.
pub const LOSS_SHARE_MAX: f64 = 0.3;

/// So many objects are released without being told to, whatever their share.
pub const LOSS_OBJECTS_MIN: u64 = 100;

/// A stream unpacks to at most so many times its bytes: ten times what summaries do.
pub const RATIO_MAX: u64 = 200;

/// So many plain bytes are taken before that is looked at (64 MiB).
pub const RATIO_FREE_BYTES: u64 = 64 << 20;

/// Returns the key of the note that says how many objects a source held.
fn held_key(source: &str) -> Vec<u8> {
    [b"held-before/", source.as_bytes()].concat()
}

/// How much a pull has unpacked, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Swell {
    packed: u64,
    plain: u64,
}

impl Swell {
    /// Counts a member, and returns whether that is still a stream of summaries.
    pub(crate) fn add(&mut self, packed: u64, plain: usize) -> bool {
        self.packed = self.packed.saturating_add(packed);
        self.plain = self.plain.saturating_add(u64::try_from(plain).unwrap_or(u64::MAX));
        self.plain <= RATIO_FREE_BYTES.max(self.packed.saturating_mul(RATIO_MAX))
    }
}

/// Whether a source that would release `lost` of `held` objects has to wait for a confirmation.
pub(crate) fn is_loss(lost: u64, held: u64) -> bool {
    LOSS_OBJECTS_MIN < lost && LOSS_SHARE_MAX * (held as f64) < lost as f64
}

impl Collection {
    /// Returns how many objects `source` holds.
    pub(crate) fn held_by(&self, source: &str) -> Result<u64, Error> {
        let sources = self.inner.read_keys(|keys| keys.sources())?;
        Ok(sources.into_iter().find(|(name, _)| name == source).map_or(0, |(_, count)| count))
    }

    /// Writes down how many objects `source` holds as a snapshot begins: what that brings is no part
    /// of what can be lost, however often it is broken off.
    pub(crate) fn remember_held(
        &self,
        source: &str,
        generation: u64,
        held: u64,
    ) -> Result<(), Error> {
        let mut value = Vec::new();
        put(&mut value, generation);
        put(&mut value, held);
        let note = Note { key: held_key(source), value: Some(value) };
        let batch = Batch { changes: Vec::new(), notes: vec![note] };
        self.commit(batch, Stamp(clock::now_ms())).map(drop)
    }

    /// Returns how many objects `source` held as the snapshot of this generation began; `None` if
    /// that is not known.
    pub(crate) fn held_before(&self, source: &str, generation: u64) -> Result<Option<u64>, Error> {
        let value = self.note(&held_key(source))?.unwrap_or_default();
        let rest = &mut &value[..];
        Ok(get(rest).filter(|it| *it == generation).and_then(|_| get(rest)))
    }

    /// Returns how many objects `source` holds under another generation than this one.
    pub(crate) fn unnamed_by(&self, source: &str, generation: u64) -> Result<u64, Error> {
        let (mut count, mut from) = (0, Some(vec![HOLDERS]));
        while let Some(begin) = from.take() {
            let part = self.inner.held(source, Some(generation), &begin)?;
            count += part.oids.len() as u64;
            from = part.next;
        }
        Ok(count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn much_of_much_is_a_loss() {
        for (lost, held, expected) in
            [(100, 100, false), (101, 101, true), (101, 336, true), (101, 337, false)]
        {
            assert_eq!(is_loss(lost, held), expected, "{lost} of {held}");
        }
    }

    #[test]
    fn a_stream_swells_as_summaries_do_and_no_more() {
        let mut swell = Swell::default();
        assert!(swell.add(1, 64 << 20), "the first bytes are free");
        assert!(!swell.add(0, 1));
        let mut swell = Swell::default();
        assert!(swell.add(1 << 20, 200 << 20));
        assert!(!swell.add(1, 201));
    }
}
