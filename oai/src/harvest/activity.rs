//! The present activity of a harvest in words, for those who wait for it.

use crate::datestamp::Datestamp;

use super::checkpoint::Run;
use super::{Harvest, Phase};

impl Harvest {
    /// Returns what the harvest does at `now_ms` by our clock, in words.
    pub fn activity(&self, now_ms: u64) -> String {
        let what = match &self.phase {
            Phase::Identify => "asks what the repository is".to_owned(),
            Phase::Sets { .. } => "asks for its sets".to_owned(),
            Phase::Formats => "asks for its formats".to_owned(),
            Phase::Unread { .. } => "asks for records that could not be read before".to_owned(),
            Phase::List => {
                self.checkpoint.run.as_ref().map_or_else(String::new, |it| self.list(it))
            }
            Phase::Over(_) => "has ended".to_owned(),
        };
        let secs = self.next_ms.saturating_sub(now_ms).div_ceil(1_000);
        match &self.why_again {
            Some(why) if secs != 0 => format!("{what}; again in {secs} s: {why}"),
            _ => what,
        }
    }

    fn list(&self, run: &Run) -> String {
        let at = |secs: i64| Datestamp::at(secs, run.granularity).to_string();
        let dates = match run.window {
            (None, None) => String::new(),
            (Some(from), None) => format!(" changed since {}", at(from)),
            (None, Some(until)) => format!(" changed until {}", at(until)),
            (Some(from), Some(until)) => format!(" changed from {} to {}", at(from), at(until)),
        };
        let set = self.set_of(run).map(|it| format!(" of the set {it}")).unwrap_or_default();
        let part = run.pages + 1;
        let of = run.announced.map(|it| format!(" of {it}")).unwrap_or_default();
        let came = match part {
            1 => String::new(),
            _ => format!(", after {}{of} records of this list", run.record_count()),
        };
        let all = self.report.records;
        format!("asks for part {part} of the records{set}{dates}{came}; {all} records so far")
    }
}
