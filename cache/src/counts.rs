//! Counts of what the cache has answered, for the administrator.

use std::sync::atomic::{AtomicU64, Ordering};

/// Where the body of an answer came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum From {
    /// The memory.
    Hit,
    /// A fetch that another client had begun.
    Joined,
    /// The memory, after the origin said that it is still good.
    Validated,
    /// The memory, since the origin fails.
    Stale,
    /// The origin.
    Miss,
    /// The origin, without a look at what is stored.
    Passed,
    /// The cache itself: its pages, refusals and errors.
    Own,
    /// A tunnel.
    Tunnel,
}

impl From {
    /// All, in order.
    pub(crate) const ALL: [Self; 8] = [
        Self::Hit,
        Self::Joined,
        Self::Validated,
        Self::Stale,
        Self::Miss,
        Self::Passed,
        Self::Own,
        Self::Tunnel,
    ];

    /// Returns the name in metrics and the status.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Hit => "hit",
            Self::Joined => "joined",
            Self::Validated => "validated",
            Self::Stale => "stale",
            Self::Miss => "miss",
            Self::Passed => "passed",
            Self::Own => "own",
            Self::Tunnel => "tunnel",
        }
    }
}

/// Numbers of answers since the start.
#[derive(Debug, Default)]
pub(crate) struct Counts([AtomicU64; From::ALL.len()]);

impl Counts {
    pub(crate) fn add(&self, from: From) {
        if let Some(count) = self.0.get(from as usize) {
            count.fetch_add(1, Ordering::Relaxed);
        }
    }

    pub(crate) fn all(&self) -> [(&'static str, u64); From::ALL.len()] {
        From::ALL.map(|it| {
            let count = self.0.get(it as usize).map_or(0, |it| it.load(Ordering::Relaxed));
            (it.name(), count)
        })
    }
}
