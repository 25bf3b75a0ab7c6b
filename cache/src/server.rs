//! The server: a cache with its listeners, which are bound before it runs.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use daemon::auth::Guard;
use daemon::describe::{Describer, Facts};
use daemon::{Control, Data, Listener, Settings};
use disk::Disk;
use disk::lock::Lock;
use net::client::{Client, Timeouts};
use net::guard::Policy;
use net::shutdown::Shutdown;
use tokio::net::UdpSocket;
use tokio::task::JoinSet;
use tower::service_fn;
use web::Pages;

use crate::access_log::AccessLog;
use crate::config::Config;
use crate::error::Error;
use crate::fetch::Fetcher;
use crate::fetch::mirrored::Mirrors;
use crate::fetch::schemes::Schemes;
use crate::memory::Memory;
use crate::neighbors::Neighbors;
use crate::objects::Objects;
use crate::proxy::Proxy;
use crate::serve::{self, Status};
use crate::store::Store;
use crate::target::ANY_ADDRESS;

/// Name of the folder, below the data folder, for bodies on their way.
const TRANSFERS: &str = "transfers";
/// Name of the folder, below the data folder, for stored objects.
const OBJECTS: &str = "objects";
/// Time for the head of an answer: some pages take their origin long.
const ANSWER_PATIENCE: Duration = Duration::from_secs(120);
/// Unused connections that are kept for one origin. Each takes a place there: with 256 a small server has none
/// left for others.
const IDLE_PER_HOST_MAX: usize = 64;

/// A cache, bound and ready to run.
#[derive(Debug)]
pub struct Server {
    config: Config,
    data: Data,
    describer: Describer,
    public: Listener,
    admin: Listener,
    control: Control,
    proxy: Proxy,
    fetcher: Fetcher,
    objects: Objects,
    neighbors: Neighbors,
    icp_at: Option<SocketAddr>,
    /// Keeps other processes from the data folder.
    lock: Lock,
    log: Option<AccessLog>,
    admin_pages: Pages,
    stop: Shutdown,
}

/// A handle on a cache, which also works while it runs.
#[derive(Clone, Debug)]
pub struct Handle {
    proxy: Proxy,
    control: Control,
    settings: Settings,
}

impl Server {
    /// Opens or makes the data folder, and binds both listeners.
    ///
    /// # Errors
    ///
    /// A folder cannot be used, or a port is taken. The message has the remedy.
    pub async fn bind(config: Config) -> Result<Self, Error> {
        let control = Control::open(&config.daemon)?;
        let public = Listener::public(&config.daemon, config.daemon.listen, &control).await?;
        warn_if_open(&config);
        let admin = Listener::admin(&config.daemon, &control).await?;
        let folder = config.daemon.data.join(TRANSFERS);
        let (settings, at, made) = (config.daemon.clone(), admin.address(), folder.clone());
        let disk_bytes = config.disk_bytes;
        let opened = tokio::task::spawn_blocking(move || {
            let (data, describer) = open(&settings, at, &made)?;
            let lock = disk::lock::take(&made)?;
            let folder = settings.data.join(OBJECTS);
            let opened = (disk_bytes != 0).then(|| Store::open(Disk::System, &folder, disk_bytes));
            let failed = |source| Error::Store { path: folder, source };
            Ok::<_, Error>((data, describer, lock, opened.transpose().map_err(failed)?))
        });
        let opened = daemon::opening::meanwhile("cache", [&public, &admin], opened).await;
        let (data, describer, lock, store) = opened.map_err(|_ended| Error::Stopped)??;
        let objects = Objects::new(Memory::new(config.memory_bytes), store);
        let stop = Shutdown::new();
        let client = Client::new(net::client::Settings {
            allow_private: config.allow_private,
            idle_per_host_max: IDLE_PER_HOST_MAX,
            timeouts: Timeouts { header: ANSWER_PATIENCE, ..Timeouts::default() },
            ..control.client_settings()
        });
        let socket = match config.icp_listen {
            Some(at) => {
                Some(UdpSocket::bind(at).await.map_err(|source| Error::Icp { at, source })?)
            }
            None => None,
        };
        let icp_at = socket.as_ref().and_then(|it| it.local_addr().ok());
        let neighbors = Neighbors::new(&config.neighbors, socket, client.clone())?;
        let policy = Policy::from_allow_private(config.allow_private);
        let known = (objects.clone(), neighbors.clone());
        let places = (Schemes::new(&config), Mirrors::new(&config));
        let fetcher = Fetcher::new(client, known, places, policy, folder, stop.clone());
        let (name, own) = (config.pseudonym(&data.id), names(&config, public.address()));
        let parts = (objects.clone(), fetcher.clone());
        let log = config.access_log.as_ref().map(|(path, format)| {
            let failed = |source| Error::AccessLog { path: path.clone(), source };
            AccessLog::open(path, *format).map_err(failed)
        });
        let log = log.transpose()?;
        let proxy = Proxy::new(config.clone(), (&name, own), parts, log.clone(), stop.clone());
        let site = web::Site::new(config.name.clone());
        let templates = [daemon::overview::TEMPLATES, serve::TEMPLATES].concat();
        let admin_pages = Pages::new(site, &templates, None)?;
        Ok(Self {
            config,
            data,
            describer,
            public,
            admin,
            control,
            proxy,
            fetcher,
            objects,
            neighbors,
            icp_at,
            lock,
            log,
            admin_pages,
            stop,
        })
    }

    /// Returns the address of the proxy.
    pub fn local_addr(&self) -> SocketAddr {
        self.public.address()
    }

