//! A whole repository, harvested: parts of a list become changes of the collection, each with the
//! checkpoint behind it in one commit.
//!
//! What is asked for and in which order is `oai::harvest`'s, how it is asked and stored
//! `exchange::harvester`'s; here is what a gatherer makes of it: counts, problems with names, holds, and
//! what is remembered when a harvest has come to its end.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use collection::Stamp;
use essence::print::front;
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
use crate::site::Site;
use crate::site::plan::RepositoryPlan;

/// Form of the records of repositories: a new number has all of them harvested again.
const FORM: &str = "2";

/// Kind of the problem that a repository cannot send records of some dates; all others came.
const GAPS_PROBLEM: &str = "gaps";

/// What is to be harvested, and how.
pub(crate) struct Harvesting {
    /// How it is reached.
    pub(crate) asking: harvester::Repository,
    pub(crate) plan: RepositoryPlan,
    /// Whether an administrator has released what is held.
    pub(crate) confirmed: bool,
}

/// How a harvest ended, or the forgetting of one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ended {
    /// Everything that is new is in the collection.
    Finished,
    /// It would lose much, and waits for an administrator.
    Held,
    /// It could not be finished, and is on the list of problems.
    Failed,
    /// It was not at its end after the longest time, and has come further, or what came before was damaged
    /// meanwhile: the next one goes on at once.
    GoesOn,
    /// It was told to stop.
    Stopped,
    /// The repository is no longer in the settings, and nothing is left of it.
    Forgotten,
}

impl Harvesting {
    fn url(&self) -> &str {
        self.plan.repository.url()
    }

    /// Fingerprint of what records depend on beside the metadata. As with files, not all is harvested again
    /// because the gatherer goes by another name or port.
    fn print(&self) -> u64 {
        let keep_original = self.plan.repository.oai.keep_original.to_string();
        let lives = ["Time-to-Live", "Refresh-Rate"];
        let attributes = self.plan.identity.attributes.iter();
        let lives = attributes.filter(|(name, _)| lives.contains(&name.as_str()));
        let parts = lives.map(|(_, value)| value.as_str());
        let parts: Vec<&str> = [FORM, &keep_original].into_iter().chain(parts).collect();
        front(Md5::of(parts.join("\u{0}").as_bytes()))
    }
}

/// Harvests a repository from its checkpoint on, until it has come to its end or is told to stop.
///
/// # Errors
///
/// The collection failed: what was committed stays, and the harvest goes on from there.
pub(crate) async fn harvest(
    site: Arc<Site>,
    it: Harvesting,
    stop: Shutdown,
) -> Result<Ended, collection::Error> {
    let url = it.url().to_owned();
    let settings = &it.plan.repository.oai;
    let target = Target::new(site.collection.clone(), url.clone(), it.plan.identity.clone());
    let mut target = target.keep_original(settings.keep_original).confirmed(it.confirmed);
    let checkpoint = begin(&site, &it, &mut target).await?;
    let (asking, settings) = (it.asking.clone(), settings.settings(&url));
    let mut running = Running::new(asking, settings, checkpoint, Bounds::default(), stop);
    let mut came = false;
    loop {
        match running.next().await {
            Step::Stopped => return Ok(Ended::Stopped),
            Step::Part(part) => match target.store(*part, running.prefix()).await {
                Ok(stored) => {
                    count(&site, &stored);
                    came = true;
                }
                Err(collection::Error::Loss { lost, of, .. }) => {
                    return hold(&site, &url, lost, of).await;
                }
                // Nobody is to wait for what is only to be read again.
                Err(error @ collection::Error::SetBack { .. }) => {
                    tracing::info!("{error}");
                    return Ok(Ended::GoesOn);
                }
                Err(error) => return Err(error),
            },
            Step::End(end) => {
                let ended = ended(&end, came);
                if end.outcome.is_err() {
                    target.store_end(&end.checkpoint).await?;
                }
                if ended == Ended::Finished {
                    finish(&site, &it).await?;
                }
                report(&site, &url, &end, ended);
                return Ok(ended);
            }
        }
    }
}

/// What the end of a harvest counts as, in which records `came` or not.
fn ended(end: &End, came: bool) -> Ended {
    match &end.outcome {
        // What is missing is asked for again by the next one.
        Ok(()) | Err(Failure::Gaps { .. }) => Ended::Finished,
        Err(Failure::TimeUp { .. }) if came => Ended::GoesOn,
        Err(_) => Ended::Failed,
    }
}

/// Where the harvest goes on. If records of the repository have been lost, or would be made otherwise
/// now, it is one of everything.
async fn begin(
    site: &Arc<Site>,
    it: &Harvesting,
    target: &mut Target,
) -> Result<Checkpoint, collection::Error> {
    let mut checkpoint = target.checkpoint().await?;
    let (note, print) = (site.repositories.note(it.url()), it.print());
    if note.regather == Regather::Asked || note.settings != print {
        checkpoint.forget_progress();
        target.store_end(&checkpoint).await?;
        let begun = move |it: &mut RepositoryNote| {
            (it.regather, it.settings) = (Regather::UnderWay, print);
        };
        change(site, it.url(), begun).await?;
    }
    Ok(checkpoint)
}

