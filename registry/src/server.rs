//! The registry as a daemon: a broker, and what servers announce to.

use std::net::SocketAddr;
use std::path::Path;

use broker::error::Error;
use broker::server::{Extension, Handle};
use broker::source::Kind;
use exchange::repository;
use net::client::Client;
use net::shutdown::Shutdown;
use url::Url;
use web::{Pages, Site};

use crate::config::Config;
use crate::keeper::Keeper;
use crate::reach::Reach;
use crate::serve::{self, administration};
use crate::summaries::Summaries;

/// A registry that is bound and ready to run.
#[derive(Debug)]
pub struct Server {
    broker: broker::server::Server,
    keeper: Keeper,
    summaries: Summaries,
    /// Other registries, from which this one pulls.
    registries: Vec<Url>,
    pages: Pages,
    admin_pages: Pages,
}

impl Server {
    /// Opens the data directory and binds both listeners; port 0 lets the system choose.
    ///
    /// # Errors
    ///
    /// The data directory cannot be used or an address is taken; the message says what to do.
    pub async fn bind(config: Config) -> Result<Self, Error> {
        let Config { broker: config, announcements } = config;
        let site = repository::site(&config.name, config.daemon.base_url.as_ref(), &config.oai);
        let pages = Pages::new(site, serve::TEMPLATES, config.templates.clone())?;
        // `base_url` is not the URL of the admin listener.
        let of_admin = Site::new(&*config.name);
        let templates = config.templates.clone();
        let admin_pages = Pages::new(of_admin, administration::TEMPLATES, templates)?;
        let pulled = config.sources.iter().filter(|it| it.kind == Kind::Broker);
        let registries = pulled.map(|it| it.url.clone()).collect();
        let (data, base_url) = (config.daemon.data.clone(), config.daemon.base_url.clone());
        let broker = broker::server::Server::bind(config).await?;
        let handle = broker.handle();
        let allow_private = announcements.allow_private;
        let reach = Reach::new(allow_private, base_url.as_ref(), broker.local_addr());
        let open = move || {
            let asking = Client::new(handle.client());
            let summaries = Summaries::open(&data, asking, reach.clone(), handle.id())?;
            let keeper = Keeper::open(handle, announcements, reach, summaries.clone())?;
            Ok::<_, Error>((keeper, summaries))
        };
        let opened = tokio::task::spawn_blocking(open).await;
        let opened = opened.map_err(|it| Error::Worker { what: it.to_string() })?;
        let (keeper, summaries) = opened?;
        Ok(Self { broker, keeper, summaries, registries, pages, admin_pages })
    }

    /// Returns the address of the public listener.
    pub fn local_addr(&self) -> SocketAddr {
        self.broker.local_addr()
    }

    /// Returns the address of the administration listener.
    pub fn admin_addr(&self) -> SocketAddr {
        self.broker.admin_addr()
    }

    /// Returns a handle of the broker, valid while the server runs.
    pub fn handle(&self) -> Handle {
        self.broker.handle()
    }

    /// Returns the keeper of the servers.
    pub fn keeper(&self) -> Keeper {
        self.keeper.clone()
    }

    /// Sets the reader of the settings for `POST /reload`, as that of a broker. How servers are listed is read only at
    /// the start.
    pub fn read_settings_by(
        &self,
        file: &Path,
        read: impl Fn() -> Result<Config, String> + Send + Sync + 'static,
    ) {
        self.broker.read_settings_by(file, move || read().map(|it| it.broker));
    }

    /// Serves until the shutdown starts, then drains.
    ///
    /// # Errors
    ///
    /// A stage failed for good; the others have been drained.
    pub async fn run(self, shutdown: Shutdown) -> Result<(), Error> {
        let Self { broker, keeper, summaries, registries, pages, admin_pages } = self;
        let token = broker.admin_token();
        let extension = Extension {
            public: serve::public(keeper.clone(), pages),
            admin: administration::routes(keeper.clone(), admin_pages.clone()),
            forms: administration::forms(keeper.clone(), admin_pages, token),
            summaries: Some(summaries.collection()),
        };
        let stop = shutdown.child();
        let serving = async {
            let served = broker.run_with(extension, stop.clone()).await;
            stop.start();
            served
        };
        let keeping = keeper.run(stop.clone());
        tokio::join!(serving, keeping, summaries.run(registries, stop.clone())).0
    }
}
