//! When which repository is harvested, and what becomes of it: each root that is a repository has a
//! schedule of its own, beside the passes over the trees.
//!
//! A harvest goes on from the checkpoint that the last one left in the collection. When one has come to
//! its end, everything that its repository has is confirmed. One that could not be finished is tried
//! again after a while, and goes on from where it came to; one that would lose much is held, as a tree's
//! pass is, until an administrator confirms it.

mod harvest;

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::{Duration, Instant};

use exchange::harvester;
use net::client::Client;
use net::clock;
use net::pace::Hosts;
use net::shutdown::Shutdown;
use tokio::task::{self, JoinError, JoinSet};

use self::harvest::{Ended, Harvesting};
use crate::error::Error;
use crate::lock::lock;
use crate::problems::HARVEST_PROBLEM;
use crate::requests::Requests;
use crate::shared::Shared;
use crate::site::plan::{self, RepositoryPlan};

/// Most repositories that are harvested at once.
const HARVESTS_MAX: usize = 4;

/// How long after a harvest that failed the next one begins; after each further one in a row it is twice
/// as long as before.
const RETRY: Duration = Duration::from_secs(60);

/// Longest wait for that, if the root's interval is not shorter.
const RETRY_MAX: Duration = Duration::from_secs(6 * 3_600);

/// How long harvests under way are waited for at the end.
const STOP_WAIT: Duration = Duration::from_millis(900);

/// Longer than any harvest takes: when the next one is due is set at its end, unless it is asked for.
const UNASKED: Duration = Duration::from_secs(365 * 24 * 3_600);

/// A repository and its schedule.
struct Standing {
    /// `None` when it is no longer in the settings: what it brought is to be deleted.
    plan: Option<RepositoryPlan>,
    due: Instant,
    /// What stops the harvest under way, if one is.
    under_way: Option<Shutdown>,
    /// Harvests in a row that failed.
    failures: u32,
    /// Whether an administrator has released what is held, until a harvest has finished.
    confirmed: bool,
    /// How many times somebody has begun to wait for its next harvest, and for the one under way.
    awaited: (u64, u64),
}

/// The loop's state.
struct Harvests {
    shared: Arc<Shared>,
    shutdown: Shutdown,
    client: Client,
    /// When hosts may be asked: roots share them.
    hosts: Hosts,
    /// By base URL.
    standings: BTreeMap<String, Standing>,
    tasks: JoinSet<Result<Ended, collection::Error>>,
    /// Which repository a task is for.
    urls: HashMap<task::Id, String>,
}

/// Harvests until the shutdown starts.
///
/// # Errors
///
/// The collection has failed and must be opened again: stop, and start anew.
pub(crate) async fn run(shared: Arc<Shared>, shutdown: Shutdown) -> Result<(), Error> {
    let client = Client::new(shared.control.calling());
    let mut harvests = Harvests {
        shared,
        shutdown: shutdown.clone(),
        client,
        hosts: Hosts::default(),
        standings: BTreeMap::new(),
        tasks: JoinSet::new(),
        urls: HashMap::new(),
    };
    harvests.stand();
    let outcome = harvests.turn().await;
    // What is under way sees the shutdown, and stops between two parts.
    shutdown.start();
    let stopped = async { while harvests.tasks.join_next().await.is_some() {} };
    if tokio::time::timeout(STOP_WAIT, stopped).await.is_err() {
        tracing::warn!("a harvest is still storing what it brought; not waiting for it");
    }
    outcome
}

impl Harvests {
    async fn turn(&mut self) -> Result<(), Error> {
        loop {
            self.handle_requests();
            self.start_due();
            let wake = self.next_wake();
            let shared = self.shared.clone();
            tokio::select! {
                biased;
                () = self.shutdown.started() => return Ok(()),
                Some(ended) = self.tasks.join_next_with_id(), if !self.tasks.is_empty() => {
                    self.handle_ended(ended)?;
                }
                () = shared.site.repositories.asked.notified() => {}
                () = tokio::time::sleep_until(wake.into()) => {}
            }
        }
    }

    /// When the next harvest is due that can begin.
    fn next_wake(&self) -> Instant {
        let waiting = self.standings.values().filter(|it| it.under_way.is_none());
        let due = waiting.map(|it| it.due).min().filter(|_| self.tasks.len() < HARVESTS_MAX);
        due.unwrap_or_else(|| clock::monotonic() + UNASKED)
    }

    /// Sees which repositories there are: those of the settings, and others that were harvested before.
    fn stand(&mut self) {
        let (plans, now) = (self.shared.plans(), clock::monotonic());
        let is_start = self.standings.is_empty();
        let mut wanted: BTreeMap<String, Option<RepositoryPlan>> =
            self.shared.site.repositories.known().into_iter().map(|url| (url, None)).collect();
        wanted.extend(
            plan::repositories(&plans).map(|it| (it.repository.url().to_owned(), Some(it.clone()))),
        );
        for (url, plan) in wanted {
            let standing = self.standings.entry(url).or_insert_with(|| Standing {
                plan: None,
                due: now,
                under_way: None,
                failures: 0,
                confirmed: false,
                awaited: (u64::from(is_start && plan.is_some()), 0),
            });
            let before = standing.plan.as_ref().map(|it| &it.repository);
            if before != plan.as_ref().map(|it| &it.repository) {
                (standing.due, standing.failures) = (now, 0);
                // One under way is of other settings.
                standing.under_way.iter().for_each(Shutdown::start);
            }
            standing.plan = plan;
        }
    }

