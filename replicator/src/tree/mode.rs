//! Modes: the permissions of files and folders that are replicated.
//!
//! Sans-I/O.

use std::fmt;

use crate::version::Kind;

/// The permissions of owner, group and others: to read (r), and to run a file or pass through a
/// folder (x). Other bits of a mode are not replicated: replicas are read-only, and no file in them
/// runs as another user.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Mode(u16);

impl Mode {
    /// Everybody may read.
    pub const PLAIN: Self = Self(0o444);
    /// Everybody may read, and run or pass through.
    pub const EXECUTABLE: Self = Self(0o555);

    /// Returns the replicated part of a file system's mode.
    pub fn of(found: u32) -> Self {
        Self(u16::try_from(found & 0o555).unwrap_or_default())
    }

    /// Returns the mode with these bits; `None` if any bits other than r and x of owner, group and
    /// others are set.
    pub fn from_bits(bits: u16) -> Option<Self> {
        (bits & !0o555 == 0).then_some(Self(bits))
    }

    /// Returns the bits, as in a file system.
    pub fn bits(self) -> u16 {
        self.0
    }

    /// Returns the mode in format 1, where everybody may read all files, and run every file that
    /// anybody may run.
    pub(super) fn in_format_1(self) -> Self {
        if self.0 & 0o111 == 0 { Self::PLAIN } else { Self::EXECUTABLE }
    }

    /// Returns the mode that a file with this replicated mode has on a member's disk. Its owner is
    /// the replicator, which has to read it. Logs of collections are always private.
    pub(super) fn of_file(self, kind: Kind) -> u32 {
        match kind {
            Kind::Tree => u32::from(self.0) | 0o400,
            Kind::Collection => 0o400,
        }
    }

    /// Returns the mode that a folder with this replicated mode has on a member's disk. Its owner
    /// is the replicator, which has to create and remove names in it.
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
    fn only_the_read_and_run_bits_are_replicated() {
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
    fn the_replicator_can_read_its_files_and_nobody_can_write_them() {
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
