//! The daemon: opens the stored data, binds both listeners, and runs until the shutdown.

use std::fs;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use axum::Router;
use collection::feed::{FeedOptions, FeedServer};
use collection::{Author, Collection, Options, Recovery, SUPPRESSED_FILE, Stamp, Version};
use daemon::auth::{AdminToken, Guard};
use daemon::describe::Describer;
use daemon::health::{Check, Readiness};
use daemon::{Control, Data, Listeners};
use essence::worker::program::Programs;
use exchange::push::Notifier;
use net::clock;
use net::shutdown::Shutdown;
use tokio::sync::{Notify, watch};
use tokio::task::JoinSet;
use url::Url;
use web::Pages;

use crate::config::{COLLECTION, Config};
use crate::crawls::{self, Explanation};
use crate::error::Error;
use crate::lock::lock;
use crate::metrics::StageCount;
use crate::opener::Opener;
use crate::problems::Entry;
use crate::progress::{CrawlStatus, Progress, Status};
use crate::rounds;
use crate::shared::{FrontCheck, Shared};
use crate::site::Site;
use crate::site::plan::{self, Plan};
use crate::spec;
use crate::{harvests, serve};

/// Name of the folder in which the site's programs work.
const SCRATCH: &str = "scratch";

/// Maximum number of damaged members in the status.
const DAMAGED_MAX: usize = 100;

/// Maximum time that requests in progress may take after the shutdown has started.
const REQUESTS_DRAIN: Duration = Duration::from_millis(1_000);

/// Maximum time that the end waits for a commit under way.
const CLOSE: Duration = Duration::from_millis(600);

/// A gatherer that is bound and ready to run.
#[derive(Debug)]
pub struct Server {
    handle: Handle,
    fronts: Listeners,
    token: AdminToken,
    pages: Pages,
    admin_pages: Pages,
    /// Pages in place of the gatherer's own on the public listener.
    front: Option<Router>,
    /// Whether other users of this machine are refused.
    is_private: bool,
}

impl Server {
    /// Opens or creates the data directory and binds both listeners.
    ///
    /// # Errors
    ///
    /// The folder cannot be used, the collection is in use or damaged, a port is in use, or a
    /// pattern is not valid; the message says what to do.
    pub async fn bind(config: Config) -> Result<Self, Error> {
        let fronts = Listeners::bind(&config.daemon).await?;
        let (port, at) = (fronts.public_addr().port(), fronts.admin_addr());
        let control = fronts.control();
        let opened = tokio::task::spawn_blocking(move || {
            let settings = config.daemon.clone();
            let opened = open(config, port, control)?;
            settings.write_admin_address(at)?;
            Ok::<_, Error>(opened)
        });
        let opened = fronts.meanwhile("gatherer", opened).await;
        let opened = opened.map_err(|error| Error::Failed(error.to_string()))?;
        let (shared, token, pages, admin_pages) = opened?;
        let handle = Handle { shared: Arc::new(shared) };
        Ok(Self { handle, fronts, token, pages, admin_pages, front: None, is_private: false })
    }

    /// Puts `routes` in place of the gatherer's own pages on the public listener. The gatherer is
    /// ready only while `check` passes, too.
    #[must_use]
    pub fn with_front(
        mut self,
        routes: Router,
        check: impl Fn() -> Check + Send + Sync + 'static,
    ) -> Self {
        self.front = Some(routes);
        // Only this method sets it, on a server that does not run yet.
        let _set = self.handle.shared.front.set(FrontCheck(Box::new(check)));
        self
    }

    /// Refuses all users of this machine but the gatherer's own (on Linux; elsewhere they cannot be
    /// told apart). Both listeners have to be within this machine.
    #[must_use]
    pub fn for_user_alone(self) -> Self {
        Self { is_private: true, ..self }
    }

    /// Lets the browser of the gatherer's user have found files opened.
    #[must_use]
    pub fn with_opener(self, opener: Arc<Opener>) -> Self {
        // Only this method sets it, on a server that does not run yet.
        let _set = self.handle.shared.opener.set(opener);
        self
    }

    /// Returns the address of the public listener.
    pub fn local_addr(&self) -> SocketAddr {
        self.fronts.public_addr()
    }

    /// Returns the address of the admin listener.
    pub fn admin_addr(&self) -> SocketAddr {
        self.fronts.admin_addr()
    }

    /// Returns a handle to the server, which stays usable while the server runs.
    pub fn handle(&self) -> Handle {
        self.handle.clone()
    }

