//! The progress of `harvest up`: a bar for a person, a line every few seconds for a log.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::Context as _;
use gatherer::Progress;
use gatherer::progress::{CrawlStatus, HostStatus};
use indicatif::{HumanBytes, HumanCount, MultiProgress, ProgressBar, ProgressStyle};
use tokio::sync::watch;
use tokio::time::MissedTickBehavior;

use crate::output;

/// Time between two moves of the bar.
const BAR_INTERVAL: Duration = Duration::from_millis(100);

/// Time between two lines without a terminal.
const LINE_INTERVAL: Duration = Duration::from_secs(5);

/// Number of types that are named; the others are counted together.
const TYPES_SHOWN: usize = 4;

/// Number of hosts of crawls that are named.
const HOSTS_SHOWN: usize = 3;

/// The view of the progress.
#[derive(Debug)]
pub(super) struct ProgressView {
    /// `None` without a terminal.
    bar: Option<ProgressBar>,
}

impl ProgressView {
    /// Adds a bar to `bars` if the output is a terminal.
    pub(super) fn new(bars: MultiProgress) -> Self {
        let bar = output::is_terminal().then(|| {
            let bar = bars.add(ProgressBar::new(0));
            bar.set_style(style("{spinner} gathering {wide_bar} {prefix}\n  {msg}"));
            bar
        });
        Self { bar }
    }

    /// Shows the running pass until `passes` passes are done since the start and no harvest is due,
    /// and returns the progress at the end; `crawls` says how crawls stand. Fails if the gatherer has stopped.
    pub(super) async fn gathering(
        &self,
        mut progress: watch::Receiver<Progress>,
        crawls: impl Fn() -> Vec<CrawlStatus>,
        passes: u64,
    ) -> anyhow::Result<Progress> {
        let mut tick =
            tokio::time::interval(if self.bar.is_some() { BAR_INTERVAL } else { LINE_INTERVAL });
        tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
        // The first tick comes at once, before there is progress to show.
        tick.tick().await;
        loop {
            tokio::select! {
                done = progress.wait_for(|it| passes <= it.passes_done && it.harvests_due == 0) => {
                    return Ok(done.context("the gatherer stopped")?.clone());
                }
                _ = tick.tick() => {}
            }
            let now = progress.borrow().clone();
            let details = details(&now, &crawls());
            match &self.bar {
                Some(bar) => {
                    bar.set_length(100);
                    bar.set_position(now.percent().unwrap_or_default());
                    bar.set_prefix(files(&now));
                    bar.set_message(details);
                    bar.tick();
                }
                None => output::line(&format!("gathering {}, {}", files(&now), details))?,
            }
        }
    }

    /// Shows that the rest is indexed.
    pub(super) fn indexing(&self, progress: &Progress) {
        if let Some(bar) = &self.bar {
            bar.set_style(style("{spinner} indexing {msg}"));
            bar.set_message(output::counted(progress.files_done, "file"));
            bar.enable_steady_tick(BAR_INTERVAL);
        }
    }

    /// Prints the summary: gathering took `gathered`, everything together `took`.
    pub(super) fn done(
        &self,
        progress: &Progress,
        gathered: Duration,
        objects: u64,
        took: Duration,
    ) -> anyhow::Result<()> {
        self.clear();
        let files = output::counted(progress.files_done, "file");
        output::line(&format!(
            "gathered  {files} in {:.1} s: {}",
            gathered.as_secs_f64(),
            read(progress).join("; ")
        ))?;
        output::line(&format!(
            "changed   {} new or changed, {} unchanged, {} deleted",
            HumanCount(progress.updated),
            HumanCount(progress.unchanged),
            HumanCount(progress.deleted),
        ))?;
        let rest = took.saturating_sub(gathered).as_secs_f64();
        output::line(&format!(
            "indexed   {} {rest:.1} s later",
            output::counted(objects, "object")
        ))?;
        Ok(())
    }

