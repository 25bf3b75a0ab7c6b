//! How much of each member is taken, so that one that says too much is not heard, nor passed on.
//!
//! Sans-I/O.

use std::collections::BTreeMap;
use std::time::Duration;

use super::{BURST_ROWS, PAUSE_ROWS, Taken};
use crate::id::MemberId;

/// Of each member, how much more is taken, and since when that is counted.
#[derive(Debug, Default)]
pub(in super::super) struct Budgets(BTreeMap<MemberId, (u32, Duration)>);

impl Budgets {
    /// Whether something new of a member is taken: if it does not say too much, and has signed it, which is looked at
    /// only then, and is what it pays for.
    pub(in super::super) fn take(
        &mut self,
        member: MemberId,
        now: Duration,
        is_signed: impl FnOnce() -> bool,
    ) -> Taken {
        let budget = self.0.get(&member).copied().unwrap_or((BURST_ROWS, now));
        let (left, since) = earned(budget, now);
        if left == 0 {
            return Taken::TooOften;
        }
        if !is_signed() {
            return Taken::Forged;
        }
        self.0.insert(member, (left - 1, since));
        Taken::New
    }

    /// Forgets who is no member any more.
    pub(in super::super) fn keep(&mut self, is_member: impl Fn(MemberId) -> bool) {
        self.0.retain(|it, _| is_member(*it));
    }
}

/// What a budget is now.
fn earned((left, since): (u32, Duration), now: Duration) -> (u32, Duration) {
    let pauses = now.saturating_sub(since).as_secs() / PAUSE_ROWS.as_secs();
    let pauses = u32::try_from(pauses).unwrap_or(u32::MAX);
    match left.saturating_add(pauses) {
        left if BURST_ROWS <= left => (BURST_ROWS, now),
        left => (left, since + PAUSE_ROWS * pauses),
    }
}
