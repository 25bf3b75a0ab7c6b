//! The opening of a harvest: what the repository says of itself, its sets and its formats.

use crate::datestamp::{DAY_SECS, Datestamp};
use crate::repository::oap::Totals;
use crate::request::is_within;
use crate::response::{Deleted, Format, Identify, Page, Set};

use super::checkpoint::Run;
use super::{Failure, Harvest, OAI_DC, Phase, Warning};

/// Maximum number of parts of a list of sets that are read.
const SET_PAGES_MAX: u32 = 100;

impl Harvest {
    pub(super) fn identified(&mut self, found: Identify, date: Option<i64>, now_ms: u64) {
        self.tries = 0;
        let checkpoint = &mut self.checkpoint;
        let every_ms = self.settings.full_every_secs.saturating_mul(1_000);
        let since_ms = match found.deleted_record {
            Deleted::No => Some(checkpoint.full_at_ms),
            // The repository may have forgotten deletions since then.
            Deleted::Transient => {
                checkpoint.reached.map(|it| u64::try_from(it).unwrap_or(0).saturating_mul(1_000))
            }
            Deleted::Persistent => None,
        };
        let is_due =
            every_ms != 0 && since_ms.is_some_and(|it| it.saturating_add(every_ms) <= now_ms);
        if is_due && found.deleted_record == Deleted::Transient {
            self.report.warn(Warning::DeletionsLate);
        }
        let since = checkpoint.reached.filter(|_| !is_due);
        let lowest = self.settings.from.map(Datestamp::secs);
        let since = since.map(|it| it.saturating_sub(self.settings.overlap_secs));
        let from = since.map(|it| it.max(lowest.unwrap_or(i64::MIN))).or(lowest);
        let full = since.is_none();
        if full {
            checkpoint.generation = checkpoint.generation.saturating_add(1).max(now_ms);
        }
        // No repository is older than 1970, and the first window has no beginning.
        let earliest = found.earliest_datestamp.map_or(0, |it| it.secs().max(0));
        let mut run = Run::new(found.granularity, full, (from, earliest));
        run.size_secs = i64::from(self.settings.window_days) * DAY_SECS;
        run.until = self.settings.until.map(Datestamp::last_secs);
        run.server_secs = date;
        run.began_ms = now_ms;
        if full {
            checkpoint.gaps.clear();
            checkpoint.unread.clear();
            self.report.quarantine.clear();
            self.report.quarantined = 0;
            checkpoint.miscounts = false;
        }
        run.open(from, self.settings.overlap_secs);
        self.report.full = full;
        self.seen.begin(None);
        let is_over = run.until.zip(from).is_some_and(|(until, from)| until < from);
        checkpoint.run = (!is_over).then_some(run);
        if let Some(totals) = found.descriptions.iter().find_map(Totals::read) {
            self.report.elements = Some(totals.elements);
        }
        self.identify = Some(found);
        self.phase = match (full, self.settings.sets.is_empty()) {
            // An earlier harvest has brought all dates.
            _ if is_over => Phase::Over(Ok(())),
            (true, false) => {
                let missing = self.settings.sets.iter().cloned().collect();
                Phase::Sets { token: None, pages: 0, missing }
            }
            (true, true) => Phase::Formats,
            (false, _) => self.phase_of_unread(),
        };
    }

    pub(super) fn sets(&mut self, page: Page<Set>) {
        self.tries = 0;
        let Phase::Sets { token, pages, missing } = &mut self.phase else { return };
        for set in &page.items {
            missing.retain(|it| !is_within(&set.spec, it));
        }
        *pages += 1;
        let next = page.token.map(|it| it.value).filter(|it| !it.is_empty());
        let is_whole = next.is_none();
        let is_end = is_whole || next == *token || SET_PAGES_MAX <= *pages;
        *token = next;
        if missing.is_empty() {
            self.phase = Phase::Formats;
        } else if is_end {
            let missing = std::mem::take(missing);
            if self.settings.strict && is_whole {
                let wanted = missing.into_iter().collect::<Vec<_>>().join(", ");
                return self.fail(Failure::NoSet { wanted });
            }
            // A missing set does not prove that its records are gone.
            if let Some(run) = &mut self.checkpoint.run {
                run.doubtful = true;
            }
            for set in missing {
                self.report.warn(Warning::UnknownSet(set));
            }
            self.phase = Phase::Formats;
        }
    }

    pub(super) fn formats(&mut self, formats: &[Format]) {
        self.tries = 0;
        let has = |wanted: &str| formats.iter().any(|it| it.prefix == wanted);
        let prefixes = &self.settings.prefixes;
        if let Some(found) = prefixes.iter().find(|it| has(it)) {
            return self.chosen(Some(found.clone()));
        }
        let wanted = prefixes.join(", ");
        if has(OAI_DC) && !self.settings.strict {
            let used = OAI_DC.to_owned();
            self.report.warn(Warning::OtherFormat { wanted, used });
            return self.chosen(None);
        }
        let offered: Vec<&str> = formats.iter().take(20).map(|it| it.prefix.as_str()).collect();
        let offered = if offered.is_empty() { "none".to_owned() } else { offered.join(", ") };
        self.fail(Failure::NoFormat { wanted, offered });
    }

    pub(super) fn chosen(&mut self, prefix: Option<String>) {
        self.checkpoint.prefix = prefix.unwrap_or_else(|| OAI_DC.to_owned());
        self.phase = Phase::List;
    }
}
