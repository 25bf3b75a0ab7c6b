//! The gatherer as an OAI-PMH repository: `/oai` on its public listener.

use std::time::Duration;

use exchange::repository::{Daemon, settings};
use oai::syndication::Syndication;
use oai::{Datestamp, Granularity};

use crate::config::{Config, Watch};

/// Length of a date and time without its seconds, in bytes.
const MINUTES: usize = "2026-01-31T12:00".len();

/// Returns the facts about the gatherer that `/oai` shows. `started` is in Unix seconds.
pub(crate) fn daemon(config: &Config, id: &str, started: u64) -> Daemon {
    Daemon {
        name: config.name.clone(),
        id: id.to_owned(),
        base_url: config.daemon.base_url.clone(),
        syndication: interval(config).and_then(|it| since(it, started)),
    }
}

/// Returns the interval between updates; `None` if a watch makes updates at any time.
fn interval(config: &Config) -> Option<Duration> {
    match config.watch {
        Watch::Notify => None,
        Watch::Poll(interval) => Some(interval.min(config.rewalk)),
        Watch::Off => Some(config.rewalk),
    }
}

/// Returns the schedule of updates at `interval` from `started` on (Unix seconds); `None` if
/// neither an hour, a day nor a week is a whole number of intervals.
fn since(interval: Duration, started: u64) -> Option<Syndication> {
    let started = i64::try_from(started).ok()?;
    let base = Datestamp::at(started, Granularity::Second).to_string();
    let base = format!("{}+00:00", base.get(..MINUTES)?);
    Some(Syndication { base: Some(base), ..settings::schedule(interval)? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gatherer_that_polls_announces_its_schedule() {
        let mut config = Config::new("/data");
        // date -u -d 2026-01-31T12:00:59Z +%s
        let syndication =
            |config: &Config| daemon(config, "0123456789abcdef", 1_769_860_859).syndication;
        assert_eq!(syndication(&config), None);
        let expected = |period: &str, frequency: &str| {
            Some(Syndication {
                period: Some(period.to_owned()),
                frequency: Some(frequency.to_owned()),
                base: Some("2026-01-31T12:00+00:00".to_owned()),
            })
        };
        config.watch = Watch::Poll(Duration::from_secs(60));
        assert_eq!(syndication(&config), expected("hourly", "60"));
        config.watch = Watch::Off;
        config.rewalk = Duration::from_secs(6 * 3_600);
        assert_eq!(syndication(&config), expected("daily", "4"));
        config.rewalk = Duration::from_secs(5 * 3_600);
        assert_eq!(syndication(&config), None);
    }
}