    /// Returns the address of the administration.
    pub fn admin_addr(&self) -> SocketAddr {
        self.admin.address()
    }

    /// Returns the address at which neighbors ask, if there is one.
    pub fn icp_addr(&self) -> Option<SocketAddr> {
        self.icp_at
    }

    /// Returns a handle, which also works while the cache runs.
    pub fn handle(&self) -> Handle {
        let (proxy, control) = (self.proxy.clone(), self.control.clone());
        Handle { proxy, control, settings: self.config.daemon.clone() }
    }

    /// Runs until the shutdown starts, then stops within some seconds.
    ///
    /// # Errors
    ///
    /// A listener has failed: start the cache again.
    pub async fn run(self, shutdown: Shutdown) -> Result<(), Error> {
        let (child, drain) = (shutdown.child(), net::server::DRAIN);
        let mut tasks: JoinSet<Result<(), Error>> = JoinSet::new();
        let facts = Facts::new(&self.config.name, &self.config.daemon, None);
        let identity = Arc::new(self.data.identity);
        let (look, sign) = (move || facts.clone(), move |text: &[u8]| identity.sign(text));
        let describe = self.control.describe(&self.describer, look, sign);
        let is_secure = self.config.daemon.tls.is_some();
        let pages = serve::public(describe, self.public.address(), is_secure);
        let (proxy, stop, public) = (self.proxy.clone(), child.clone(), self.public);
        tasks.spawn(async move {
            let service = service_fn(move |request| proxy.clone().answer(request, pages.clone()));
            Ok(public.serve_proxy(service, drain, stop).await?)
        });
        let (neighbors, asked, stop) = (self.neighbors, self.proxy.clone(), child.clone());
        tasks.spawn(async move {
            let may = |address| asked.may_ask(address);
            neighbors.run(|url| asked.has(url), may, &stop).await;
            stop.started().await;
            Ok(())
        });
        let guard = Guard { token: self.data.token, read: self.config.daemon.admin_read };
        let router = serve::admin(self.proxy, self.control.clone(), guard, &self.admin_pages);
        let (admin, stop) = (self.admin, child.clone());
        tasks.spawn(async move { Ok(admin.serve(router, drain, stop).await?) });
        let (counts, stop) = (self.fetcher.counts(), child.clone());
        tasks.spawn(async move {
            counts.keep(&stop).await;
            Ok(())
        });
        let (control, stop) = (self.control, child.clone());
        tasks.spawn(async move {
            control.keep(&stop).await;
            stop.started().await;
            Ok(())
        });
        let mut outcome = Ok(());
        while let Some(ended) = tasks.join_next().await {
            // Answers in progress are drained before their fetches end.
            child.start();
            let ended = ended.unwrap_or(Err(Error::Stopped));
            if outcome.is_ok() {
                outcome = ended;
            }
        }
        self.stop.start();
        self.fetcher.ended().await;
        if let Some(disk) = self.objects.disk() {
            disk.close().await;
        }
        if let Some(log) = self.log {
            log.close().await;
        }
        drop(self.lock);
        outcome
    }
}

impl Handle {
    /// Returns the status.
    pub fn status(&self) -> Status {
        Status { listening: self.control.listening(), ..self.proxy.status() }
    }

    /// Removes what is stored of a URL, and what is on its way. Returns how many objects there were.
    pub fn purge(&self, url: &url::Url) -> u64 {
        self.proxy.purge(url)
    }

    /// Puts new settings in force. Returns the names of those that are read only at the start.
    pub fn reload(&self, config: Config) -> Vec<&'static str> {
        self.control.reload(&config.daemon);
        let mut differences = self.settings.differences(&config.daemon);
        differences.extend(self.proxy.set(config));
        differences
    }
}

/// Warns of a cache that strangers may use as their proxy, also beside the sites that it stands before.
fn warn_if_open(config: &Config) {
    let (access, listen) = (&config.daemon.access, config.daemon.listen);
    let is_restricted = !access.allow.is_empty() || !access.consumers.is_empty();
    if !listen.ip().is_loopback() && !is_restricted {
        tracing::warn!(
            %listen,
            "this proxy is open to everybody who reaches it: list its clients by `allow` in [access], or by \
             [[consumer]], of which the readers of an [[origin]] need none"
        );
    }
}

/// Returns the names under which the cache itself is asked; [`ANY_ADDRESS`] stands for each address of this
/// machine.
fn names(config: &Config, listen: SocketAddr) -> Vec<String> {
    let port = listen.port();
    let mut names = vec![listen.to_string(), format!("localhost:{port}")];
    let name = config.name.to_ascii_lowercase();
    let named = format!("{name}:{port}");
    // A site may have the machine's name.
    if !config.origins.iter().any(|it| it.host == name || it.host == named) {
        names.push(named);
    }
    if listen.ip().is_unspecified() {
        names.push(format!("{ANY_ADDRESS}:{port}"));
    }
    if let Some(base) = &config.daemon.base_url
        && let Some(host) = base.host_str()
    {
        names.push(base.port().map_or_else(|| host.to_owned(), |port| format!("{host}:{port}")));
    }
    names
}

fn open(settings: &Settings, admin: SocketAddr, folder: &Path) -> Result<(Data, Describer), Error> {
    let data = Data::open(&settings.data)?;
    let failed = |source| Error::Folder { path: PathBuf::from(folder), source };
    std::fs::create_dir_all(folder).map_err(failed)?;
    settings.write_admin_address(admin)?;
    let describer = Describer::open(&settings.data, "cache", &data.id, data.identity.key())?;
    Ok((data, describer))
}