    /// Gathers and serves until the shutdown starts, then stops within two seconds. Afterwards the
    /// data directory is free, even if handles still exist.
    ///
    /// # Errors
    ///
    /// The collection has failed and must be opened again, or a listener is gone: start the
    /// gatherer anew.
    pub async fn run(self, shutdown: Shutdown) -> Result<(), Error> {
        let shared = self.handle.shared;
        let site = shared.site.clone();
        // The first task that ends, for whatever reason, ends the others.
        let child = shutdown.child();
        let options = FeedOptions { shutdown: child.clone(), ..FeedOptions::default() };
        let base_url = shared.config().daemon.base_url.clone();
        let options = options.owned_by(&shared.author, base_url.as_ref());
        let feed = FeedServer::new(shared.site.collection.clone(), options);
        let (notifier, stop) = (shared.notifier.clone(), child.clone());
        let public = serve::public(shared.clone(), self.front, self.pages, feed.clone());
        let guard = Guard { token: self.token, read: shared.config().daemon.admin_read };
        let admin = serve::admin(shared.clone(), guard, feed, &self.admin_pages);
        let (public, admin) = match self.is_private {
            true => (
                serve::for_user_alone(public, self.fronts.public_addr()),
                serve::for_user_alone(admin, self.fronts.admin_addr()),
            ),
            false => (public, admin),
        };
        let mut tasks = JoinSet::new();
        let served = self.fronts.serve(public, admin, REQUESTS_DRAIN, child.clone());
        tasks.spawn(async move { Ok(served.await?) });
        tasks.spawn(async move {
            notifier.run(stop).await;
            Ok(())
        });
        let (repository, until) = (shared.repository.clone(), child.clone());
        tasks.spawn(async move {
            repository.keep(until).await;
            Ok(())
        });
        tasks.spawn(harvests::run(shared.clone(), child.clone()));
        tasks.spawn(rounds::run(shared, child.clone()));
        let mut outcome = Ok(());
        while let Some(ended) = tasks.join_next().await {
            child.start();
            let ended = ended.unwrap_or_else(|error| Err(Error::Failed(error.to_string())));
            if outcome.is_ok() {
                outcome = ended;
            }
        }
        let closed = tokio::task::spawn_blocking(move || {
            site.store_problems();
            site.collection.close();
        });
        if tokio::time::timeout(CLOSE, closed).await.is_err() {
            tracing::warn!("a commit has not ended in time; not waiting for it");
        }
        outcome
    }
}

/// Handle to a gatherer: cheap to clone, usable while the gatherer runs and afterwards.
#[derive(Clone, Debug)]
pub struct Handle {
    pub(crate) shared: Arc<Shared>,
}

impl Handle {
    /// Returns a receiver of the progress, which is updated at most ten times a second.
    pub fn progress(&self) -> watch::Receiver<Progress> {
        self.shared.site.progress.subscribe()
    }

    /// Returns the state of the crawl of each root that has had one since the start.
    pub fn crawls(&self) -> Vec<CrawlStatus> {
        self.shared.site.crawls()
    }

    /// Returns the version of the gatherer's collection.
    pub fn version(&self) -> Version {
        self.shared.site.collection.version()
    }

    /// Returns the gatherer's collection, to read it in the same process.
    pub fn collection(&self) -> Collection {
        self.shared.site.collection.clone()
    }

    /// Returns a receiver of the collection's versions.
    pub fn versions(&self) -> watch::Receiver<Version> {
        self.shared.site.collection.watch()
    }

    /// Returns the gatherer's id: 16 hex digits.
    pub fn id(&self) -> &str {
        &self.shared.site.id
    }

    /// Returns the status for an administrator.
    pub fn status(&self) -> Status {
        let (shared, site) = (&self.shared, &self.shared.site);
        let health = site.collection.health();
        let annotations = lock(&site.annotating.counts).clone();
        Status {
            name: shared.config().name.clone(),
            id: site.id.clone(),
            software: env!("CARGO_PKG_VERSION").to_owned(),
            started: shared.started,
            version: site.collection.version().to_string(),
            objects: site.collection.len(),
            watch: shared.watching(),
            listening: shared.control.listening(),
            ready: self.ready(),
            collection_problem: health.refusing,
            damaged: health.damaged.iter().take(DAMAGED_MAX).map(ToString::to_string).collect(),
            damaged_total: health.damaged_total,
            fences_missing: shared.site.workers.missing(),
            workers_ended: shared.site.workers.ended(),
            annotations,
            takedowns: site.collection.takedowns(),
            push: shared.notifier.status(),
            progress: site.progress.borrow().clone(),
            problems: lock(&site.problems).by_kind().clone(),
            roots: site.roots(&shared.plans()),
        }
    }

