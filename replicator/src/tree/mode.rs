//! Who may read what is in a tree, and pass through its folders: the part of a mode that travels.
//!
//! Sans-I/O.

use std::fmt;

use crate::version::Kind;

/// What owner, group and others may do with a file or a folder: read it (r), and run it or pass through it (x). Nothing
/// else of a mode travels: replicas are read and not written, and nothing in them runs as somebody else.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Mode(u16);

impl Mode {
    /// All that may be read by all.
    pub const PLAIN: Self = Self(0o444);
    /// All that may be read, and run or passed through, by all.
    pub const EXECUTABLE: Self = Self(0o555);

    /// What travels of the mode that a file system has.
    #[must_use]
    pub fn of(found: u32) -> Self {
        Self(u16::try_from(found & 0o555).unwrap_or_default())
    }

    /// The mode with these bits; none if there are others than r and x of owner, group and others.
    #[must_use]
    pub fn from_bits(bits: u16) -> Option<Self> {
        (bits & !0o555 == 0).then_some(Self(bits))
    }

    /// Its bits, as in a file system.
    #[must_use]
    pub fn bits(self) -> u16 {
        self.0
    }

    /// What becomes of it in format 1, where everybody may read, and run what anybody may run.
    pub(super) fn in_format_1(self) -> Self {
        if self.0 & 0o111 == 0 { Self::PLAIN } else { Self::EXECUTABLE }
    }

    /// The mode of such a file on a member's disk. The owner there is the replicator, which has to read it; logs of
    /// collections are nobody else's business, whatever was said of them.
    pub(super) fn of_file(self, kind: Kind) -> u32 {
        match kind {
            Kind::Tree => u32::from(self.0) | 0o400,
            Kind::Collection => 0o400,
        }
    }

    /// The mode of such a folder on a member's disk, in which the replicator makes and removes names.
    pub(super) fn of_folder(self, kind: Kind) -> u32 {
        match kind {
            Kind::Tree => u32::from(self.0) | 0o700,
            Kind::Collection => 0o700,
        }
    }
}

impl fmt::Debug for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:03o}", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_reading_and_running_travels() {
        assert_eq!(Mode::of(0o107_777), Mode::EXECUTABLE);
        assert_eq!(Mode::of(0o100_644), Mode::PLAIN);
        assert_eq!(Mode::of(0o600).bits(), 0o400);
        assert_eq!(Mode::from_bits(0o4755), None);
        assert_eq!(Mode::from_bits(0o640), None);
        for bits in 0..=0o777 {
            assert_eq!(Mode::from_bits(bits).is_some(), Mode::of(bits.into()).bits() == bits);
        }
    }

    #[test]
    fn the_replicator_reads_what_it_keeps_and_nobody_writes_to_it() {
        let found = |bits: u32| {
            let mode = Mode::of(bits);
            [Kind::Tree, Kind::Collection].map(|it| (mode.of_file(it), mode.of_folder(it)))
        };
        assert_eq!(found(0o600), [(0o400, 0o700), (0o400, 0o700)]);
        assert_eq!(found(0o664), [(0o444, 0o744), (0o400, 0o700)]);
        assert_eq!(found(0o750), [(0o550, 0o750), (0o400, 0o700)]);
        assert_eq!(found(0), [(0o400, 0o700), (0o400, 0o700)]);
    }
}
