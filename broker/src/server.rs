//! The broker as a daemon: a data directory, two listeners, and a handle for its process.
//!
//! The public listener has pages, search API, objects and the broker's own feed, from which other
//! brokers can collect. The admin listener has status, metrics and commands.

pub mod front;
mod ready;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use axum::Router;
use axum::routing::get;
use collection::feed::{FeedOptions, FeedServer};
use collection::{Author, Collection, Compacted, Options, SUPPRESSED_FILE, Stamp, Swept, Version};
use daemon::auth::{AdminToken, Guard};
use daemon::describe::{Describer, Facts};
use daemon::{Control, Data, Listeners};
use exchange::push::{self, Keys, Listener, Notifier};
use exchange::repository;
use net::client::Client;
use net::clock;
use net::shutdown::Shutdown;
use web::{Pages, Site};

use crate::admin;
use crate::admin::reload::ReadSettings;
use crate::blocking::blocking;
use crate::catalog::Catalog;
use crate::collect::Collector;
use crate::config::Config;
use crate::engine::{Engine, Storage};
use crate::error::Error;
use crate::indexer::Indexer;
use crate::metrics::Counters;
use crate::page::{self, PageState};
use crate::pipeline::{self, Stages, Store};
use crate::status::{Expected, Status};
use crate::views::alerts::Alerts;
use crate::views::membership::{Membership, Present};

/// Folder of the collection in the data directory.
const COLLECTION: &str = "collection";

/// Text that is signed to make the secrets of subscriptions, and for nothing else.
const KEYS: &[u8] = b"harvest: secrets of subscriptions";

/// Maximum number of damaged members listed in status.
const DAMAGED_MAX: usize = 100;

/// A broker that is bound and ready to run.
#[derive(Debug)]
pub struct Server {
    fronts: Listeners,
    token: AdminToken,
    handle: Handle,
}

impl Server {
    /// Opens the data directory and binds both listeners; port 0 lets the system choose.
    ///
    /// # Errors
    ///
    /// The data directory cannot be used (missing rights, another broker runs on it) or an address
    /// is taken; the message says what to do.
    pub async fn bind(config: Config) -> Result<Self, Error> {
        Self::bind_at(config, Storage::Folder).await
    }

    /// Binds as [`bind`](Self::bind) does, with the engine's files in `storage`.
    async fn bind_at(config: Config, storage: Storage) -> Result<Self, Error> {
        let fronts = Listeners::bind(&config.daemon).await?;
        let (local_addr, admin_addr) = (fronts.public_addr(), fronts.admin_addr());
        let control = fronts.control();
        let opening =
            blocking("opening", move || open(config, storage, (local_addr, admin_addr), control));
        let (inner, token) = fronts.meanwhile("broker", opening).await?;
        let handle = Handle { inner: Arc::new(inner) };
        // A source may have been removed from the settings while the broker was down.
        let config = handle.config().clone();
        handle.inner.stages.catalog.handle_sources(&config).await?;
        Ok(Self { fronts, token, handle })
    }

    /// Returns the address of the public listener.
    pub fn local_addr(&self) -> SocketAddr {
        self.handle.inner.local_addr
    }

    /// Returns the address of the admin listener.
    pub fn admin_addr(&self) -> SocketAddr {
        self.handle.inner.admin_addr
    }

    /// Returns a handle, valid while the server runs.
    pub fn handle(&self) -> Handle {
        self.handle.clone()
    }

    /// Serves until the shutdown starts, then drains and returns in less than two seconds. The data
    /// directory is closed then, even if handles remain: they see no changes any more.
    ///
    /// # Errors
    ///
    /// A stage of the broker failed for good; the others have been drained.
    pub async fn run(self, shutdown: Shutdown) -> Result<(), Error> {
        let inner = &self.handle.inner;
        tracing::info!(public = %inner.local_addr, admin = %inner.admin_addr, "broker runs");
        let stages = inner.stages.clone();
        let store = Store { collection: inner.collection.clone(), engine: inner.engine.clone() };
        let public = public(&self.handle, shutdown.clone());
        let guard = Guard { token: self.token, read: self.handle.config().daemon.admin_read };
        let admin = admin::routes(self.handle.clone(), guard);
        let serve = |stop| self.fronts.serve(public, admin, pipeline::REQUESTS_DRAIN, stop);
        pipeline::run(stages, store, serve, shutdown).await
    }
}

