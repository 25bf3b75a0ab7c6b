//! The broker as a daemon: a data directory, two listeners, and a handle for its process.
//!
//! The public listener has pages, search API, objects and the broker's own feed, from which other
//! brokers can collect. The admin listener has status, metrics and commands.

mod commands;
pub mod front;
mod public;
mod ready;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use axum::Router;
use collection::feed::FeedServer;
use collection::{Author, Collection, Options, SUPPRESSED_FILE, Stamp, Version};
use daemon::auth::{AdminToken, Guard};
use daemon::describe::{Describer, Facts};
use daemon::{Control, Data, Listeners};
use exchange::push::{Keys, Listener, Notifier};
use exchange::repository;
use net::client::Client;
use net::clock;
use net::shutdown::Shutdown;
use web::{Pages, Site};

use crate::admin;
use crate::admin::reload::ReadSettings;
use crate::answer::FromBroker;
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
use crate::route::peers::Peers;
use crate::route::routing::Route;
use crate::route::summarizer::Summarizer;
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
        // Callers' futures stay small: the settings are in them only once.
        Box::pin(Self::bind_at(config, Storage::Folder)).await
    }

    /// Binds as [`bind`](Self::bind) does, with the engine's files in `storage`.
    async fn bind_at(config: Config, storage: Storage) -> Result<Self, Error> {
        let fronts = Listeners::bind(&config.daemon).await?;
        let (local_addr, admin_addr) = (fronts.public_addr(), fronts.admin_addr());
        let (control, kind) = (fronts.control(), config.role.kind);
        let opening =
            blocking("opening", move || open(config, storage, (local_addr, admin_addr), control));
        let (inner, token) = fronts.meanwhile(kind, opening).await?;
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

    /// Returns the administrator's token, for forms.
    pub fn admin_token(&self) -> AdminToken {
        self.token.clone()
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
        Box::pin(self.run_with(Extension::default(), shutdown)).await
    }

    /// Serves as [`run`](Self::run) does, and the extension's routes.
    ///
    /// # Errors
    ///
    /// A stage of the broker failed for good; the others have been drained.
    pub async fn run_with(self, extension: Extension, shutdown: Shutdown) -> Result<(), Error> {
        let inner = &self.handle.inner;
        let kind = self.handle.config().role.kind;
        tracing::info!(public = %inner.local_addr, admin = %inner.admin_addr, "{kind} runs");
        let stages = inner.stages.clone();
        let store = Store { collection: inner.collection.clone(), engine: inner.engine.clone() };
        let public = public::routes(&self.handle, extension.summaries, shutdown.clone())
            .merge(extension.public);
        let guard = Guard { token: self.token, read: self.handle.config().daemon.admin_read };
        let more = (extension.admin, extension.forms);
        let admin = admin::routes(self.handle.clone(), more, guard);
        let serve = |stop| self.fronts.serve(public, admin, pipeline::REQUESTS_DRAIN, stop);
        let announced = inner.control.clone();
        let told = move || announced.announce_again();
        pipeline::run((stages, told), store, serve, shutdown).await
    }
}

/// What a daemon adds to the broker that it is.
#[derive(Debug, Default)]
pub struct Extension {
    /// More routes of the public listener.
    pub public: Router,
    /// More routes of the administration, behind its guard.
    pub admin: Router,
    /// Forms of the administration, which see to the token themselves.
    pub forms: Router,
    /// The content summaries that its feed has as a part; `None`: its own.
    pub summaries: Option<Collection>,
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
    let describer = Describer::open(data, config.role.kind, &id, identity.key())?;
    let author = Author { id, identity };
    let seen = repository::site(&config.name, config.daemon.base_url.as_ref(), &config.oai);
    let pages = Pages::new(seen, page::TEMPLATES, config.templates.clone())?;
    let admin_pages = admin_pages(&config)?;
    let now_ms = clock::now_ms();
    let collection = open_collection(&config, &author, now_ms)?;
    let engine = Engine::open(data, storage, &collection)?;
    engine.set_ranking(config.ranking);
    let timeouts = config.timeouts.request;
    let client = Client::new(net::client::Settings { timeouts, ..control.client_settings() });
    let collector =
        Collector::open(collection.clone(), client.clone(), &author.id, &config, now_ms)?;
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
    let (summarizer, peers, route) = open_route(&config, engine.clone(), &control, &author)?;
    let stages = Stages {
        summarizer,
        peers,
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
        .with_copies(&config.object_caches, client)
        .with_views(views, stages.membership.clone())
        .asking(route)
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

fn admin_pages(config: &Config) -> Result<Pages, Error> {
    // `base_url` is not the URL of the admin listener.
    let (site, templates) = (Site::new(&*config.name), config.templates.clone());
    let sources =
        [daemon::overview::TEMPLATES, admin::freshness::TEMPLATES, admin::views::TEMPLATES];
    Ok(Pages::new(site, &sources.concat(), templates)?)
}

/// Opens what is told of the index to other brokers, and what is known of them.
fn open_route(
    config: &Config,
    engine: Engine,
    control: &Control,
    author: &Author,
) -> Result<(Summarizer, Peers, Route), Error> {
    let (data, url) = (config.daemon.data.as_path(), control.address());
    let summarizer = Summarizer::open(data, engine, (&author.id, &config.name), url.clone())?;
    let client = Client::new(control.client_settings());
    let named = (config.everywhere.clone(), config.daemon.registry.clone());
    let peers = Peers::open(data, client.clone(), named, &author.id)?;
    let here = FromBroker {
        id: author.id.clone(),
        name: config.name.clone(),
        url: url.map(String::from).unwrap_or_default(),
    };
    let route = Route::new(peers.clone(), client, summarizer.watch(), here);
    Ok((summarizer, peers, route))
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
        let Stages { collector, repository, summarizer, .. } = &self.inner.stages;
        let [types, languages] = repository.counts();
        Facts {
            objects: self.inner.collection.len(),
            types,
            languages,
            freshness: collector.freshness(),
            summary: summarizer.version(),
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
            warnings: inner.page.route().map(Route::warnings).unwrap_or_default(),
            sources: collector.status(&config, &held_by_source),
        }
    }

    /// Returns the settings of the daemon's HTTP clients.
    pub fn client(&self) -> net::client::Settings {
        self.inner.control.client_settings()
    }

    /// Returns the broker's id.
    pub fn id(&self) -> &str {
        &self.inner.author.id
    }

    /// Returns the collection.
    pub fn collection(&self) -> &Collection {
        &self.inner.collection
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
            indexing: self.inner.stages.indexer.spent(),
            summarizing: self.inner.stages.summarizer.spent(),
            ..collector.counters()
        }
    }

    pub(crate) fn config(&self) -> MutexGuard<'_, Config> {
        self.inner.config.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests;
