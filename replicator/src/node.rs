//! A member that runs: its links, its groups, its trees and collections, and its administrator.
//!
//! ```text
//! link::Hub ─events→ core ─commands→ link::Hub
//!                     │ handle_…, poll_action
//!       group::Group (one a group), replica::Replica: what to do
//!                     │ jobs
//!        space (chunks in, switch), serving (chunks out), publishing, following
//! ```
//!
//! The core runs on a thread of its own; everything else that takes long is a job of it.

mod ask;
mod content;
mod core;
mod feeds;
mod following;
mod groups;
mod invitations;
mod kept;
mod measuring;
mod notes;
mod places;
mod publishing;
mod serving;
mod space;
mod status;
mod verifying;
mod versions;
mod watching;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::SocketAddr;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::{Duration, Instant};

use daemon::auth::{AdminToken, Guard, Whereabouts};
use net::client::Client;
use net::identity::Identity;
use net::peer::Endpoint;
use net::server::Limits;
use net::shutdown::Shutdown;
use tokio::net::{TcpListener, UdpSocket};
use tokio::runtime;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinSet;
use web::Pages;

use self::ask::{ASKS_MAX, Ask};
use self::core::{Core, Door};
pub use self::feeds::FeedStatus;
pub(crate) use self::feeds::Feeds;
pub use self::invitations::{InvitationStanding, InvitationStatus, Printed, invitation};
use self::kept::Kept;
pub use self::publishing::Published;
pub use self::status::{
    CollectionStatus, FailureStatus, FetchStatus, GroupStatus, LinkStatus, MemberStatus,
    NoteStatus, Status, TopologyLink, TreeStatus, WatchStatus,
};
pub use self::verifying::Report;
pub use self::versions::{ListedStatus, Standing, Standings, VersionStatus, VersionsStatus};
use self::watching::Watching;
use crate::config::{Config, Entry, GroupConfig};
use crate::error::Error;
use crate::group::access::Access;
use crate::group::charter::Carried;
use crate::group::{self, Group};
use crate::id::{InvitationId, MemberId};
use crate::link::{Caller, Command, EVENTS_MAX, Event, Hub};
use crate::replica::Replica;
use crate::serve;
use crate::tree::passage::make_private;
use crate::version::{Kind, Name, Version};

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
        let (ask, asks) = mpsc::channel(ASKS_MAX);
        let outside = Limits { host: config.proxy(), ..Limits::default() };
        let opening = Opening { config, started, caller: caller.clone(), to_hub, asks };
        let opened = tokio::task::spawn_blocking(move || {
            let data = opening.config.data.clone();
            let core = opening.open()?;
            Whereabouts { address: admin_at, certificate: None }.write(&data)?;
            let token = AdminToken::load_or_create(&data)?;
            let site = web::Site::new(format!("Replicator {}", core.me));
            let feed_pages = Pages::new(site.clone().at(core.config.base_url.as_ref()), &[], None)?;
            let pages = Pages::new(site, serve::TEMPLATES, None)?;
            Ok::<_, Error>((Box::new(core), token, pages, feed_pages))
        });
        let fronts = [(&admin, Limits::default())].into_iter();
        let fronts = fronts.chain(feeds.as_ref().map(|it| (it, outside)));
        let opened = daemon::opening::meanwhile("replicator", fronts, opened).await;
        let (core, token, pages, feed_pages) = opened.map_err(|_ended| Error::Stopped)??;
        let events = mpsc::channel(EVENTS_MAX);
        let endpoint = Endpoint::new(core.identity.clone())?;
        let (door, strangers) = (core.door.clone(), core.strangers.clone());
        let known = Arc::new(move |key: &[u8; 32]| {
            let door = door.read().unwrap_or_else(PoisonError::into_inner);
            door.check(key, strangers.load(Ordering::Relaxed))
        });
        let hub = Hub::new(endpoint, known, started, events.0.clone());
        let handle = Handle { ask };
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
        self.core.me
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
        let feeds = core.feeds.clone();
        let (proxy, read) = (core.config.proxy(), core.config.admin_read);
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

/// A handle on a member: cheap to clone, usable while it runs.
#[derive(Clone, Debug)]
pub struct Handle {
    ask: mpsc::Sender<Ask>,
}

