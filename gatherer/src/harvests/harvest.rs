//! The harvest of a repository: each part of a list becomes one commit of changes and the new
//! checkpoint.
//!
//! `oai::harvest` decides which requests to send and in which order; `exchange::harvester` sends
//! them and stores the answers. This module adds the gatherer's counts, problems and holds, and the
//! note at the end of a harvest.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use collection::Stamp;
use essence::fingerprint::md5_prefix;
use exchange::harvester::{self, Bounds, Running, Step, Stored, Target};
use net::clock;
use net::shutdown::Shutdown;
use oai::harvest::{Checkpoint, End, Failure};
use soif::digest::Md5;

use crate::known::LOST_FILES_MAX;
use crate::lock::lock;
use crate::note::{Regather, RepositoryNote};
use crate::problems::HARVEST_PROBLEM;
use crate::progress::Hold;
use crate::shared::blocking;
use crate::site::Site;
use crate::site::plan::RepositoryPlan;

/// Version of the records of repositories: a new number makes the gatherer harvest all of them
/// again.
const FORM: &str = "2";

/// Kind of the problem that a repository cannot send the records of some dates; all others were
/// received.
const GAPS_PROBLEM: &str = "gaps";

/// Kind of the problem that a record could not be read; it lasts until the record was read.
const QUARANTINED_PROBLEM: &str = "quarantined";

pub(crate) struct HarvestJob {
    pub(crate) repository: harvester::Repository,
    pub(crate) plan: RepositoryPlan,
    /// Whether an administrator has released the hold.
    pub(crate) confirmed: bool,
}

/// Outcome of harvesting, or of forgetting, a repository.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HarvestEnd {
    /// All new records are in the collection.
    Finished,
    /// The harvest would lose many records, and waits for an administrator.
    Held,
    /// The harvest failed, and is on the list of problems.
    Failed,
    /// The harvest's time was up after some progress, or earlier records were damaged meanwhile:
    /// the next harvest begins immediately.
    GoesOn,
    /// The harvest was stopped.
    Stopped,
    /// The repository is no longer in the settings, and its records have been deleted.
    Forgotten,
}

impl HarvestJob {
    fn url(&self) -> &str {
        self.plan.repository.url()
    }

    /// Returns the fingerprint of the settings that records depend on. As for files, the gatherer's
    /// name and port are not included.
    fn fingerprint(&self) -> u64 {
        let keep_original = self.plan.repository.oai.keep_original.to_string();
        let lifetimes = ["Time-to-Live", "Refresh-Rate"];
        let attributes = self.plan.identity.attributes.iter();
        let lifetimes = attributes.filter(|(name, _)| lifetimes.contains(&name.as_str()));
        let parts = lifetimes.map(|(_, value)| value.as_str());
        let parts: Vec<&str> = [FORM, &keep_original].into_iter().chain(parts).collect();
        md5_prefix(Md5::of(parts.join("\u{0}").as_bytes()))
    }
}

/// Harvests a repository from its checkpoint, until the end of the list or a stop.
///
/// # Errors
///
/// The collection failed: committed changes stay, and the next harvest goes on from there.
pub(crate) async fn harvest(
    site: Arc<Site>,
    it: HarvestJob,
    stop: Shutdown,
) -> Result<HarvestEnd, collection::Error> {
    let url = it.url().to_owned();
    let ended = run(&site, it, stop).await;
    site.repositories.show(&url, None);
    ended
}

