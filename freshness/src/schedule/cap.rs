//! No more pulls a minute than there may be, whatever else is wrong.
//!
//! Sans-I/O.

use std::collections::VecDeque;

/// What "a minute" is, in milliseconds.
const MINUTE_MS: u64 = 60_000;

/// Lets so many through in any minute, and no more.
#[derive(Clone, Debug, Default)]
pub(super) struct Cap {
    /// When those of the last minute went through, oldest first; at most as many as could.
    times_ms: VecDeque<u64>,
    most: usize,
}

impl Cap {
    /// `most` a minute; 0 counts as 1.
    pub(super) fn new(most: u32) -> Self {
        let mut cap = Self::default();
        cap.set(most);
        cap
    }

    pub(super) fn set(&mut self, most: u32) {
        self.most = most.max(1) as usize;
    }

    /// When the next may go through.
    pub(super) fn next_ms(&self) -> u64 {
        let first = self.times_ms.len().checked_sub(self.most).and_then(|it| self.times_ms.get(it));
        first.map_or(0, |it| it.saturating_add(MINUTE_MS))
    }

    /// Takes in that one goes through.
    pub(super) fn pass(&mut self, now_ms: u64) {
        while self.times_ms.front().is_some_and(|it| it.saturating_add(MINUTE_MS) <= now_ms) {
            self.times_ms.pop_front();
        }
        self.times_ms.push_back(now_ms);
    }

    /// Takes in that the clock was set.
    pub(super) fn handle_jump(&mut self, moved: impl Fn(u64) -> u64) {
        for time in &mut self.times_ms {
            *time = moved(*time);
        }
    }

    /// Takes in that the clock was set back to `now_ms`: what was later is now.
    pub(super) fn handle_past(&mut self, now_ms: u64) {
        for time in &mut self.times_ms {
            *time = (*time).min(now_ms);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_minute_sees_more() {
        let mut cap = Cap::new(3);
        let mut times: Vec<u64> = Vec::new();
        for now in (0..600_000).step_by(700) {
            if cap.next_ms() <= now {
                cap.pass(now);
                times.push(now);
            }
        }
        assert!(times.windows(4).all(|it| MINUTE_MS <= it[3] - it[0]), "{times:?}");
        assert!(27 <= times.len(), "and no less: {}", times.len());
        cap.handle_past(5);
        assert_eq!(cap.next_ms(), 5 + MINUTE_MS);
        cap.handle_jump(|at| at + 1_000);
        assert_eq!(cap.next_ms(), 1_005 + MINUTE_MS, "a minute is as long as before");
        cap.set(1);
        cap.pass(9_000);
        assert_eq!(cap.next_ms(), 9_000 + MINUTE_MS);
        cap.set(4);
        assert_eq!(cap.next_ms(), 1_005 + MINUTE_MS, "those before count after all");
    }
}