    fn clear(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

impl Drop for ProgressView {
    /// Removes a bar that is still drawn.
    fn drop(&mut self) {
        self.clear();
    }
}

fn style(template: &str) -> ProgressStyle {
    // The templates are constants; a broken one falls back to the plain bar.
    ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar())
}

/// Writes how many files of how many are done.
fn files(progress: &Progress) -> String {
    let (total, is_open) = progress.files_total();
    let least = if is_open { "at least " } else { "" };
    let files = output::counted(total, "file");
    let percent = progress.percent().map(|it| format!(" ({it} %)")).unwrap_or_default();
    format!("{} of {least}{files}{percent}", HumanCount(progress.files_done))
}

/// Writes bytes, types, problems and crawls.
fn details(progress: &Progress, crawls: &[CrawlStatus]) -> String {
    let mut parts = read(progress);
    parts.push(output::counted(progress.problems, "problem"));
    parts.extend(outcomes(crawls));
    parts.join("; ")
}

/// Writes what has become of the pages of all crawls, and which hosts have most that wait; `None` if there is no
/// crawl.
fn outcomes(crawls: &[CrawlStatus]) -> Option<String> {
    let sum =
        |of: fn(&CrawlStatus) -> usize| HumanCount(crawls.iter().map(of).sum::<usize>() as u64);
    let mut text = format!(
        "{} answered, {} failed, {} kept out by robots.txt, {} waiting",
        sum(|it| it.done),
        sum(|it| it.failed),
        sum(|it| it.refused),
        sum(|it| it.waiting)
    );
    let mut hosts: Vec<&HostStatus> = crawls.iter().flat_map(|it| &it.hosts).collect();
    hosts.sort_by_key(|it| usize::MAX - it.waiting);
    let named = hosts.iter().take(HOSTS_SHOWN).map(|it| {
        let why = it.why.as_ref().map(|it| format!(", {it}")).unwrap_or_default();
        format!("{}: {} waiting{why}", it.host, HumanCount(it.waiting as u64))
    });
    let named: Vec<String> = named.collect();
    if !named.is_empty() {
        text += &format!(" ({})", named.join("; "));
    }
    (!crawls.is_empty()).then_some(text)
}

/// Writes bytes and types.
fn read(progress: &Progress) -> Vec<String> {
    let mut parts = vec![format!("{} read", HumanBytes(progress.bytes))];
    let types = types(&progress.by_type);
    if !types.is_empty() {
        parts.push(types);
    }
    parts
}

/// Writes the most frequent types with their counts.
fn types(by_type: &BTreeMap<String, u64>) -> String {
    let mut sorted: Vec<(&String, u64)> =
        by_type.iter().map(|(name, count)| (name, *count)).collect();
    sorted.sort_by_key(|(name, count)| (u64::MAX - count, *name));
    let others: u64 = sorted.iter().skip(TYPES_SHOWN).map(|(_, count)| count).sum();
    let mut parts: Vec<String> = sorted
        .iter()
        .take(TYPES_SHOWN)
        .map(|(name, count)| format!("{name} {}", HumanCount(*count)))
        .collect();
    if others > 0 {
        parts.push(format!("others {}", HumanCount(others)));
    }
    parts.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_most_frequent_types_come_first() {
        let by_type: BTreeMap<String, u64> =
            [("A", 1), ("B", 2_000), ("C", 3), ("D", 4), ("E", 5), ("F", 1)]
                .map(|(name, count)| (name.to_owned(), count))
                .into();
        assert_eq!(types(&by_type), "B 2,000, E 5, D 4, C 3, others 2");
        assert_eq!(types(&BTreeMap::new()), "");
    }

    #[test]
    fn a_crawl_is_told_by_outcomes_and_hosts() {
        assert_eq!(outcomes(&[]), None);
        let host = |name: &str, waiting, why: Option<&str>| HostStatus {
            host: format!("http://{name}"),
            waiting,
            answer_ms: None,
            why: why.map(str::to_owned),
        };
        let hosts = vec![host("a", 900, None), host("b", 200, Some("paused")), host("c", 1, None)];
        let one =
            CrawlStatus { waiting: 1_101, done: 1_200, failed: 2, hosts, ..CrawlStatus::default() };
        let hosts = vec![host("d", 7, None)];
        let other =
            CrawlStatus { waiting: 7, done: 1, refused: 3, hosts, ..CrawlStatus::default() };
        let expected = "1,201 answered, 2 failed, 3 kept out by robots.txt, 1,108 waiting (http://a: 900 waiting; \
                        http://b: 200 waiting, paused; http://d: 7 waiting)";
        assert_eq!(outcomes(&[one, other]).unwrap(), expected);
        let details = details(&Progress::default(), &[CrawlStatus::default()]);
        assert_eq!(
            details,
            "0 B read; 0 problems; 0 answered, 0 failed, 0 kept out by robots.txt, 0 waiting"
        );
    }

    #[test]
    fn the_total_does_not_run_away() {
        let mut progress = Progress { phase: gatherer::Phase::Walking, ..Progress::default() };
        (progress.files_done, progress.files_seen) = (20, 1_030);
        assert_eq!(files(&progress), "20 of at least 1,030 files");
        progress.files_expected = 4_000;
        assert_eq!(files(&progress), "20 of 4,000 files (0 %)");
    }

    #[tokio::test]
    async fn gathering_ends_with_the_first_pass() {
        let (sender, receiver) = watch::channel(Progress::default());
        let show = ProgressView { bar: None };
        let gathering = show.gathering(receiver, Vec::new, 1);
        sender.send_modify(|it| (it.passes_done, it.files_done) = (1, 7));
        assert_eq!(gathering.await.unwrap().files_done, 7);
        let (sender, receiver) = watch::channel(Progress::default());
        drop(sender);
        assert!(show.gathering(receiver, Vec::new, 1).await.is_err());
    }
}