impl Handle {
    async fn ask<T>(&self, ask: impl FnOnce(oneshot::Sender<T>) -> Ask) -> Result<T, Error> {
        let (reply, answer) = oneshot::channel();
        self.ask.send(ask(reply)).await.map_err(|_gone| Error::Stopped)?;
        answer.await.map_err(|_gone| Error::Stopped)
    }

    /// Everything an administrator asks first.
    ///
    /// # Errors
    ///
    /// It has stopped.
    pub async fn status(&self) -> Result<Status, Error> {
        Ok(*self.ask(Ask::Status).await?)
    }

    /// Publishes a tree of the settings, by its name or its directory. `accepts_loss`: also if much of it is gone.
    ///
    /// # Errors
    ///
    /// [`Error::Refused`] says what is wrong with the tree; readers see what they saw. Or it has stopped.
    pub async fn publish(&self, tree: String, accepts_loss: bool) -> Result<Published, Error> {
        let answer = self.ask(|reply| Ask::Publish { tree, accepts_loss, reply }).await?;
        answer.map_err(Error::Refused)
    }

    /// Reads all that readers see of a tree, or of all of them; what is damaged is fetched again.
    ///
    /// # Errors
    ///
    /// There is no such tree, or it cannot be read. Or it has stopped.
    pub async fn verify(&self, tree: Option<String>) -> Result<Vec<Report>, Error> {
        self.ask(|reply| Ask::Verify(tree, reply)).await?.map_err(Error::Refused)
    }

    /// A new line by which one member can join a group, for so long or a day; its name may be left out if there is one
    /// alone. If another leads the group and no time is said, one that is no pass.
    ///
    /// # Errors
    ///
    /// There is no such group, this member is not in it yet, or another leads it. Or it has stopped.
    pub async fn invite(
        &self,
        group: Option<Name>,
        valid: Option<Duration>,
    ) -> Result<Printed, Error> {
        self.ask(|reply| Ask::Invite(group, valid, reply)).await?.map_err(Error::Refused)
    }

    /// Withdraws an invitation; returns its id. Who came by it stays.
    ///
    /// # Errors
    ///
    /// There is no such group or invitation, or another leads the group. Or it has stopped.
    pub async fn revoke(
        &self,
        group: Option<Name>,
        id: InvitationId,
    ) -> Result<InvitationId, Error> {
        self.ask(|reply| Ask::Revoke(group, id, reply)).await?.map_err(Error::Refused)
    }

    /// Has this member lead a group, whoever does now; returns the group's name.
    ///
    /// # Errors
    ///
    /// It may not lead that group. Or it has stopped.
    pub async fn lead(&self, group: Option<Name>) -> Result<String, Error> {
        self.ask(|reply| Ask::Lead(group, reply)).await?.map_err(Error::Refused)
    }

    /// Notes what its administrator may want to read, beside what it notes by itself.
    ///
    /// # Errors
    ///
    /// It has stopped.
    pub async fn note(&self, text: String) -> Result<(), Error> {
        self.ask(|reply| Ask::Note(text, reply)).await
    }

    /// Puts other settings in force.
    ///
    /// # Errors
    ///
    /// They differ where only a restart helps; then nothing is changed. Or it has stopped.
    pub async fn reload(&self, config: Config) -> Result<(), Error> {
        self.ask(|reply| Ask::Reload(Arc::new(config), reply)).await?
    }
}

/// The id of the member whose data directory this is: of the key there, which is made if there is none.
///
/// # Errors
///
/// The data directory cannot be used.
pub fn identity(data: &Path) -> Result<MemberId, Error> {
    let _kept = Kept::open(data)?;
    Ok(MemberId::of(&Identity::load_or_create(data)?.public()))
}