async fn run(
    site: &Arc<Site>,
    it: HarvestJob,
    stop: Shutdown,
) -> Result<HarvestEnd, collection::Error> {
    let url = it.url().to_owned();
    let settings = &it.plan.repository.oai;
    let target = Target::new(site.collection.clone(), url.clone(), it.plan.identity.clone());
    let mut target = target.keep_original(settings.keep_original).confirmed(it.confirmed);
    let checkpoint = begin(site, &it, &mut target).await?;
    let (repository, settings) = (it.repository.clone(), settings.settings(&url));
    let mut running = Running::new(repository, settings, checkpoint, Bounds::default(), stop);
    site.repositories.show(&url, Some(running.activity()));
    let mut has_progress = false;
    loop {
        match running.next().await {
            Step::Stopped => return Ok(HarvestEnd::Stopped),
            Step::Batch(part) => match target.store(*part, running.prefix()).await {
                Ok(stored) => {
                    count(site, &stored);
                    has_progress = true;
                }
                Err(collection::Error::Loss { lost, of, .. }) => {
                    return hold(site, &url, lost, of).await;
                }
                // The records only have to be read again: no wait is necessary.
                Err(error @ collection::Error::SetBack { .. }) => {
                    tracing::info!("{error}");
                    return Ok(HarvestEnd::GoesOn);
                }
                Err(error) => return Err(error),
            },
            Step::End(end) => {
                let ended = outcome_of(&end, has_progress);
                if end.outcome.is_err() {
                    target.store_end(&end.checkpoint).await?;
                }
                if ended == HarvestEnd::Finished {
                    finish(site, &it).await?;
                }
                report(site, &url, &end, ended);
                return Ok(ended);
            }
        }
    }
}

/// Returns the outcome of a harvest. `has_progress` says whether it stored any records.
fn outcome_of(end: &End, has_progress: bool) -> HarvestEnd {
    match &end.outcome {
        // The next harvest requests the missing records again.
        Ok(()) | Err(Failure::Gaps { .. }) => HarvestEnd::Finished,
        Err(Failure::TimeUp { .. }) if has_progress => HarvestEnd::GoesOn,
        Err(_) => HarvestEnd::Failed,
    }
}

/// Returns the checkpoint from which the harvest goes on: the beginning, if records of the
/// repository were lost or now depend on other settings.
async fn begin(
    site: &Arc<Site>,
    it: &HarvestJob,
    target: &mut Target,
) -> Result<Checkpoint, collection::Error> {
    let mut checkpoint = target.checkpoint().await?;
    let (note, fingerprint) = (site.repositories.note(it.url()), it.fingerprint());
    if note.regather == Regather::Asked || note.settings != fingerprint {
        checkpoint.forget_progress();
        target.store_end(&checkpoint).await?;
        let begun = move |it: &mut RepositoryNote| {
            (it.regather, it.settings) = (Regather::UnderWay, fingerprint);
        };
        change(site, it.url(), begun).await?;
    }
    Ok(checkpoint)
}

/// Counts the changes of a part, and reports its problems.
fn count(site: &Site, stored: &Stored) {
    let applied = &stored.applied;
    site.metrics.commits.fetch_add(1, Relaxed);
    site.count_changes(applied.updated, applied.deleted);
    for (identifier, problem) in &stored.named {
        site.problem(identifier.clone(), problem.kind.name(), problem.message.clone());
    }
    site.publish();
}

/// Reports quarantined records, warnings and the failure of a harvest, if any.
fn report(site: &Site, url: &str, end: &End, ended: HarvestEnd) {
    let report = &end.report;
    for record in &report.quarantine {
        let object = record.identifier.clone().unwrap_or_else(|| url.to_owned());
        let message = format!("byte {} of a response: {}", record.offset, record.problem);
        site.problem(object, QUARANTINED_PROBLEM, message);
    }
    let mut problems = lock(&site.problems);
    report.recovered.iter().for_each(|it| problems.cure(it, QUARANTINED_PROBLEM));
    drop(problems);
    for (warning, count) in &report.warnings {
        let times = if *count == 1 { String::new() } else { format!(" ({count} times)") };
        site.problem(url.to_owned(), "odd-repository", format!("{warning}{times}"));
    }
    let (records, requests, full) = (report.records, report.requests, report.full);
    match &end.outcome {
        Ok(()) => tracing::info!(root = url, records, requests, full, "harvested"),
        Err(failure) if ended == HarvestEnd::GoesOn => {
            tracing::info!(root = url, records, requests, full, "the harvest goes on: {failure}");
        }
        Err(failure @ Failure::Gaps { .. }) => {
            tracing::warn!(root = url, records, requests, full, "harvested, but: {failure}");
            let message = format!("{failure}; the next harvest asks for them again");
            site.problem(url.to_owned(), GAPS_PROBLEM, message);
        }
        Err(failure) => {
            tracing::warn!(root = url, records, requests, full, "not all was harvested: {failure}");
            let message = format!("{failure}; the next harvest goes on from there");
            site.problem(url.to_owned(), HARVEST_PROBLEM, message);
        }
    }
}

