//! A member with its listeners: what is bound before it runs, and runs beside its core.

use std::net::SocketAddr;
use std::sync::Arc;

use daemon::auth::{AdminToken, Guard, Whereabouts};
use net::peer::Endpoint;
use net::server::Limits;
use net::shutdown::Shutdown;
use tokio::net::{TcpListener, UdpSocket};
use tokio::runtime;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use web::Pages;

use crate::config::Config;
use crate::error::Error;
use crate::id::MemberId;
use crate::link::{Caller, Command, EVENTS_MAX, Event, Hub};
use crate::node::{Core, Handle};
use crate::serve;

/// Most commands that wait for the hub.
const COMMANDS_MAX: usize = 16;

/// A member, bound and ready to run.
#[derive(Debug)]
pub struct Server {
    handle: Handle,
    core: Box<Core>,
    hub: Hub,
    caller: Arc<Caller>,
    events: (mpsc::Sender<Event>, mpsc::Receiver<Event>),
    commands: mpsc::Receiver<Command>,
    listener: TcpListener,
    admin: TcpListener,
    /// Where feeds are served to others.
    feeds: Option<TcpListener>,
    token: AdminToken,
    pages: Pages,
    /// As others see them.
    feed_pages: Pages,
}

impl Server {
    /// Opens or makes the data directory, and binds all listeners.
    ///
    /// # Errors
    ///
    /// A folder cannot be used or is in use, a port is taken, or a group cannot be gone on with; the message says
    /// what to do.
    pub async fn bind(config: Config) -> Result<Self, Error> {
        let listen = |error: net::Error| Error::Listen(error.to_string());
        let listener = net::server::bind(config.listen).await.map_err(listen)?;
        let admin = net::server::bind(config.admin_listen).await.map_err(listen)?;
        let feeds = match config.feed_listen {
            Some(at) => Some(net::server::bind(at).await.map_err(listen)?),
            None => None,
        };
        let gone = |source: std::io::Error| Error::Listen(source.to_string());
        let (at, admin_at) =
            (listener.local_addr().map_err(gone)?, admin.local_addr().map_err(gone)?);
        let socket = UdpSocket::bind(at).await.map_err(|source| {
            Error::Listen(format!("cannot listen on UDP {at} for null calls: {source}"))
        })?;
        let started = net::clock::monotonic();
        let caller = Arc::new(Caller::new(socket, started));
        let (to_hub, commands) = mpsc::channel(COMMANDS_MAX);
        let (handle, asks) = Handle::new();
        let outside = Limits { host: config.proxy(), ..Limits::default() };
        let calling = caller.clone();
        let opened = tokio::task::spawn_blocking(move || {
            let data = config.data.clone();
            let core = Core::open(config, calling, started, to_hub, asks)?;
            Whereabouts { address: admin_at, certificate: None }.write(&data)?;
            let token = AdminToken::load_or_create(&data)?;
            let site = web::Site::new(format!("Replicator {}", core.id()));
            let feed_pages =
                Pages::new(site.clone().at(core.config().base_url.as_ref()), &[], None)?;
            let pages = Pages::new(site, serve::TEMPLATES, None)?;
            Ok::<_, Error>((Box::new(core), token, pages, feed_pages))
        });
        let fronts = [(&admin, Limits::default())].into_iter();
        let fronts = fronts.chain(feeds.as_ref().map(|it| (it, outside)));
        let opened = daemon::opening::meanwhile("replicator", fronts, opened).await;
        let (core, token, pages, feed_pages) = opened.map_err(|_ended| Error::Stopped)??;
        let events = mpsc::channel(EVENTS_MAX);
        let endpoint = Endpoint::new(core.identity())?;
        let hub = Hub::new(endpoint, core.known(), started, events.0.clone());
        Ok(Self {
            handle,
            core,
            hub,
            caller,
            events,
            commands,
            listener,
            admin,
            feeds,
            token,
            pages,
            feed_pages,
        })
    }

    /// The address of links and null calls.
    ///
    /// # Errors
    ///
    /// The socket has no address any more.
    pub fn local_addr(&self) -> Result<SocketAddr, Error> {
        self.listener.local_addr().map_err(|error| Error::Listen(error.to_string()))
    }

    /// The address of the admin listener.
    ///
    /// # Errors
    ///
    /// The socket has no address any more.
    pub fn admin_addr(&self) -> Result<SocketAddr, Error> {
        self.admin.local_addr().map_err(|error| Error::Listen(error.to_string()))
    }

    /// The address at which feeds are served to others, if that is wanted.
    ///
    /// # Errors
    ///
    /// The socket has no address any more.
    pub fn feed_addr(&self) -> Result<Option<SocketAddr>, Error> {
        let at = self.feeds.as_ref().map(TcpListener::local_addr).transpose();
        at.map_err(|error| Error::Listen(error.to_string()))
    }

    /// The member's id.
    #[must_use]
    pub fn id(&self) -> MemberId {
        self.core.id()
    }

    /// A handle on the member, also for while it runs.
    #[must_use]
    pub fn handle(&self) -> Handle {
        self.handle.clone()
    }

    /// Runs until the shutdown starts, then stops within some seconds.
    ///
    /// # Errors
    ///
    /// A listener is gone: start anew.
    pub async fn run(self, shutdown: Shutdown) -> Result<(), Error> {
        let Self { handle, core, hub, caller, events, commands, listener, .. } = self;
        // What ends first, for whatever reason, ends the others.
        let child = shutdown.child();
        let mut tasks: JoinSet<Result<(), Error>> = JoinSet::new();
        let ((sender, receiver), stop) = (events, child.clone());
        tasks.spawn(async move {
            tokio::select! {
                () = caller.run(&sender) => {}
                () = stop.started() => {}
            }
            Ok(())
        });
        let stop = child.clone();
        tasks.spawn(async move {
            hub.run(listener, commands, stop).await;
            Ok(())
        });
        let feeds = core.feeds();
        let (proxy, read) = (core.config().proxy(), core.config().admin_read);
        let guard = Guard { token: self.token, read };
        let stop = child.clone();
        let on = runtime::Handle::current();
        tasks.spawn_blocking(move || {
            on.block_on(core.run(receiver, stop));
            Ok(())
        });
        let public = self
            .feeds
            .map(|it| (it, serve::feeds(handle.clone(), feeds.clone(), &self.feed_pages), proxy));
        let admin = (self.admin, serve::admin(handle, feeds, guard, self.pages), None);
        for (listener, router, host) in [Some(admin), public].into_iter().flatten() {
            let stop = child.clone();
            tasks.spawn(async move {
                let limits = Limits { host, ..Limits::default() };
                let served = net::server::serve(listener, router, limits, stop).await;
                served.map_err(|error| Error::Listen(error.to_string()))
            });
        }
        let mut outcome = Ok(());
        while let Some(ended) = tasks.join_next().await {
            child.start();
            let ended = ended.unwrap_or(Err(Error::Stopped));
            if outcome.is_ok() {
                outcome = ended;
            }
        }
        outcome
    }
}