/// Opens everything in the data directory, for listeners at the public and the admin address.
/// Blocks.
fn open(
    config: Config,
    storage: Storage,
    (local_addr, admin_addr): (SocketAddr, SocketAddr),
    control: Control,
) -> Result<(Inner, AdminToken), Error> {
    let data = config.daemon.data.as_path();
    let Data { id, identity, token } = Data::open(data)?;
    let describer = Describer::open(data, "broker", &id, identity.key())?;
    let author = Author { id, identity };
    let seen = repository::site(&config.name, config.daemon.base_url.as_ref(), &config.oai);
    let pages = Pages::new(seen, page::TEMPLATES, config.templates.clone())?;
    // `base_url` is not the URL of the admin listener.
    let (site, templates) = (Site::new(&*config.name), config.templates.clone());
    let sources =
        [daemon::overview::TEMPLATES, admin::freshness::TEMPLATES, admin::views::TEMPLATES]
            .concat();
    let admin_pages = Pages::new(site, &sources, templates)?;
    let now_ms = clock::now_ms();
    let collection = open_collection(&config, &author, now_ms)?;
    let engine = Engine::open(data, storage, &collection)?;
    engine.set_ranking(config.ranking);
    let timeouts = config.timeouts.request;
    let client = Client::new(net::client::Settings { timeouts, ..control.client_settings() });
    let collector = Collector::open(collection.clone(), client, &author.id, &config, now_ms)?;
    // The settings allow `push` without `base_url` only where this URL reaches the broker.
    let base =
        config.daemon.base_url.clone().or_else(|| format!("http://{local_addr}/").parse().ok());
    if let (Some(base), Some(keys)) = (base, Keys::new(author.identity.sign(KEYS))) {
        collector.listen(base, keys);
    }
    let (base_url, settings) = (config.daemon.base_url.clone(), config.push.clone());
    let views = Present::default();
    views.set(config.views.clone());
    let membership = Membership::new(collection.clone(), views.clone());
    let as_sets = membership.as_sets();
    let (alerting, allow_private) = ((membership.clone(), views.clone()), settings.allow_private);
    let alerts = Alerts::new(collection.clone(), alerting, &control, allow_private);
    let stages = Stages {
        collector,
        catalog: Catalog::new(collection.clone()),
        indexer: Indexer::new(collection.clone(), &engine),
        membership,
        alerts,
        notifier: Notifier::open(data, base_url, settings, collection.clone(), &control)?,
        repository: repository::Repository::with_views(
            collection.clone(),
            as_sets,
            config.oai.clone(),
            repository_daemon(&config, &author.id),
            data.join(repository::SETS),
        ),
    };
    config.daemon.write_admin_address(admin_addr)?;
    let page = PageState::new(engine.clone(), collection.clone(), pages)
        .with_copies(config.object_cache.clone())
        .with_views(views, stages.membership.clone())
        .at(config.daemon.base_url.as_ref());
    let inner = Inner {
        config: Mutex::new(config),
        turn: tokio::sync::Mutex::default(),
        author,
        local_addr,
        admin_addr,
        started_ms: clock::now_ms(),
        collection,
        engine,
        stages,
        page,
        admin_pages,
        feed: OnceLock::new(),
        settings: OnceLock::new(),
        control,
        describer,
    };
    Ok((inner, token))
}

