//! What is true of a source and what is not, in a byte.
//!
//! Sans-I/O.

/// A set of [`Flag`]s.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Flags(u8);

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
    /// Somebody said that it has changed.
    Datestamps = 128,
    Told = 128,
}

impl Flags {
    pub(super) fn has(self, flag: Flag) -> bool {
        self.0 & flag as u8 != 0
    }

    pub(super) fn set(&mut self, flag: Flag, on: bool) {
        self.0 = if on { self.0 | flag as u8 } else { self.0 & !(flag as u8) };
    }
}