    /// Returns whether the gatherer is ready. A gatherer in its first pass is ready, since it
    /// serves the records made so far. So is a gatherer with a held root, which is the
    /// administrator's matter. Blocks for a moment.
    pub fn ready(&self) -> Readiness {
        let mut checks = exchange::ready::checks(&self.shared.site.collection).to_vec();
        checks.extend(self.shared.front.get().map(|it| (it.0)()));
        Readiness::new(checks)
    }

    /// Returns the newest problems, newest first.
    pub fn problems(&self) -> Vec<Entry> {
        lock(&self.shared.site.problems).newest().cloned().collect()
    }

    /// Returns the counters of all stages, in the order of the route.
    pub fn stages(&self) -> [StageCount; 5] {
        self.shared.site.metrics.stages()
    }

    /// Requests a pass over all roots, and a harvest of all repositories. Each begins immediately,
    /// or after the one under way.
    pub fn gather(&self) {
        lock(&self.shared.requests).gather = true;
        self.shared.requested.notify_one();
        self.shared.site.repositories.request(|it| it.gather = true);
    }

    /// Returns what is known of a URL under each root that is a web site. Blocks.
    pub fn explain(&self, url: &Url) -> Vec<Explanation> {
        crawls::explain(&self.shared.site, &self.shared.plans(), url)
    }

    /// Pauses the crawls of a host, by its name or address, or resumes them.
    pub fn pause(&self, host: &str, is_paused: bool) {
        let host = &crawls::host_name(host);
        if is_paused {
            crawls::pause(&self.shared.site, host);
        } else {
            crawls::resume(&self.shared.site, host);
        }
    }

    /// Releases the hold on `root` (a URL from the status; `None` means every root) and requests a
    /// pass or harvest, which deletes the objects that are still missing then. Returns the released
    /// roots.
    pub fn confirm(&self, root: Option<&str>) -> Vec<String> {
        let held: Vec<String> = self
            .status()
            .roots
            .into_iter()
            .filter(|it| it.hold.is_some() && root.is_none_or(|root| root == it.url))
            .map(|it| it.url)
            .collect();
        let (harvested, walked): (Vec<String>, Vec<String>) =
            held.iter().cloned().partition(|url| spec::is_remote_url(url));
        if !walked.is_empty() {
            lock(&self.shared.requests).confirm.extend(walked);
            self.shared.requested.notify_one();
        }
        self.shared.site.repositories.confirm(harvested);
        self.shared.site.publish();
        held
    }

    /// Puts new settings in force: name, roots, patterns, maps, full text, times, limits and watch.
    /// A pass follows.
    ///
    /// # Errors
    ///
    /// The settings have mistakes, or differences that need a restart; in both cases nothing is
    /// changed.
    pub fn reload(&self, config: Config) -> Result<(), Error> {
        let shared = &self.shared;
        let before = shared.config();
        let mut settings = before.daemon.differences(&config.daemon);
        if before.push != config.push {
            settings.push("push");
        }
        if !settings.is_empty() {
            return Err(Error::NeedsRestart { settings });
        }
        let plans = Plan::of(&config, &shared.site.id, &shared.host, shared.port)?;
        shared.site.probe_fences(&plans);
        let daemon = serve::repository::daemon(&config, &shared.site.id, shared.started);
        shared.repository.set(config.oai.clone(), daemon);
        shared.control.reload(&config.daemon);
        shared.notifier.handle_access();
        *lock(&shared.plans) = Arc::new(plans);
        *lock(&shared.config) = Arc::new(config);
        lock(&shared.requests).reload = true;
        shared.requested.notify_one();
        shared.site.repositories.request(|it| it.reload = true);
        Ok(())
    }
}

/// Reports the problems found when the collection was opened.
fn report_recovery(site: &Site, recovery: &Recovery) {
    for cut in &recovery.cut {
        let object = spec::file_url(&cut.file);
        let what = "an unfinished commit was cut off";
        let message = format!("{what}: {} bytes at {}: {}", cut.bytes, cut.offset, cut.why);
        tracing::warn!(file = %cut.file.display(), "{message}");
        site.problem(object, "recovered", message);
    }
    if let Some(first) = recovery.damaged.first() {
        let count = recovery.damaged.len();
        let message = format!("{first}; {count} in all; their objects are gathered again");
        tracing::warn!("{message}");
        site.problem("-".to_owned(), "damaged", message);
    }
}

