//! The schedule of roots elsewhere, repositories and web sites: each has its own times, independent of
//! the passes over trees.
//!
//! A harvest goes on from the checkpoint that the previous one stored in the collection. At the end
//! of a harvest, all live records of the repository are confirmed. A harvest that fails is repeated
//! after a while, and goes on from its checkpoint. A harvest that would lose many records is held,
//! like a tree's pass, until an administrator confirms it.

mod crawling;
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

use self::harvest::{HarvestEnd, HarvestJob};
use crate::error::Error;
use crate::lock::lock;
use crate::problems::HARVEST_PROBLEM;
use crate::requests::Requests;
use crate::shared::{Shared, retry_wait};
use crate::site::plan::{self, RemotePlan, RepositoryPlan};
use crate::spec;

/// Maximum number of repositories that are harvested at the same time.
const HARVESTS_MAX: usize = 4;

/// Maximum number of sites that are crawled at the same time. A crawl may only wait, for up to a day if its host asks
/// for that (`Retry-After`), so that few would keep all others waiting. Each has `workers` + 2 threads, at most
/// `workers` processes that read foreign bytes, and up to 56 MiB of what waits to be summarized and committed, beside
/// its URLs and the answers under way.
const CRAWLS_MAX: usize = 16;

/// Wait after the first failed harvest; doubled after each further failure in a row.
const RETRY: Duration = Duration::from_secs(60);

/// Maximum wait after failures; a shorter interval of the root takes precedence.
const RETRY_MAX: Duration = Duration::from_secs(6 * 3_600);

/// Maximum time that the shutdown waits for harvests under way.
const STOP_WAIT: Duration = Duration::from_millis(900);

/// Due time of a root under harvest, from now: the end, or a request, sets the real due time.
const FAR_FUTURE: Duration = Duration::from_secs(365 * 24 * 3_600);

struct Schedule {
    /// The root's plan; `None` if it is no longer in the settings, and its records have to be
    /// deleted.
    plan: Option<RemotePlan>,
    due: Instant,
    /// Stops the harvest under way, if there is one.
    under_way: Option<Shutdown>,
    /// Number of failed harvests in a row.
    failures: u32,
    /// Whether an administrator has released the hold; stays true until a harvest has finished.
    confirmed: bool,
    /// Whether the next crawl asks for all that is known, not for what is due alone.
    is_full: bool,
    /// Numbers of waiters: for the next harvest, and for the one under way.
    waiters: (u64, u64),
}

impl Schedule {
    /// Returns whether the root is a repository; what is forgotten counts among the crawls.
    fn is_repository(&self) -> bool {
        matches!(self.plan, Some(RemotePlan::Repository(_)))
    }
}

struct Harvests {
    shared: Arc<Shared>,
    shutdown: Shutdown,
    client: Client,
    /// Pacing of requests to hosts, shared by all roots.
    hosts: Hosts,
    schedules: BTreeMap<String, Schedule>,
    tasks: JoinSet<Result<HarvestEnd, collection::Error>>,
    urls: HashMap<task::Id, String>,
}

/// Harvests until the shutdown starts.
///
/// # Errors
///
/// The collection has failed and must be opened again: stop, then start the gatherer anew.
pub(crate) async fn run(shared: Arc<Shared>, shutdown: Shutdown) -> Result<(), Error> {
    let client = Client::new(shared.control.client_settings());
    let mut harvests = Harvests {
        shared,
        shutdown: shutdown.clone(),
        client,
        hosts: Hosts::default(),
        schedules: BTreeMap::new(),
        tasks: JoinSet::new(),
        urls: HashMap::new(),
    };
    harvests.update_schedules();
    let outcome = harvests.run_loop().await;
    // Harvests under way notice the shutdown, and stop between two parts.
    shutdown.start();
    let stopped = async { while harvests.tasks.join_next().await.is_some() {} };
    if tokio::time::timeout(STOP_WAIT, stopped).await.is_err() {
        tracing::warn!("a harvest is still storing what it brought; not waiting for it");
    }
    outcome
}