fn open_collection(config: &Config, author: &Author, now_ms: u64) -> Result<Collection, Error> {
    let data = &config.daemon.data;
    let folder = data.join(COLLECTION);
    let options = Options {
        suppressed: Some(data.join(SUPPRESSED_FILE)),
        own_id: Some(author.id.clone()),
        ..Options::default()
    };
    let (collection, recovery) = Collection::open(&folder, options, Stamp(now_ms))?;
    collection.trust_takedowns(config.trusted());
    collection.own_key(author.identity.key());
    for cut in &recovery.cut {
        let (file, offset, bytes) = (cut.file.display(), cut.offset, cut.bytes);
        tracing::warn!(%file, offset, bytes, "an unfinished commit was removed from the collection");
    }
    for damaged in &recovery.damaged {
        tracing::warn!(%damaged, "damaged: its objects are fetched again");
    }
    Ok(collection)
}

/// Returns the description of the broker for its OAI-PMH harvesters. It announces no update times,
/// since its pulls have no fixed times.
fn repository_daemon(config: &Config, id: &str) -> repository::Daemon {
    repository::Daemon {
        name: config.name.clone(),
        id: id.to_owned(),
        base_url: config.daemon.base_url.clone(),
        syndication: None,
    }
}

fn public(handle: &Handle, shutdown: Shutdown) -> Router {
    let inner = &handle.inner;
    let owner = Some(format!("{} {}", inner.author.id, inner.author.identity.key()));
    let options = FeedOptions { shutdown, owner, ..FeedOptions::default() };
    let feed = FeedServer::new(inner.collection.clone(), options);
    let feed = inner.feed.get_or_init(|| feed).clone();
    let (base_url, lister) = (handle.config().daemon.base_url.clone(), handle.clone());
    let Stages { notifier, collector, .. } = &inner.stages;
    let callbacks = collector.listener().map(Listener::routes).unwrap_or_default();
    let is_open = move || lister.config().oai.enabled;
    let resources = push::resourcesync::routes(inner.collection.clone(), base_url, is_open);
    Router::new()
        .merge(push::feed::routes(feed, notifier.clone(), inner.page.selecting()))
        .merge(notifier.routes())
        .merge(resources)
        .merge(callbacks)
        .merge(notifier.linked(&inner.stages.repository))
        .merge(describe(handle))
        .route("/healthz", get(admin::healthz))
        .route("/readyz", get(admin::public_readyz).with_state(handle.clone()))
        .merge(page::routes(inner.page.clone()))
}

fn describe(handle: &Handle) -> Router {
    let (describer, signer) = (handle.clone(), Arc::clone(&handle.inner));
    let sign = move |text: &[u8]| signer.author.identity.sign(text);
    handle.inner.describer.route(move || describer.facts(), sign)
}

/// Handle of a running broker within its process. Clones share it.
#[derive(Clone, Debug)]
pub struct Handle {
    pub(crate) inner: Arc<Inner>,
}

#[derive(Debug)]
pub(crate) struct Inner {
    config: Mutex<Config>,
    /// Locked during a reload, so that one runs at a time.
    turn: tokio::sync::Mutex<()>,
    pub(crate) author: Author,
    local_addr: SocketAddr,
    admin_addr: SocketAddr,
    started_ms: u64,
    pub(crate) collection: Collection,
    pub(crate) engine: Engine,
    pub(crate) stages: Stages,
    page: PageState,
    pub(crate) admin_pages: Pages,
    /// Set once the server runs; the feed ends with the server's shutdown.
    pub(crate) feed: OnceLock<FeedServer>,
    /// Set if there is a settings file.
    pub(crate) settings: OnceLock<ReadSettings>,
    control: Control,
    describer: Describer,
}

impl Handle {
    /// Returns the answer to `GET /status`; default values once the runtime is stopping.
    pub async fn status(&self) -> Status {
        let handle = self.clone();
        tokio::task::spawn_blocking(move || handle.status_now()).await.unwrap_or_default()
    }