/// Notes that deletions are held until an administrator confirms them.
async fn hold(
    site: &Arc<Site>,
    url: &str,
    lost: u64,
    of: u64,
) -> Result<HarvestEnd, collection::Error> {
    let hold = Some(Hold::Lost { lost, of });
    change(site, url, move |it| (it.hold, it.held) = (hold, lost)).await?;
    let why = format!("{lost} of {of} records are gone at once");
    tracing::warn!(root = url, held = lost, "{why}: nothing is deleted");
    let message = format!(
        "{why}: they are kept until they are back, or `harvest gatherer confirm` (of `harvest up`: \
         `--confirm`) says that they are gone"
    );
    site.problem(url.to_owned(), "held", message);
    Ok(HarvestEnd::Held)
}

/// Notes that the last part has confirmed all live records.
async fn finish(site: &Arc<Site>, it: &HarvestJob) -> Result<(), collection::Error> {
    let at = clock::now_ms();
    let finished = move |it: &mut RepositoryNote| {
        let regather = match it.regather {
            // Records were lost since this harvest began.
            Regather::Asked => Regather::Asked,
            Regather::No | Regather::UnderWay => Regather::No,
        };
        *it = RepositoryNote {
            confirmed: Some(at),
            regather,
            hold: None,
            held: 0,
            settings: it.settings,
        };
    };
    change(site, it.url(), finished).await?;
    let (seen, url) = (Arc::clone(site), it.url().to_owned());
    let cured = ["held", HARVEST_PROBLEM, GAPS_PROBLEM];
    cured.iter().for_each(|kind| lock(&site.problems).cure(it.url(), kind));
    blocking(move || {
        seen.handle_finished_root(&url)?;
        seen.end_pass();
        Ok(())
    })
    .await
}

/// Deletes the records of a repository that is no longer in the settings; if there are many, only
/// after a confirmation. Blocks.
pub(crate) fn forget(
    site: &Site,
    url: &str,
    confirmed: bool,
) -> Result<HarvestEnd, collection::Error> {
    let objects = site.count_records_of(url)?;
    if LOST_FILES_MAX < objects && !confirmed {
        site.repositories.change(&site.collection, url, |it| {
            if it.hold != Some(Hold::Removed) {
                (it.hold, it.held) = (Some(Hold::Removed), objects);
            }
        })?;
        let message = format!(
            "the root is no longer in the settings: its {objects} records are kept until it is \
             back, or `harvest gatherer confirm --root {url}` says that it is gone"
        );
        site.problem(url.to_owned(), "held", message);
        return Ok(HarvestEnd::Held);
    }
    let applied = site.collection.remove_source(url, Stamp(clock::now_ms()))?;
    site.count_changes(0, applied.deleted);
    site.repositories.forget(&site.collection, url)?;
    let mut problems = lock(&site.problems);
    ["held", HARVEST_PROBLEM].iter().for_each(|kind| problems.cure(url, kind));
    Ok(HarvestEnd::Forgotten)
}

async fn change(
    site: &Arc<Site>,
    url: &str,
    change: impl FnOnce(&mut RepositoryNote) + Send + 'static,
) -> Result<(), collection::Error> {
    let (site, url) = (site.clone(), url.to_owned());
    blocking(move || site.repositories.change(&site.collection, &url, change)).await
}