/// What the settings say of a group, as its machine takes it.
fn settings(config: &Config, group: &GroupConfig, carried: Vec<Carried>) -> group::Settings {
    let name = group.entry.name();
    let is_in = |groups: &BTreeSet<Name>| groups.is_empty() || groups.contains(name);
    let trees = config.trees.iter().filter(|it| is_in(&it.groups));
    let trees = trees.map(|it| (it.name.clone(), Kind::Tree));
    let collections = config.collections.iter().filter(|it| is_in(&it.groups));
    let collections = collections.map(|it| (it.name.clone(), Kind::Collection));
    // Who has founded the group settles it by leaving the lists empty, too.
    let has_list = !group.allow.is_empty() || !group.deny.is_empty();
    let is_settled = has_list || matches!(group.entry, Entry::Found(_));
    let access =
        is_settled.then(|| Access { allow: group.allow.clone(), deny: group.deny.clone() });
    group::Settings {
        address: config.address.clone(),
        site: config.site.clone(),
        trees: trees.chain(collections).collect(),
        carried,
        connectivity: group.connectivity,
        deputies: group.deputies.clone(),
        access,
    }
}

/// What a core is made of.
struct Opening {
    config: Config,
    started: Instant,
    caller: Arc<Caller>,
    to_hub: mpsc::Sender<Command>,
    asks: mpsc::Receiver<Ask>,
}

impl Opening {
    /// Opens everything that is stored. Blocks.
    fn open(self) -> Result<Core, Error> {
        let Self { config, started, caller, to_hub, asks } = self;
        let data = config.data.clone();
        if !data.exists() {
            make_private(&data)?;
        }
        // Two members of one key would contradict each other.
        let lock = disk::lock::take(&data).map_err(crate::tree::error::Error::from)?;
        let kept = Kept::open(&data)?;
        let identity = Arc::new(Identity::load_or_create(&data)?);
        let me = MemberId::of(&identity.public());
        let mut core = Core {
            _lock: lock,
            identity,
            me,
            kept,
            started,
            started_ms: net::clock::now_ms(),
            door: Arc::new(RwLock::new(Door::default())),
            strangers: Arc::new(AtomicUsize::new(0)),
            groups: BTreeMap::new(),
            replica: Replica::new(me),
            restored: BTreeMap::new(),
            spaces: BTreeMap::new(),
            links: BTreeMap::new(),
            site_limits: BTreeMap::new(),
            measuring: Default::default(),
            watching: Watching::new(started),
            following: Default::default(),
            client: Client::new(net::client::Settings::default()),
            feeds: Default::default(),
            renewing: Default::default(),
            old: Default::default(),
            failures: BTreeMap::new(),
            stop: Shutdown::new(),
            notes: Default::default(),
            caller,
            commands: to_hub,
            to_hub: VecDeque::new(),
            jobs: JoinSet::new(),
            look_at: Duration::ZERO,
            asks,
            publishing: BTreeSet::new(),
            carrying: Vec::new(),
            config: Arc::new(config),
        };
        core.close_data();
        core.open_groups()?;
        for kind in [Kind::Tree, Kind::Collection] {
            core.open_spaces(kind)?;
        }
        core.open_data();
        for bytes in core.kept.versions()? {
            if let Some(namespace) = Version::namespace_of(&bytes) {
                core.restored.insert(namespace, bytes);
            }
        }
        core.watching.set(&core.config.trees, Duration::ZERO);
        core.following.set(&core.config.collections, Duration::ZERO);
        core.link_replicas();
        Ok(core)
    }
}

impl Core {
    fn open_groups(&mut self) -> Result<(), Error> {
        let (now, key) = (self.now(), self.identity.public());
        for group in self.config.groups.clone() {
            let id = group.entry.group(&key);
            let settings = settings(&self.config, &group, Vec::new());
            let kept = self.kept.group(id)?;
            let name = group.entry.name().clone();
            let identity = self.identity.clone();
            let machine = match (&group.entry, kept) {
                (Entry::Found(_), None) => {
                    let found = Group::found(identity, name.clone(), settings, now);
                    let mut found = found.map_err(|source| Error::Found { group: name, source })?;
                    found.handle_clock(net::clock::now_ms() / 1_000, now);
                    self.invite_first(id, &mut found)?;
                    found
                }
                (entry, kept) => {
                    self.forget_first(id);
                    let invitation = match entry {
                        Entry::Found(_) => None,
                        Entry::Join(invitation) => Some(invitation.clone()),
                    };
                    Group::open(identity, settings, kept.as_deref(), invitation, now)
                        .map_err(|source| Error::Open { group: name, source })?
                }
            };
            self.groups.insert(id, machine);
        }
        Ok(())
    }
}
