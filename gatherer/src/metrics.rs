//! The gatherer's counters. Each stage counts the objects that came in, went out, and were dropped,
//! by reason, so that no object can get lost between two stages unnoticed.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use daemon::metrics::Sample;
use serde::Serialize;

use crate::lock::lock;

/// Counts by reason, since the start.
#[derive(Debug, Default)]
pub struct Reasons(Mutex<BTreeMap<&'static str, u64>>);

impl Reasons {
    /// Counts `count` for `reason`.
    pub fn add(&self, reason: &'static str, count: u64) {
        if count != 0 {
            let mut counts = lock(&self.0);
            let sum = counts.entry(reason).or_default();
            // Some counts come from workers, which are not trusted.
            *sum = sum.saturating_add(count);
        }
    }

    /// Returns the present counts.
    pub fn counts(&self) -> BTreeMap<&'static str, u64> {
        lock(&self.0).clone()
    }
}

/// Counters of one stage, since the start. When nothing is under way, `entered` is the sum of
/// `left` and `dropped`.
#[derive(Debug, Default)]
pub struct Stage {
    entered: AtomicU64,
    left: AtomicU64,
    dropped: Reasons,
}

/// Counters of a stage at one moment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct StageCount {
    /// The stage's name.
    pub stage: &'static str,
    /// Objects that came in.
    pub entered: u64,
    /// Objects that went on to the next stage.
    pub left: u64,
    /// Objects that were dropped, by reason.
    pub dropped: BTreeMap<&'static str, u64>,
}

impl Stage {
    /// Counts `count` objects that come in.
    pub fn enter(&self, count: u64) {
        self.entered.fetch_add(count, Relaxed);
    }

    /// Counts `count` objects that go on to the next stage.
    pub fn leave(&self, count: u64) {
        self.left.fetch_add(count, Relaxed);
    }

    /// Counts one object dropped for `reason`.
    pub fn drop_one(&self, reason: &'static str) {
        self.drop_many(reason, 1);
    }

    /// Counts `count` objects dropped for `reason`.
    pub fn drop_many(&self, reason: &'static str, count: u64) {
        self.dropped.add(reason, count);
    }

    fn count(&self, stage: &'static str) -> StageCount {
        StageCount {
            stage,
            entered: self.entered.load(Relaxed),
            left: self.left.load(Relaxed),
            dropped: self.dropped.counts(),
        }
    }
}

/// All counters of a gatherer, since the start.
#[derive(Debug, Default)]
pub struct Metrics {
    /// In: entries of walks. Out: files to be read.
    pub walk: Stage,
    /// In: files to be read. Out: those with new content.
    pub fetch: Stage,
    /// In: files to be typed, unnested and summarized. Out: files with records, and files whose
    /// whole content was left out by type.
    pub summarize: Stage,
    /// In: known files that a walk has not seen. Out: those whose records are deleted.
    pub vanish: Stage,
    /// In: files to be committed: those with records, those with the same content but another time,
    /// and vanished ones.
    pub commit: Stage,
    /// Files and members of containers that selection left out, by reason.
    pub left_out: Reasons,
    /// Number of bytes read.
    pub bytes: AtomicU64,
    /// Number of commits made.
    pub commits: AtomicU64,
    /// Number of records committed as new or changed.
    pub updated: AtomicU64,
    /// Number of records deleted.
    pub deleted: AtomicU64,
    /// Number of finished passes over one root.
    pub passes: AtomicU64,
    /// Number of times that the watcher lost events or reported too many paths.
    pub overflows: AtomicU64,
}

impl Metrics {
    /// Returns all stages, in the order of the route.
    pub fn stages(&self) -> [StageCount; 5] {
        [
            self.walk.count("walk"),
            self.fetch.count("fetch"),
            self.summarize.count("summarize"),
            self.vanish.count("vanish"),
            self.commit.count("commit"),
        ]
    }

    /// Returns the samples that `/metrics` shows.
    pub fn samples(&self) -> Vec<Sample> {
        const IN: &str = "Objects that came into a stage.";
        const OUT: &str = "Objects that a stage passed on.";
        const DROPPED: &str = "Objects that a stage dropped, by reason.";
        let stages = self.stages();
        let mut samples = Vec::new();
        for it in &stages {
            let count = Sample::counter("harvest_gatherer_stage_in_total", IN, it.entered as f64);
            samples.push(count.with("stage", it.stage));
        }
        for it in &stages {
            let count = Sample::counter("harvest_gatherer_stage_out_total", OUT, it.left as f64);
            samples.push(count.with("stage", it.stage));
        }
        for it in &stages {
            for (reason, count) in &it.dropped {
                let name = "harvest_gatherer_stage_dropped_total";
                let sample = Sample::counter(name, DROPPED, *count as f64);
                samples.push(sample.with("stage", it.stage).with("reason", *reason));
            }
        }
        for (reason, count) in self.left_out.counts() {
            let help = "Files and members of containers that selection left out, by reason.";
            let sample = Sample::counter("harvest_gatherer_left_out_total", help, count as f64);
            samples.push(sample.with("reason", reason));
        }
        for (name, help, counter) in [
            ("harvest_gatherer_read_bytes_total", "Bytes read.", &self.bytes),
            ("harvest_gatherer_commits_total", "Commits made.", &self.commits),
            ("harvest_gatherer_updated_total", "Records new or changed.", &self.updated),
            ("harvest_gatherer_deleted_total", "Records deleted.", &self.deleted),
            ("harvest_gatherer_passes_total", "Passes over a root finished.", &self.passes),
            ("harvest_gatherer_watch_overflows_total", "Watch events lost.", &self.overflows),
        ] {
            samples.push(Sample::counter(name, help, counter.load(Relaxed) as f64));
        }
        samples
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_conserved(it: &StageCount) -> bool {
        it.entered == it.left + it.dropped.values().sum::<u64>()
    }

    #[test]
    fn objects_that_come_in_go_out_or_are_dropped_for_a_reason() {
        let metrics = Metrics::default();
        metrics.walk.enter(3);
        metrics.walk.leave(1);
        metrics.walk.drop_one("hidden");
        assert!(!is_conserved(&metrics.stages()[0]));
        metrics.walk.drop_one("hidden");
        assert!(metrics.stages().iter().all(is_conserved));
        let text = daemon::metrics::render(&metrics.samples());
        let line = "harvest_gatherer_stage_dropped_total{stage=\"walk\",reason=\"hidden\"} 2";
        assert!(text.contains(line), "{text}");
    }
}
