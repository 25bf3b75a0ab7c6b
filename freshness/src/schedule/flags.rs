//! Flags of a source, and its streak, in two bytes, since thousands of sources are kept.
//!
//! Sans-I/O.

/// Highest streak that is counted.
pub(super) const STREAK_MAX: u8 = 127;

/// Position of the streak, above all flags.
const STREAK_SHIFT: u32 = 9;

/// A set of [`Flag`]s, and a number up to [`STREAK_MAX`].
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Flags(u16);

/// A property that a source has or does not have.
#[derive(Clone, Copy, Debug)]
pub(super) enum Flag {
    /// It is followed by long polls.
    Follow = 1,
    /// It is being pulled.
    Pulling = 2,
    /// The clock was set during the present pull.
    Untimed = 4,
    /// Somebody requested a pull.
    Requested = 8,
    /// The present pull is a long poll.
    Waiting = 16,
    /// The last pull failed.
    Failed = 32,
    /// The last pull brought everything.
    Full = 64,
    /// It lists each element once, with the time of its last change.
    Datestamps = 128,
    /// A notification said that it has changed.
    Notified = 256,
}

impl Flags {
    pub(super) fn has(self, flag: Flag) -> bool {
        self.0 & flag as u16 != 0
    }

    pub(super) fn set(&mut self, flag: Flag, on: bool) {
        self.0 = if on { self.0 | flag as u16 } else { self.0 & !(flag as u16) };
    }

    /// Returns the number of pulls in a row that ended as the last one did.
    pub(super) fn streak(self) -> u8 {
        u8::try_from(self.0 >> STREAK_SHIFT).unwrap_or(STREAK_MAX)
    }

    /// Sets the streak; more than [`STREAK_MAX`] counts as that.
    pub(super) fn set_streak(&mut self, streak: u8) {
        let flags = self.0 & ((1 << STREAK_SHIFT) - 1);
        self.0 = flags | u16::from(streak.min(STREAK_MAX)) << STREAK_SHIFT;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_and_streak_leave_each_other_alone() {
        let mut all = Flags::default();
        all.set(Flag::Notified, true);
        all.set_streak(200);
        assert!(all.has(Flag::Notified) && !all.has(Flag::Full));
        assert_eq!(all.streak(), STREAK_MAX);
        all.set(Flag::Notified, false);
        all.set_streak(5);
        all.set(Flag::Follow, true);
        assert!(!all.has(Flag::Notified) && all.has(Flag::Follow));
        assert_eq!(all.streak(), 5);
    }
}