    fn handle_requests(&mut self) {
        let repositories = &self.shared.site.repositories;
        let Requests { gather, confirm, reload } =
            std::mem::take(&mut *lock(&repositories.requests));
        if reload {
            self.stand();
        }
        // Of one that is forgotten no harvest is to come.
        let forgotten = confirm.iter().filter(|it| !self.standings.contains_key(*it)).count();
        self.shared.site.repositories.ended(forgotten as u64);
        let now = clock::monotonic();
        let doubted = self.shared.site.repositories.doubted();
        for (url, standing) in &mut self.standings {
            standing.confirmed |= confirm.contains(url);
            standing.awaited.0 += u64::from(confirm.contains(url));
            let is_free = standing.under_way.is_none() && standing.failures == 0;
            if gather || confirm.contains(url) || (is_free && doubted.contains(url)) {
                standing.due = standing.due.min(now);
            }
        }
    }

    fn start_due(&mut self) {
        let now = clock::monotonic();
        let mut waiting: Vec<(&String, &mut Standing)> = self
            .standings
            .iter_mut()
            .filter(|(_, it)| it.under_way.is_none() && it.due <= now)
            .collect();
        waiting.sort_by_key(|(_, it)| it.due);
        for (url, standing) in waiting {
            if HARVESTS_MAX <= self.tasks.len() {
                break;
            }
            let (site, stop) = (self.shared.site.clone(), self.shutdown.child());
            standing.under_way = Some(stop.clone());
            standing.awaited.1 = std::mem::take(&mut standing.awaited.0);
            // Whatever asks for a harvest from here on is not served by this one.
            standing.due = now + UNASKED;
            let confirmed = standing.confirmed;
            let task = match standing.plan.clone() {
                Some(plan) => {
                    let repository = &plan.repository;
                    let (token, shown) = (&repository.token, &repository.certificate);
                    let credentials =
                        exchange::source::credentials(token.as_ref(), shown.as_deref());
                    let access = repository.oai.access(credentials, repository.allow_private);
                    let base = repository.base_url.clone();
                    let asking = harvester::Repository::new(self.client.clone(), base, access)
                        .pacing(self.hosts.clone(), repository.oai.delay);
                    let harvesting = Harvesting { asking, plan, confirmed };
                    self.tasks.spawn(harvest::harvest(site, harvesting, stop))
                }
                None => {
                    let url = url.clone();
                    self.tasks.spawn_blocking(move || harvest::forget(&site, &url, confirmed))
                }
            };
            self.urls.insert(task.id(), url.clone());
        }
    }

    fn handle_ended(
        &mut self,
        ended: Result<(task::Id, Result<Ended, collection::Error>), JoinError>,
    ) -> Result<(), Error> {
        let id = ended.as_ref().map_or_else(JoinError::id, |(id, _)| *id);
        let Some(url) = self.urls.remove(&id) else { return Ok(()) };
        let ended = match ended {
            Ok((_, Ok(ended))) => ended,
            Ok((_, Err(error))) if error.may_pass() && self.shared.config().wait_for_space => {
                tracing::error!(root = url, %error, "cannot commit a harvest; trying again");
                self.shared.site.problem(url.clone(), HARVEST_PROBLEM, error.to_string());
                Ended::Failed
            }
            Ok((_, Err(error))) => return Err(self.failed(&error)),
            Err(fault) => {
                tracing::error!(root = url, %fault, "a harvest failed");
                self.shared.site.problem(url.clone(), "fault", fault.to_string());
                Ended::Failed
            }
        };
        let now = clock::monotonic();
        let Some(standing) = self.standings.get_mut(&url) else { return Ok(()) };
        standing.under_way = None;
        self.shared.site.repositories.ended(std::mem::take(&mut standing.awaited.1));
        let interval = standing.plan.as_ref().map_or(RETRY_MAX, |it| it.repository.interval);
        let next = match ended {
            Ended::Finished => {
                (standing.failures, standing.confirmed) = (0, false);
                interval
            }
            Ended::Held => {
                standing.failures = 0;
                interval
            }
            Ended::Failed => {
                standing.failures = standing.failures.saturating_add(1);
                retry_wait(standing.failures).min(interval)
            }
            Ended::GoesOn => {
                standing.failures = 0;
                Duration::ZERO
            }
            // By a reload, which has said when the next one is due.
            Ended::Stopped => UNASKED,
            Ended::Forgotten => {
                self.shared.site.repositories.ended(standing.awaited.0);
                self.standings.remove(&url);
                self.shared.site.publish();
                return Ok(());
            }
        };
        standing.due = standing.due.min(now + next);
        self.shared.site.publish();
        Ok(())
    }

    fn failed(&self, error: &collection::Error) -> Error {
        let path = self.shared.config().daemon.data.join("collection");
        Error::Collection { path, message: error.to_string() }
    }
}

/// Returns how long to wait after this many failures in a row.
fn retry_wait(failures: u32) -> Duration {
    RETRY.saturating_mul(2_u32.saturating_pow(failures.saturating_sub(1))).min(RETRY_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_failure_is_waited_for_longer_and_never_too_long() {
        let waits = [1, 2, 3, 9, 10, u32::MAX].map(|it| retry_wait(it).as_secs());
        assert_eq!(waits, [60, 120, 240, 15_360, 21_600, 21_600]);
    }
}
