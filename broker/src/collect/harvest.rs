//! The pull of a repository: one harvest, within the time limit of a pull.

use std::time::Duration;

use collection::pull::{Kind, Summary};
use collection::{Collection, Version};
use exchange::harvester::{Bounds, Repository, Running, Step, Stored, Target};
use freshness::syndication::Syndication;
use net::clock;
use net::shutdown::Shutdown;
use oai::crosswalk::SourceIdentity;
use oai::harvest::{Failure as Stop, Report, Settings};
use oai::response::Identify;
use oai::syndication;

use super::Inner;
use crate::blocking::blocking;
use crate::error::Error;
use crate::failure::{FailedPull, Failure};
use crate::source::{Oai, Source};

/// Time during which pages are collected for one commit.
const HOLD: Duration = Duration::from_secs(1);

/// Maximum number of warnings that status shows for a source.
const WARNINGS_MAX: usize = 20;

#[derive(Clone, Debug, Default)]
pub(super) struct Remarks {
    /// The announced update times; `Some(None)` if the source announces none, `None` if it was not
    /// asked.
    pub(super) announced: Option<Option<Syndication>>,
    /// The warnings; at most [`WARNINGS_MAX`].
    pub(super) warnings: Vec<String>,
    /// Whether the time limit ended the pull before the harvest was complete, but after some
    /// progress: the next pull then continues the harvest.
    pub(super) goes_on: bool,
}

/// Harvests a repository into the collection. Fills `summary` and `remarks` even when it fails. The
/// future may be dropped at any point.
///
/// # Errors
///
/// The harvest failed; stored records stay, and the next pull goes on from there.
pub(super) async fn pull_into(
    inner: &Inner,
    (source, oai): (&Source, &Oai),
    confirmed: bool,
    summary: &mut Summary,
    remarks: &mut Remarks,
) -> Result<(), FailedPull> {
    let (collection, name) = (inner.collection.clone(), source.name.clone());
    let identity = SourceIdentity::new(source.url.as_str());
    let mut target = Target::new(collection, name, identity)
        .keep_original(oai.keep_original)
        .confirmed(confirmed);
    refuse_more(inner.collection.clone(), source).await?;
    let checkpoint = target.checkpoint().await?;
    let bounds = Bounds { bytes_max: source.bytes_max, time_max: inner.timeouts.pull_max };
    let repository = repository(inner, source, oai);
    let shutdown = Shutdown::new();
    let settings =
        Settings { records_max: source.records_max, ..oai.settings(source.url.as_str()) };
    let running = Running::new(repository, settings, checkpoint, bounds, shutdown);
    let mut running = running.holding(HOLD);
    inner.show(&source.name, running.activity());
    let (mut tally, mut came) = (Tally::default(), false);
    let end = loop {
        let step = running.next().await;
        remarks.handle_identify(running.identify());
        tally.count(running.report(), summary);
        match step {
            Step::Batch(part) => {
                let prefix = running.prefix().to_owned();
                let stored = target.store(*part, &prefix).await?;
                remarks.handle_stored(&stored);
                tally.add(&stored);
                came = true;
                summary.applied += stored.applied;
                tally.count(running.report(), summary);
            }
            Step::End(end) => break end,
            // This never happens, as this shutdown never starts: a pull is given up by dropping it.
            Step::Stopped => return Ok(()),
        }
    };
    remarks.handle_report(&end.report);
    if let Err(failure) = &end.outcome {
        target.store_end(&end.checkpoint).await?;
        match failure {
            // All other records have come; the next harvest asks for the missing records again.
            Stop::Gaps { .. } => remarks.warn_first(failure.to_string()),
            Stop::TimeUp { .. } if came => {
                remarks.goes_on = true;
                let records = end.report.records;
                remarks
                    .warn_first(format!("its harvest goes on: {records} records came; {failure}"));
                return Ok(());
            }
            _ => return Err(FailedPull::harvest(&source.name, source.url.as_str(), failure)),
        }
    }
    let held = end.report.elements;
    (summary.version, summary.objects) =
        progress(inner.collection.clone(), source.name.clone(), held, source.records_max).await?;
    Ok(())
}

fn repository(inner: &Inner, source: &Source, oai: &Oai) -> Repository {
    let mut access = oai.access(source.credentials(), source.allow_private);
    access.time_max = access.time_max.min(inner.timeouts.pull_max);
    Repository::new(inner.client.clone(), source.url.clone(), access)
        .pacing(inner.hosts.clone(), oai.delay)
}

