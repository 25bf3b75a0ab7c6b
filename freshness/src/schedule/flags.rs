//! Flags and streak of a source, in two bytes: a schedule may have a million sources.
//!
//! Sans-I/O.

/// Maximum streak; a longer one stays at this number.
pub(super) const STREAK_MAX: u8 = 127;

/// Position of the streak, above all flags.
const STREAK_SHIFT: u32 = 9;

/// A set of [`Flag`]s, and a number up to [`STREAK_MAX`].
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Flags(u16);

/// A property that a source has or does not have.
#[derive(Clone, Copy, Debug)]
pub(super) enum Flag {
    /// Its changes are awaited with long polls, instead of pulls at intervals.
    Follow = 1,
    /// It is being pulled.
    Pulling = 2,
    /// The wall clock was set during the present pull, so the pull says nothing about rates.
    Untimed = 4,
    /// A pull was requested, and has not begun.
    Requested = 8,
    /// The present pull is a long poll.
    Waiting = 16,
    /// The last pull that was not given up failed.
    Failed = 32,
    /// The last successful pull brought everything.
    Full = 64,
    /// It lists each element once, with the time of its last change.
    Datestamps = 128,
    /// A notification has come since its last pull began.
    Notified = 256,
}

impl Flags {
    pub(super) fn has(self, flag: Flag) -> bool {
        self.0 & flag as u16 != 0
    }

    pub(super) fn set(&mut self, flag: Flag, on: bool) {
        self.0 = if on { self.0 | flag as u16 } else { self.0 & !(flag as u16) };
    }

    /// Returns the number of consecutive pulls that failed or, if the last one did not fail, that
    /// were of the kind which `Entry` counts.
    pub(super) fn streak(self) -> u8 {
        u8::try_from(self.0 >> STREAK_SHIFT).unwrap_or(STREAK_MAX)
    }

    /// Sets the streak, to at most [`STREAK_MAX`].
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