/// Opens all stored data. Blocks.
fn open(
    config: Config,
    port: u16,
    control: Control,
) -> Result<(Shared, AdminToken, Pages, Pages), Error> {
    let data = config.daemon.data.clone();
    let Data { id, identity, token } = Data::open(&data)?;
    let describer = Describer::open(&data, "gatherer", &id, identity.key())?;
    let author = Author { id: id.clone(), identity };
    let seen =
        exchange::repository::site(&config.name, config.daemon.base_url.as_ref(), &config.oai);
    let pages = Pages::new(seen, serve::TEMPLATES, None)
        .map_err(|error| Error::Failed(error.to_string()))?;
    // `base_url` does not apply to the admin pages.
    let admin_pages = Pages::new(web::Site::new(&*config.name), daemon::overview::TEMPLATES, None)
        .map_err(|error| Error::Failed(error.to_string()))?;
    let host = config.daemon.proxy().unwrap_or_else(host_name);
    let port = config.daemon.base_url.as_ref().and_then(Url::port_or_known_default).unwrap_or(port);
    let plans = Plan::of(&config, &id, &host, port)?;
    let failed = |error| Error::collection(&data, &error);
    let now = Stamp(clock::now_ms());
    let options = Options { suppressed: Some(data.join(SUPPRESSED_FILE)), ..Options::default() };
    let (collection, recovery) =
        Collection::open(&data.join(COLLECTION), options, now).map_err(failed)?;
    let (base_url, settings) = (config.daemon.base_url.clone(), config.push.clone());
    let notifier = Notifier::open(&data, base_url, settings, collection.clone(), &control)
        .map_err(|error| Error::Failed(error.to_string()))?;
    let programs = config.worker.clone().map(|starter| {
        Programs::new(starter, data.join(SCRATCH), clock::monotonic, clock::now_ms())
    });
    let site = Site::new(
        id,
        collection,
        (&config.roots, &data, config.bandwidth),
        (config.worker.clone(), programs),
    );
    site.probe_fences(&plans);
    report_recovery(&site, &recovery);
    // Done before the first file is read; otherwise files would be published without annotations.
    site.read_annotations(&config.essence.annotations);
    read_roots(&site, &plans).map_err(failed)?;
    let wanted = plan::remotes(&plans).count();
    site.repositories.load(&site.collection, wanted).map_err(failed)?;
    // Done before the first pass, which then gathers damaged objects again.
    let handled = site.follow_lifts().and_then(|()| site.handle_aftermath());
    match handled.and_then(|_| site.heal()) {
        // For example, the disk is full. Every maintenance of the collection tries again.
        Err(error) if error.may_pass() => tracing::warn!(%error, "not all is gathered again yet"),
        outcome => drop(outcome.map_err(failed)?),
    }
    let started = now.0 / 1_000;
    let daemon = serve::repository::daemon(&config, &site.id, started);
    let sets = data.join(exchange::repository::SETS);
    let repository = exchange::repository::Repository::new(
        site.collection.clone(),
        config.oai.clone(),
        daemon,
        sets,
    );
    let shared = Shared {
        site: Arc::new(site),
        author,
        config: Mutex::new(Arc::new(config)),
        plans: Mutex::new(Arc::new(plans)),
        requests: Mutex::default(),
        requested: Notify::new(),
        watching: Mutex::default(),
        notifier,
        control,
        describer,
        front: OnceLock::new(),
        opener: OnceLock::new(),
        started,
        repository,
        host,
        port,
    };
    Ok((shared, token, pages, admin_pages))
}

/// Reads what is known of all roots. Blocks.
fn read_roots(site: &Site, plans: &[Plan]) -> Result<(), collection::Error> {
    for root in plan::summarized(plans) {
        site.root_state(&root.url)?;
    }
    // Sites that are no longer in the settings are forgotten by their schedule.
    for url in site.known_roots()?.iter().filter(|it| spec::is_remote_url(it)) {
        site.root_state(url)?;
    }
    Ok(())
}

fn host_name() -> String {
    let name = fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let name = name.trim();
    if name.is_empty() { "localhost".to_owned() } else { name.to_owned() }
}