impl Harvests {
    async fn run_loop(&mut self) -> Result<(), Error> {
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
                () = shared.site.repositories.requested.notified() => {}
                () = tokio::time::sleep_until(wake.into()) => {}
            }
        }
    }

    /// Returns the time at which the next harvest that can begin is due.
    fn next_wake(&self) -> Instant {
        let (harvests, crawls) = self.room();
        let has_room = |it: &&Schedule| 0 < if it.is_repository() { harvests } else { crawls };
        let waiting = self.schedules.values().filter(|it| it.under_way.is_none());
        let due = waiting.filter(has_room).map(|it| it.due).min();
        due.unwrap_or_else(|| clock::monotonic() + FAR_FUTURE)
    }

    /// Returns how many more harvests, and crawls, may begin now.
    fn room(&self) -> (usize, usize) {
        let under_way = self.schedules.values().filter(|it| it.under_way.is_some());
        let (harvests, crawls): (Vec<_>, Vec<_>) = under_way.partition(|it| it.is_repository());
        (HARVESTS_MAX.saturating_sub(harvests.len()), CRAWLS_MAX.saturating_sub(crawls.len()))
    }

    /// Updates the schedules: of the repositories in the settings, and of others that were
    /// harvested before.
    fn update_schedules(&mut self) {
        let (plans, now) = (self.shared.plans(), clock::monotonic());
        let is_first = self.schedules.is_empty();
        let site = &self.shared.site;
        // The roots are in memory, and were read when the collection was opened.
        let crawled = site.loaded_roots().into_iter().filter(|it| spec::is_remote_url(it));
        let known = site.repositories.known().into_iter().chain(crawled);
        let mut wanted: BTreeMap<String, Option<RemotePlan>> =
            known.map(|url| (url, None)).collect();
        wanted.extend(plan::remotes(&plans).map(|it| (it.url().to_owned(), Some(it.clone()))));
        for (url, plan) in wanted {
            let schedule = self.schedules.entry(url).or_insert_with(|| Schedule {
                plan: None,
                due: now,
                under_way: None,
                failures: 0,
                confirmed: false,
                is_full: true,
                waiters: (u64::from(is_first && plan.is_some()), 0),
            });
            let is_same = match (&schedule.plan, &plan) {
                (Some(before), Some(now)) => before.is_same(now),
                (before, now) => before.is_none() && now.is_none(),
            };
            if !is_same {
                (schedule.due, schedule.failures, schedule.is_full) = (now, 0, true);
                // A harvest under way uses the old settings, and is stopped.
                schedule.under_way.iter().for_each(Shutdown::start);
            }
            schedule.plan = plan;
        }
    }

    fn handle_requests(&mut self) {
        let repositories = &self.shared.site.repositories;
        let Requests { gather, confirm, reload } =
            std::mem::take(&mut *lock(&repositories.requests));
        if reload {
            self.update_schedules();
        }
        // A repository that has been forgotten will not be harvested.
        let forgotten = confirm.iter().filter(|it| !self.schedules.contains_key(*it)).count();
        self.shared.site.repositories.ended(forgotten as u64);
        let now = clock::monotonic();
        let doubted = self.shared.site.repositories.doubted();
        for (url, schedule) in &mut self.schedules {
            schedule.confirmed |= confirm.contains(url);
            schedule.waiters.0 += u64::from(confirm.contains(url));
            schedule.is_full |= gather || confirm.contains(url) || doubted.contains(url);
            let is_free = schedule.under_way.is_none() && schedule.failures == 0;
            if gather || confirm.contains(url) || (is_free && doubted.contains(url)) {
                schedule.due = schedule.due.min(now);
            }
        }
    }

    fn start_due(&mut self) {
        let (now, (mut harvests, mut crawls)) = (clock::monotonic(), self.room());
        let mut waiting: Vec<(&String, &mut Schedule)> = self
            .schedules
            .iter_mut()
            .filter(|(_, it)| it.under_way.is_none() && it.due <= now)
            .collect();
        waiting.sort_by_key(|(_, it)| it.due);
        for (url, schedule) in waiting {
            let room = if schedule.is_repository() { &mut harvests } else { &mut crawls };
            if *room == 0 {
                continue;
            }
            *room -= 1;
            let (site, stop) = (self.shared.site.clone(), self.shutdown.child());
            schedule.under_way = Some(stop.clone());
            schedule.waiters.1 = std::mem::take(&mut schedule.waiters.0);
            // This harvest does not serve later requests.
            schedule.due = now + FAR_FUTURE;
            let confirmed = schedule.confirmed;
            let is_full = std::mem::take(&mut schedule.is_full);
            let task = match schedule.plan.clone() {
                Some(RemotePlan::Repository(plan)) => {
                    let job = job(*plan, self.client.clone(), self.hosts.clone(), confirmed);
                    self.tasks.spawn(harvest::harvest(site, job, stop))
                }
                Some(RemotePlan::Web(plan)) => {
                    let extra_roots = self.shared.control.client_settings().extra_roots;
                    let client = (self.client.clone(), extra_roots);
                    let how = (confirmed, is_full);
                    let crawl = move || crawling::crawl(&site, &plan, client, how, &stop);
                    self.tasks.spawn_blocking(crawl)
                }
                None if site.repositories.known().contains(url) => {
                    let url = url.clone();
                    self.tasks.spawn_blocking(move || harvest::forget(&site, &url, confirmed))
                }
                None => {
                    let url = url.clone();
                    let forget = move || crawling::forget(&site, &url, confirmed, &stop);
                    self.tasks.spawn_blocking(forget)
                }
            };
            self.urls.insert(task.id(), url.clone());
        }
    }

    fn handle_ended(
        &mut self,
        ended: Result<(task::Id, Result<HarvestEnd, collection::Error>), JoinError>,
    ) -> Result<(), Error> {
        let id = ended.as_ref().map_or_else(JoinError::id, |(id, _)| *id);
        let Some(url) = self.urls.remove(&id) else { return Ok(()) };
        let ended = match ended {
            Ok((_, Ok(ended))) => ended,
            Ok((_, Err(error))) if error.may_pass() && self.shared.config().wait_for_space => {
                tracing::error!(root = url, %error, "cannot commit a harvest; trying again");
                self.shared.site.problem(url.clone(), HARVEST_PROBLEM, error.to_string());
                HarvestEnd::Failed
            }
            Ok((_, Err(error))) => {
                return Err(Error::collection(&self.shared.config().daemon.data, &error));
            }
            Err(fault) => {
                tracing::error!(root = url, %fault, "a harvest failed");
                self.shared.site.problem(url.clone(), "fault", fault.to_string());
                HarvestEnd::Failed
            }
        };
        let now = clock::monotonic();
        let Some(schedule) = self.schedules.get_mut(&url) else { return Ok(()) };
        schedule.under_way = None;
        self.shared.site.repositories.ended(std::mem::take(&mut schedule.waiters.1));
        let interval = schedule.plan.as_ref().map_or(RETRY_MAX, RemotePlan::interval);
        let next = match ended {
            HarvestEnd::Finished => {
                (schedule.failures, schedule.confirmed) = (0, false);
                interval
            }
            HarvestEnd::Held => {
                schedule.failures = 0;
                interval
            }
            HarvestEnd::Failed => {
                schedule.failures = schedule.failures.saturating_add(1);
                schedule.is_full = true;
                retry_wait(schedule.failures, RETRY, RETRY_MAX).min(interval)
            }
            HarvestEnd::GoesOn => {
                schedule.failures = 0;
                Duration::ZERO
            }
            // A reload has stopped the harvest, and has set the next due time.
            HarvestEnd::Stopped => FAR_FUTURE,
            HarvestEnd::Forgotten => {
                self.shared.site.repositories.ended(schedule.waiters.0);
                self.schedules.remove(&url);
                self.shared.site.publish();
                return Ok(());
            }
        };
        schedule.due = schedule.due.min(now + next);
        self.shared.site.publish();
        Ok(())
    }
}

fn job(plan: RepositoryPlan, client: Client, hosts: Hosts, confirmed: bool) -> HarvestJob {
    let repository = &plan.repository;
    let (token, shown) = (&repository.token, &repository.certificate);
    let credentials = exchange::source::credentials(token.as_ref(), shown.as_deref());
    let access = repository.oai.access(credentials, repository.allow_private);
    let repository = harvester::Repository::new(client, repository.base_url.clone(), access)
        .pacing(hosts, repository.oai.delay);
    HarvestJob { repository, plan, confirmed }
}