/// Returns an error if a source holds more objects than its `records_max`.
async fn refuse_more(collection: Collection, source: &Source) -> Result<(), FailedPull> {
    let (name, most) = (source.name.clone(), source.records_max);
    let look = move || Ok::<_, Error>(held(&collection, &name)?);
    let held = blocking("objects of a source", look).await.map_err(|it| internal(&it))?;
    if most < held {
        let (name, what) = (source.name.clone(), format!("{held} objects"));
        return Err(collection::Error::OverLimit { name, what, setting: "records_max" }.into());
    }
    Ok(())
}

fn held(collection: &Collection, source: &str) -> Result<u64, collection::Error> {
    let sources = collection.sources()?;
    Ok(sources.into_iter().find(|it| it.source == source).map_or(0, |it| it.objects))
}

fn internal(error: &Error) -> FailedPull {
    FailedPull { failure: Failure::Ours, message: error.to_string(), retry_after: None }
}

/// Returns the version up to which a source has been read, and the number of its objects, at most
/// `most`: `told`, if the source reported it, otherwise the number of objects that it holds here.
async fn progress(
    collection: Collection,
    source: String,
    told: Option<u64>,
    most: u64,
) -> Result<(Version, u64), FailedPull> {
    let look = move || {
        let cursor = collection.cursor(&source)?;
        let version = cursor.map(|it| Version { epoch: it.epoch, serial: it.serial });
        let objects = told.map_or_else(|| held(&collection, &source), Ok)?;
        Ok::<_, Error>((version.unwrap_or_default(), objects.min(most)))
    };
    blocking("cursor of a source", look).await.map_err(|it| internal(&it))
}

/// Number of changes so far, and sum of their times in Unix seconds.
#[derive(Debug, Default)]
struct Tally {
    changes: u64,
    stamps_secs: i128,
}

impl Tally {
    fn add(&mut self, stored: &Stored) {
        self.changes += stored.changes;
        self.stamps_secs += stored.stamps_secs;
    }

    /// Writes the totals so far to `summary`.
    fn count(&self, report: &Report, summary: &mut Summary) {
        summary.kind = if report.full { Kind::Snapshot } else { Kind::Delta };
        summary.bytes = report.bytes;
        summary.changes = self.changes;
        // Each record comes only once, with the time of its last change, even if it changed often.
        summary.changed = self.changes;
        let now_secs = clock::now_ms() as f64 / 1_000.0;
        let mean = self.stamps_secs as f64 / self.changes.max(1) as f64;
        summary.age_secs = if self.changes == 0 { 0.0 } else { now_secs - mean };
        summary.changed_age_secs = summary.age_secs;
    }
}

impl Remarks {
    fn handle_identify(&mut self, identify: Option<&Identify>) {
        let Some(identify) = identify.filter(|_| self.announced.is_none()) else { return };
        let written = identify.descriptions.iter().find_map(syndication::Syndication::read);
        let announced = written.and_then(|it| {
            let [period, frequency, base] = [it.period, it.frequency, it.base];
            let read = Syndication::parse(period.as_deref(), frequency.as_deref(), base.as_deref());
            read.map_err(|error| self.warn(format!("its update schedule: {error}"))).ok()
        });
        self.announced = Some(announced);
    }

    fn handle_stored(&mut self, stored: &Stored) {
        for (identifier, problem) in &stored.named {
            self.warn(format!("{identifier}: {problem}"));
        }
    }

    fn handle_report(&mut self, report: &Report) {
        for (warning, count) in &report.warnings {
            let times = if *count == 1 { String::new() } else { format!(" ({count} times)") };
            self.warn(format!("{warning}{times}"));
        }
        for it in &report.quarantine {
            let name = it.identifier.as_deref().unwrap_or("a record without identifier");
            self.warn(format!("{name} could not be read and was left out: {}", it.problem));
        }
    }

    /// Puts the most important warning first.
    fn warn_first(&mut self, warning: String) {
        self.warnings.insert(0, warning);
        self.warnings.truncate(WARNINGS_MAX);
    }

    pub(super) fn warn(&mut self, warning: String) {
        if self.warnings.len() < WARNINGS_MAX {
            self.warnings.push(warning);
        }
    }
}
