//! The server: a member with its listeners, which are bound before it runs.

use std::net::SocketAddr;
use std::sync::Arc;

use daemon::auth::{AdminToken, Guard};
use daemon::describe::Describer;
use daemon::{Control, Listener};
use net::client::Client;
use net::peer::Endpoint;
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

/// Maximum number of commands that wait for the hub.
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
    admin: Listener,
    /// Listener that serves feeds to others.
    feeds: Option<Listener>,
    control: Control,
    describer: Describer,
    token: AdminToken,
    pages: Pages,
    /// Pages for others than the administrator.
    feed_pages: Pages,
}

impl Server {
    /// Opens or makes the data directory, and binds all listeners.
    ///
    /// # Errors
    ///
    /// A folder cannot be used or is in use, a port is taken, or a group cannot be resumed. The
    /// message has the remedy.
    pub async fn bind(config: Config) -> Result<Self, Error> {
        let listen = |error: net::Error| Error::Listen(error.to_string());
        let listener = net::server::bind(config.listen).await.map_err(listen)?;
        let control = Control::open(&config.daemon)?;
        let admin = Listener::admin(&config.daemon, &control).await?;
        let feeds = match config.feed_listen {
            Some(at) => Some(Listener::public(&config.daemon, at, &control).await?),
            None => None,
        };
        let gone = |source: std::io::Error| Error::Listen(source.to_string());
        let (at, admin_at) = (listener.local_addr().map_err(gone)?, admin.address());
        let socket = UdpSocket::bind(at).await.map_err(|source| {
            Error::Listen(format!("cannot listen on UDP {at} for null calls: {source}"))
        })?;
        let started = net::clock::monotonic();
        let caller = Arc::new(Caller::new(socket, started));
        let (to_hub, commands) = mpsc::channel(COMMANDS_MAX);
        let (handle, asks) = Handle::new(control.clone());
        let (calling, client) = (caller.clone(), Client::new(control.client_settings()));
        let opened = tokio::task::spawn_blocking(move || {
            let settings = config.daemon.clone();
            let core = Core::open(config, calling, started, to_hub, asks, client)?;
            settings.write_admin_address(admin_at)?;
            let token = AdminToken::load_or_create(&settings.data)?;
            let (id, key) = (core.id().to_string(), core.identity());
            let describer = Describer::open(&settings.data, "replicator", &id, key.key())?;
            let site = web::Site::new(format!("Replicator {}", core.id()));
            let feed_pages = Pages::new(site.at(settings.base_url.as_ref()), &[], None)?;
            let templates = [daemon::overview::TEMPLATES, serve::TEMPLATES].concat();
            // The overview names the daemon's kind itself.
            let pages = Pages::new(web::Site::new(core.id().to_string()), &templates, None)?;
            Ok::<_, Error>((Box::new(core), token, describer, pages, feed_pages))
        });
        let fronts = [&admin].into_iter().chain(&feeds);
        let opened = daemon::opening::meanwhile("replicator", fronts, opened).await;
        let (core, token, describer, pages, feed_pages) =
            opened.map_err(|_ended| Error::Stopped)??;
        let events = mpsc::channel(EVENTS_MAX);
        let endpoint = Endpoint::new(core.identity())?;
        let hub = Hub::new(endpoint, core.key_check(), started, events.0.clone());
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
            control,
            describer,
            token,
            pages,
            feed_pages,
        })
    }

    /// Returns the address of links and null calls.
    pub fn local_addr(&self) -> Result<SocketAddr, Error> {
        self.listener.local_addr().map_err(|error| Error::Listen(error.to_string()))
    }

    /// Returns the address of the admin listener.
    pub fn admin_addr(&self) -> SocketAddr {
        self.admin.address()
    }

    /// Returns the address at which feeds are served to others, if there is one.
    pub fn feed_addr(&self) -> Option<SocketAddr> {
        self.feeds.as_ref().map(Listener::address)
    }

    /// Returns the member's id.
    pub fn id(&self) -> MemberId {
        self.core.id()
    }

    /// Returns a handle on the member, which also works while it runs.
    pub fn handle(&self) -> Handle {
        self.handle.clone()
    }

    /// Runs until the shutdown starts, then stops within some seconds.
    ///
    /// # Errors
    ///
    /// A listener has failed: start the member again.
    pub async fn run(self, shutdown: Shutdown) -> Result<(), Error> {
        let Self { handle, core, hub, caller, events, commands, listener, .. } = self;
        // The first task that ends, for any reason, ends the others.
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
        let (feeds, identity) = (core.feeds(), core.identity());
        let read = core.config().daemon.admin_read;
        let guard = Guard { token: self.token, read };
        let stop = child.clone();
        let on = runtime::Handle::current();
        tasks.spawn_blocking(move || {
            on.block_on(core.run(receiver, stop));
            Ok(())
        });
        let (reporter, signer) = (handle.clone(), identity);
        let on = runtime::Handle::current();
        let look = move || on.block_on(reporter.status()).map(|it| it.facts).unwrap_or_default();
        let describe = self.control.describe(&self.describer, look, move |text| signer.sign(text));
        let public = self.feeds.map(|it| {
            (it, serve::feeds(handle.clone(), feeds.clone(), describe, &self.feed_pages))
        });
        let control = self.control.clone();
        let admin = (self.admin, serve::admin(handle, feeds, guard, self.pages, control));
        for (front, router) in [Some(admin), public].into_iter().flatten() {
            let stop = child.clone();
            tasks.spawn(async move { Ok(front.serve(router, net::server::DRAIN, stop).await?) });
        }
        let (control, stop) = (self.control, child.clone());
        tasks.spawn(async move {
            control.keep(&stop).await;
            stop.started().await;
            Ok(())
        });
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
