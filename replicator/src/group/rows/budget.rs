//! Budgets: bounds on the messages of each member. Further ones are neither taken nor passed on.
//!
//! Sans-I/O.

use std::collections::BTreeMap;
use std::time::Duration;

use super::{BURST_ROWS, Intake, PAUSE_ROWS};
use crate::id::MemberId;

/// By member: how many more messages may be taken, and the time from which further ones are earned.
#[derive(Debug, Default)]
pub(in super::super) struct Budgets(BTreeMap<MemberId, (u32, Duration)>);

impl Budgets {
    /// Decides whether a new message of a member is taken. Its signature is checked only if the
    /// budget allows, and only messages with a valid signature are charged.
    pub(in super::super) fn take(
        &mut self,
        member: MemberId,
        now: Duration,
        is_signed: impl FnOnce() -> bool,
    ) -> Intake {
        let budget = self.0.get(&member).copied().unwrap_or((BURST_ROWS, now));
        let (left, since) = earned(budget, now);
        if left == 0 {
            return Intake::TooOften;
        }
        if !is_signed() {
            return Intake::Forged;
        }
        self.0.insert(member, (left - 1, since));
        Intake::New
    }

    pub(in super::super) fn keep(&mut self, is_member: impl Fn(MemberId) -> bool) {
        self.0.retain(|it, _| is_member(*it));
    }
}

/// Returns a budget with what it has earned until `now`.
fn earned((left, since): (u32, Duration), now: Duration) -> (u32, Duration) {
    let pauses = now.saturating_sub(since).as_secs() / PAUSE_ROWS.as_secs();
    let pauses = u32::try_from(pauses).unwrap_or(u32::MAX);
    match left.saturating_add(pauses) {
        left if BURST_ROWS <= left => (BURST_ROWS, now),
        left => (left, since + PAUSE_ROWS * pauses),
    }
}