    /// Returns the public facts about the broker from the settings.
    pub(crate) fn known_facts(&self) -> Facts {
        let config = self.config();
        Facts::new(&config.name, &config.daemon, config.oai.admin_emails.first())
    }

    /// Returns the public facts with the present figures. Blocks.
    pub(crate) fn facts(&self) -> Facts {
        let known = self.known_facts();
        let Stages { collector, repository, .. } = &self.inner.stages;
        let [types, languages] = repository.counts();
        Facts {
            objects: self.inner.collection.len(),
            types,
            languages,
            freshness: collector.freshness(),
            ..known
        }
    }

    pub(crate) fn status_now(&self) -> Status {
        let inner = &self.inner;
        let Stages { collector, catalog, indexer, notifier, .. } = &inner.stages;
        let config = self.config().clone();
        let (version, mut upkeep) = (inner.collection.version(), catalog.view());
        let held_by_source = catalog.held_by_source().unwrap_or_else(|error| {
            upkeep.problem = Some(error.to_string());
            BTreeMap::new()
        });
        let (plan, planned) = (collector.expected(), collector.planned());
        let health = inner.collection.health();
        let covered = indexer.covered().filter(|it| it.epoch == version.epoch);
        Status {
            name: config.name.clone(),
            id: inner.author.id.clone(),
            software: env!("CARGO_PKG_VERSION").to_owned(),
            settings: inner.settings.get().map(|it| it.file.clone()),
            listen: inner.local_addr.to_string(),
            admin_listen: inner.admin_addr.to_string(),
            listening: inner.control.listening(),
            started_ms: inner.started_ms,
            objects: inner.collection.len(),
            epoch: version.epoch.to_string(),
            serial: version.serial,
            index_covered: covered.map(|it| it.serial),
            ready: self.ready(),
            index_problem: indexer.problem(),
            catalog_problem: upkeep.problem,
            collection_problem: health.refusing,
            damaged: health.damaged.iter().take(DAMAGED_MAX).map(ToString::to_string).collect(),
            damaged_total: health.damaged_total,
            takedowns: inner.collection.takedowns(),
            held: upkeep.held,
            policy: config.freshness.policy.name().to_owned(),
            aim: config.freshness.aim(),
            theta: config.freshness.theta,
            expected: Expected::new(&planned, plan, config.freshness),
            freshness: collector.freshness(),
            cost: collector.cost(),
            pulls: collector.counters().pulls,
            push: notifier.status(),
            sources: collector.status(&config, &held_by_source),
        }
    }