/// Counts what a part brought, and names what is wrong with it.
fn count(site: &Site, stored: &Stored) {
    let applied = &stored.applied;
    site.metrics.commits.fetch_add(1, Relaxed);
    for (metric, count, number) in [
        (&site.metrics.updated, &site.counts.updated, applied.updated),
        (&site.metrics.deleted, &site.counts.deleted, applied.deleted),
    ] {
        metric.fetch_add(number, Relaxed);
        count.fetch_add(number, Relaxed);
    }
    for (identifier, problem) in &stored.named {
        site.problem(identifier.clone(), problem.kind.name(), problem.message.clone());
    }
    site.publish();
}

/// Puts on the list what was odd about a harvest, and why it failed if it did.
fn report(site: &Site, url: &str, end: &End, ended: Ended) {
    let report = &end.report;
    for record in &report.quarantine {
        let object = record.identifier.clone().unwrap_or_else(|| url.to_owned());
        let message = format!("byte {} of a response: {}", record.offset, record.problem);
        site.problem(object, "quarantined", message);
    }
    for (warning, count) in &report.warnings {
        let times = if *count == 1 { String::new() } else { format!(" ({count} times)") };
        site.problem(url.to_owned(), "odd-repository", format!("{warning}{times}"));
    }
    let (records, requests, full) = (report.records, report.requests, report.full);
    match &end.outcome {
        Ok(()) => tracing::info!(root = url, records, requests, full, "harvested"),
        Err(failure) if ended == Ended::GoesOn => {
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

/// Notes that deletions wait for an administrator.
async fn hold(site: &Arc<Site>, url: &str, lost: u64, of: u64) -> Result<Ended, collection::Error> {
    let hold = Some(Hold::Lost { lost, of });
    change(site, url, move |it| (it.hold, it.held) = (hold, lost)).await?;
    let why = format!("{lost} of {of} records are gone at once");
    tracing::warn!(root = url, held = lost, "{why}: nothing is deleted");
    let message = format!(
        "{why}: they are kept until they are back or POST /confirm?root={url} says that they are gone"
    );
    site.problem(url.to_owned(), "held", message);
    Ok(Ended::Held)
}

/// Notes that everything that lives has been confirmed, as the last part did.
async fn finish(site: &Arc<Site>, it: &Harvesting) -> Result<(), collection::Error> {
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
    let caught_up = tokio::task::spawn_blocking(move || seen.handle_seen(&url)).await;
    caught_up.unwrap_or_else(|fault| std::panic::resume_unwind(fault.into_panic()))?;
    site.metrics.passes.fetch_add(1, Relaxed);
    let mut problems = lock(&site.problems);
    let cured = ["held", HARVEST_PROBLEM, GAPS_PROBLEM];
    cured.iter().for_each(|kind| problems.cure(it.url(), kind));
    Ok(())
}

/// Deletes what a repository brought that is no longer in the settings; much of it only once
/// confirmed. Blocks.
///
/// # Errors
///
/// The collection cannot be read or written.
pub(crate) fn forget(site: &Site, url: &str, confirmed: bool) -> Result<Ended, collection::Error> {
    let objects = site.held_of(url)?;
    if LOST_FILES_MAX < objects && !confirmed {
        site.repositories.change(&site.collection, url, |it| {
            if it.hold != Some(Hold::Removed) {
                (it.hold, it.held) = (Some(Hold::Removed), objects);
            }
        })?;
        let message = format!(
            "the root is no longer in the settings: its {objects} records are kept until it is \
             back or POST /confirm?root={url} says that it is gone"
        );
        site.problem(url.to_owned(), "held", message);
        return Ok(Ended::Held);
    }
    let applied = site.collection.remove_source(url, Stamp(clock::now_ms()))?;
    site.metrics.deleted.fetch_add(applied.deleted, Relaxed);
    site.counts.deleted.fetch_add(applied.deleted, Relaxed);
    site.repositories.forget(&site.collection, url)?;
    let mut problems = lock(&site.problems);
    ["held", HARVEST_PROBLEM].iter().for_each(|kind| problems.cure(url, kind));
    Ok(Ended::Forgotten)
}

async fn change(
    site: &Arc<Site>,
    url: &str,
    change: impl FnOnce(&mut RepositoryNote) + Send + 'static,
) -> Result<(), collection::Error> {
    let (site, url) = (site.clone(), url.to_owned());
    let commit = move || site.repositories.change(&site.collection, &url, change);
    let done = tokio::task::spawn_blocking(commit).await;
    done.unwrap_or_else(|fault| std::panic::resume_unwind(fault.into_panic()))
}
