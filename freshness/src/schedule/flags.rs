//! What is true of a source and what is not, and how often in a row, in two bytes: thousands of
//! sources are kept.
//!
//! Sans-I/O.

/// Highest streak that is counted.
pub(super) const STREAK_MAX: u8 = 127;

/// Where the streak begins, above all flags.
const STREAK_SHIFT: u32 = 9;

/// A set of [`Flag`]s, and a number up to [`STREAK_MAX`].
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Flags(u16);

/// Something that is true of a source or not.
#[derive(Clone, Copy, Debug)]
pub(super) enum Flag {
    /// It is kept in step by long polls.
    Follow = 1,
    /// It is being pulled.
    Pulling = 2,
    /// The clock was set while it is being pulled.
    Untimed = 4,
    /// Somebody asked for a pull.
    Asked = 8,
    /// It is asked to hold its answer.
    Waiting = 16,
    /// The last pull failed.
    Failed = 32,
    /// The last pull brought everything.
    Full = 64,
    /// It tells of each element once, with the time of its last change.
    Datestamps = 128,
    /// Somebody said that it has changed.
    Told = 256,
}

impl Flags {
    pub(super) fn has(self, flag: Flag) -> bool {
        self.0 & flag as u16 != 0
    }

    pub(super) fn set(&mut self, flag: Flag, on: bool) {
        self.0 = if on { self.0 | flag as u16 } else { self.0 & !(flag as u16) };
    }

    /// How many pulls in a row ended as the last one did.
    pub(super) fn streak(self) -> u8 {
        u8::try_from(self.0 >> STREAK_SHIFT).unwrap_or(STREAK_MAX)
    }

    /// Sets that; more than [`STREAK_MAX`] counts as that.
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
        all.set(Flag::Told, true);
        all.set_streak(200);
        assert_eq!((all.streak(), all.has(Flag::Told), all.has(Flag::Full)), (127, true, false));
        all.set(Flag::Told, false);
        all.set_streak(5);
        all.set(Flag::Follow, true);
        assert_eq!((all.streak(), all.has(Flag::Told), all.has(Flag::Follow)), (5, false, true));
    }
}