    /// Applies new settings: sources are added, changed and removed (a removed one releases all its
    /// objects), the settings of freshness and ranking apply at once, templates are read again. Returns the names
    /// of changed settings that need a restart.
    ///
    /// # Errors
    ///
    /// The templates cannot be read: nothing has changed. The collection cannot be read or written:
    /// the sources of the new settings stay, and the next reload or start tries the rest again.
    pub async fn reload(&self, config: Config) -> Result<Vec<&'static str>, Error> {
        let _turn = self.inner.turn.lock().await;
        let Stages { collector, catalog, .. } = &self.inner.stages;
        let fixed = fixed_differences(&self.config(), &config);
        // The part that may fail comes first: on an error, nothing has changed.
        let (page, admin_pages) = (self.inner.page.clone(), self.inner.admin_pages.clone());
        blocking("templates", move || page.pages().reload().and_then(|()| admin_pages.reload()))
            .await?;
        {
            let mut current = self.config();
            current.sources.clone_from(&config.sources);
            current.freshness = config.freshness;
            current.ranking = config.ranking;
            current.views.clone_from(&config.views);
            self.inner.page.views().set(config.views.clone());
            self.inner.engine.set_ranking(config.ranking);
            current.oai.clone_from(&config.oai);
            current.daemon.take_over(&config.daemon);
            self.inner.control.reload(&config.daemon);
            self.inner.stages.notifier.handle_access();
            let daemon = repository_daemon(&current, &self.inner.author.id);
            self.inner.stages.repository.set(config.oai.clone(), daemon);
        }
        self.inner.collection.trust_takedowns(config.trusted());
        collector.reconfigure(&config).await?;
        catalog.handle_sources(&config).await?;
        Ok(fixed)
    }

    /// Waits until a source has been pulled up to `version` (or a later epoch) and the index covers
    /// the pulled changes. Waits without limit: set a timeout.
    ///
    /// # Errors
    ///
    /// [`Error::SourceUnknown`]; the collection cannot be read.
    pub async fn caught_up(&self, source: &str, version: Version) -> Result<(), Error> {
        self.inner.stages.collector.wait_for_version(source, version).await?;
        self.inner.stages.indexer.caught_up().await
    }

    /// Makes one source (without a name, every source) due now. Returns the number made due.
    ///
    /// # Errors
    ///
    /// [`Error::SourceUnknown`].
    pub fn pull(&self, source: Option<&str>) -> Result<usize, Error> {
        self.inner.stages.collector.request(source)
    }

    /// Confirms the expiry that waits for an administrator.
    ///
    /// # Errors
    ///
    /// The collection cannot be written.
    pub async fn confirm(&self) -> Result<Swept, Error> {
        self.inner.stages.catalog.sweep(1.0).await
    }

    /// Confirms that a source loses most of its objects or returns to an older epoch, and makes the
    /// source due now. The confirmation lasts until a pull of the source succeeds.
    ///
    /// # Errors
    ///
    /// [`Error::SourceUnknown`].
    pub fn confirm_source(&self, source: &str) -> Result<usize, Error> {
        self.inner.stages.collector.confirm(source)
    }

    /// Releases objects of removed sources, heals damage, and rewrites the collection without
    /// superseded changes.
    ///
    /// # Errors
    ///
    /// The collection cannot be written; the steps before the failing one stay done.
    pub async fn compact(&self) -> Result<Compacted, Error> {
        let Stages { collector, catalog, .. } = &self.inner.stages;
        catalog.compact(&|source| drop(collector.request(Some(source)))).await
    }

    /// Compares every file of the full-text index with its checksum and returns the names of
    /// damaged files. If there are any, the index is built anew; until then it answers from the old
    /// files.
    ///
    /// # Errors
    ///
    /// The files cannot be read.
    pub async fn verify(&self) -> Result<Vec<String>, Error> {
        let engine = self.inner.engine.clone();
        let damaged = blocking("verification", move || engine.verify()).await?;
        Ok(damaged.iter().map(|path| path.display().to_string()).collect())
    }

    /// Returns the collection's version.
    pub fn version(&self) -> Version {
        self.inner.collection.version()
    }

    /// Returns the counters of the metrics since the start.
    pub fn counters(&self) -> Counters {
        let Stages { collector, catalog, notifier, .. } = &self.inner.stages;
        let upkeep = catalog.view();
        Counters {
            expired: upkeep.expired,
            compactions: upkeep.compactions,
            feed: self.inner.feed.get().map(FeedServer::counters).unwrap_or_default(),
            hub: notifier.counters(),
            notices: collector.listener().map(Listener::counters).unwrap_or_default(),
            oai: self.inner.stages.repository.counters(),
            dear: self.inner.page.dear_searches(),
            ..collector.counters()
        }
    }

    pub(crate) fn config(&self) -> MutexGuard<'_, Config> {
        self.inner.config.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns the names of the changed settings that are read only at the start.
fn fixed_differences(old: &Config, new: &Config) -> Vec<&'static str> {
    let differs = [
        ("name", old.name != new.name),
        ("templates", old.templates != new.templates),
        ("object_cache", old.object_cache != new.object_cache),
        ("push", old.push != new.push),
    ];
    let own = differs.into_iter().filter_map(|(name, differs)| differs.then_some(name));
    own.chain(old.daemon.differences(&new.daemon)).collect()
}

#[cfg(test)]
mod tests;
