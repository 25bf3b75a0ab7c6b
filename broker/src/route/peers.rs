//! The peers: the brokers that a search everywhere may ask, as registries and the settings name them.
//!
//! Registries are followed by long polls: their feeds have the brokers and, as a part, all content summaries. Brokers
//! that only the settings name are asked for their summaries themselves. What came is kept in a small collection of its own, so a
//! restart knows it.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use collection::pull::{FeedClient, PullLimits, Puller};
use collection::{Collection, Options, Stamp};
use daemon::Token;
use daemon::announce::Registries;
use exchange::servers::ServerKind;
use net::client::{Client, Credentials};
use net::clock;
use net::identity;
use net::shutdown::Shutdown;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::sleep;
use url::Url;

use super::directory::Directory;
use super::settings::Everywhere;
use super::summary::{QUERY, Summary};
use crate::answer::FromBroker;
use crate::blocking::blocking;
use crate::error::Error;

/// Folder of the collection in the data directory.
const FOLDER: &str = "peers";
/// Longest time for which a feed holds back its answer.
const WAIT: Duration = Duration::from_secs(50);
/// Pause after a failure: the first one, and the longest.
const RETRY: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(60));
/// Pause after each answer, so that changes in quick succession are taken together.
const PAUSE: Duration = Duration::from_millis(200);
/// What is pulled of a registry besides content summaries.
const BROKERS: &str = "type:Broker";
/// Most that one of them may send: changes, and bytes.
const LIMITS: PullLimits =
    PullLimits { records_max: 200_000, bytes_max: 4 << 30, time_max: Duration::from_secs(600) };

/// A broker that can be asked.
#[derive(Clone, Debug)]
pub(crate) struct Peer {
    pub(crate) broker: FromBroker,
    /// Its addresses: of replicas, of which any is asked.
    pub(crate) urls: Vec<Url>,
    pub(crate) token: Option<Token>,
    /// Whether its addresses may be in a private network.
    pub(crate) allow_private: bool,
    pub(crate) summary: Option<Arc<Summary>>,
}

/// The peers. Clones share them.
#[derive(Clone, Debug)]
pub(crate) struct Peers(Arc<Following>);

#[derive(Debug)]
struct Following {
    client: Client,
    settings: Everywhere,
    registries: Registries,
    own_id: String,
    /// `None`: nobody is named.
    collection: Option<Collection>,
    directory: Mutex<Directory>,
    /// Whether one of the registries is in a private network: then what it lists may be, too.
    is_private: AtomicBool,
    known: watch::Sender<Arc<Vec<Peer>>>,
}

/// A feed that is followed.
#[derive(Clone, Debug)]
struct Feed {
    name: String,
    url: Url,
    token: Option<Token>,
    query: &'static str,
    is_registry: bool,
}

impl Peers {
    /// Opens what is known of the peers. Blocks.
    ///
    /// # Errors
    ///
    /// The folder cannot be used.
    pub(crate) fn open(
        data: &Path,
        client: Client,
        (settings, registries): (Everywhere, Registries),
        own_id: &str,
    ) -> Result<Self, Error> {
        let is_alone = settings.peers.is_empty() && registries.urls.is_empty();
        let open = || {
            let options = Options { own_id: Some(own_id.to_owned()), ..Options::default() };
            Collection::open(&data.join(FOLDER), options, Stamp(clock::now_ms())).map(|it| it.0)
        };
        let collection = if is_alone { None } else { Some(open()?) };
        let this = Self(Arc::new(Following {
            client,
            settings,
            registries,
            own_id: own_id.to_owned(),
            collection,
            directory: Mutex::default(),
            is_private: AtomicBool::new(false),
            known: watch::Sender::default(),
        }));
        this.forget_others()?;
        this.look(true)?;
        Ok(this)
    }

    /// Forgets what came from feeds that the settings name no more. Blocks.
    fn forget_others(&self) -> Result<(), Error> {
        let Some(collection) = &self.0.collection else { return Ok(()) };
        let feeds = self.feeds();
        for known in collection.sources()? {
            if feeds.iter().all(|it| it.name != known.source) {
                collection.remove_source(&known.source, Stamp(clock::now_ms()))?;
            }
        }
        Ok(())
    }

    /// Returns the peers that are known.
    pub(crate) fn known(&self) -> Arc<Vec<Peer>> {
        self.0.known.borrow().clone()
    }

    pub(crate) fn settings(&self) -> &Everywhere {
        &self.0.settings
    }

    /// Whether brokers in private networks may be asked if a registry lists them. That the registry has reached one says
    /// nothing of where its name leads from here.
    fn allow_private(&self) -> bool {
        let of_registries = || self.0.is_private.load(Ordering::Relaxed);
        self.0.registries.allow_private.unwrap_or_else(of_registries)
    }

    /// Returns whether there is anybody to ask.
    pub(crate) fn are_named(&self) -> bool {
        self.0.collection.is_some()
    }

    /// Follows all feeds until the shutdown starts.
    pub(crate) async fn run(&self, shutdown: Shutdown) {
        let mut running = JoinSet::new();
        for feed in self.feeds() {
            let (this, stop) = (self.clone(), shutdown.clone());
            running.spawn(async move {
                tokio::select! {
                    () = stop.started() => {}
                    () = this.follow(&feed) => {}
                }
            });
        }
        shutdown.started().await;
        while running.join_next().await.is_some() {}
        if let Some(collection) = self.0.collection.clone() {
            let closed = blocking("closing", move || {
                collection.close();
                Ok::<_, Error>(())
            });
            let _closed = closed.await;
        }
    }

    fn feeds(&self) -> Vec<Feed> {
        let of_registry = |url: &Url| {
            [BROKERS, QUERY].map(|query| {
                let (name, url) = (format!("registry {url} {query}"), url.clone());
                Feed { name, url, token: None, query, is_registry: true }
            })
        };
        let registries = self.0.registries.urls.iter().flat_map(of_registry);
        let peers = self.0.settings.peers.iter().filter_map(|peer| {
            let url = peer.urls.first()?.clone();
            let (name, token) = (name_of(&url), peer.token.clone());
            Some(Feed { name, url, token, query: QUERY, is_registry: false })
        });
        registries.chain(peers).collect()
    }

    async fn follow(&self, feed: &Feed) {
        let Some(collection) = &self.0.collection else { return };
        let token = feed.token.as_ref().map(|it| it.secret().to_owned());
        let credentials = Credentials { token, ..Credentials::default() };
        let client = FeedClient::new(self.0.client.clone(), feed.url.clone(), feed.name.as_str())
            .credentials(credentials)
            .allow_private(self.0.registries.allow_private.unwrap_or(true))
            .consumer(self.0.own_id.as_str())
            .part(Some(("q", feed.query.to_owned())));
        // What a registry lists no more is asked no more, however much it is.
        let puller = Puller::new(client, collection.clone(), LIMITS).confirmed(true);
        let mut failures: u32 = 0;
        loop {
            let is_private = self.look_up(feed).await;
            match puller.pull(Some(WAIT)).await {
                Ok(_) => failures = 0,
                Err(error) => {
                    failures = failures.saturating_add(1);
                    tracing::debug!(%error, feed = feed.name, "a feed of brokers is not followed");
                }
            }
            let (this, is_anew) = (self.clone(), is_private || !feed.is_registry);
            if let Err(error) = blocking("peers", move || this.look(is_anew)).await {
                tracing::warn!(%error, "what brokers there are is not read");
            }
            let pause = match failures {
                0 => PAUSE,
                _ => (RETRY.0 * 2_u32.saturating_pow(failures - 1)).min(RETRY.1),
            };
            sleep(pause).await;
        }
    }

    /// Looks up whether a registry is in a private network; returns whether that is new.
    async fn look_up(&self, feed: &Feed) -> bool {
        feed.is_registry
            && self.0.client.is_private(&feed.url).await
            && !self.0.is_private.swap(true, Ordering::Relaxed)
    }

    /// Takes what has changed; `is_anew`: something beside the feeds has, perhaps. Blocks.
    fn look(&self, is_anew: bool) -> Result<(), Error> {
        let mut directory = self.0.directory.lock().unwrap_or_else(PoisonError::into_inner);
        let is_changed = match &self.0.collection {
            Some(collection) => directory.follow(collection)?,
            None => false,
        };
        if is_changed || is_anew || self.known().is_empty() {
            // A feed proves whose it is by its key, whatever its address is.
            let id = |url: &Url| {
                let key = self.0.collection.as_ref()?.key_of_source(&name_of(url))?;
                Some(identity::id_of(&key))
            };
            let mut peers = peers(&directory, &self.0.settings, &self.0.own_id, id);
            peers.iter_mut().for_each(|it| it.allow_private |= self.allow_private());
            self.0.known.send_replace(Arc::new(peers));
        }
        Ok(())
    }
}

/// Returns the name of the feed of a broker that the settings name.
fn name_of(url: &Url) -> String {
    format!("peer {url}")
}

/// Returns the brokers of the directory and of the settings, each once, but for ourselves. `id_of` tells the ids of those
/// that the settings name, as far as they are known.
fn peers(
    directory: &Directory,
    settings: &Everywhere,
    own_id: &str,
    id_of: impl Fn(&Url) -> Option<String>,
) -> Vec<Peer> {
    let mut by_url: BTreeMap<Url, Peer> = BTreeMap::new();
    let summaries: BTreeMap<&str, &Arc<Summary>> =
        directory.summaries().map(|it| (&*it.id, it)).collect();
    for server in directory.servers().filter(|it| it.kind == ServerKind::Broker) {
        let broker = FromBroker {
            id: server.id.clone(),
            name: server.name.clone(),
            url: server.url.to_string(),
        };
        let summary = summaries.get(&*server.id).map(|it| Arc::clone(it));
        let urls = vec![server.url.clone()];
        let peer = Peer { broker, urls, token: None, allow_private: false, summary };
        by_url.insert(server.url.clone(), peer);
    }
    for named in &settings.peers {
        let Some(url) = named.urls.first().cloned() else { continue };
        let id = id_of(&url);
        let is_same = |it: &Peer| {
            named.urls.iter().any(|url| it.urls.contains(url)) || id.as_ref() == Some(&it.broker.id)
        };
        // It may be listed at an address for others.
        let known = by_url.extract_if(.., |_, it| is_same(it)).last().map(|it| it.1);
        let of_url = |it: &&Arc<Summary>| it.url.as_ref().is_some_and(|it| named.urls.contains(it));
        let of_id = || id.as_ref().and_then(|it| summaries.get(&**it)).copied();
        let summary = known.as_ref().and_then(|it| it.summary.clone());
        let summary = summary.or_else(|| of_id().cloned());
        let summary = summary.or_else(|| summaries.values().copied().find(of_url).cloned());
        let mut broker = known.map(|it| it.broker).unwrap_or_else(|| FromBroker {
            id: id.or_else(|| summary.as_ref().map(|it| it.id.clone())).unwrap_or_default(),
            name: summary.as_ref().map(|it| it.name.clone()).unwrap_or_default(),
            url: url.to_string(),
        });
        if let Some(name) = &named.name {
            broker.name.clone_from(name);
        }
        if broker.name.is_empty() {
            broker.name = url.host_str().unwrap_or_default().to_owned();
        }
        let (urls, token) = (named.urls.clone(), named.token.clone());
        // The settings name it.
        by_url.insert(url, Peer { broker, urls, token, allow_private: true, summary });
    }
    by_url.into_values().filter(|it| it.broker.id != own_id).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use collection::{Batch, Change};
    use soif::Record;

    use super::*;
    use crate::route::settings;

    /// Returns a directory with the broker of this id at this address, and its summary.
    fn directory(folder: &Path, (id, url): (&str, &str)) -> Directory {
        let (collection, _) = Collection::open(folder, Options::default(), Stamp(1)).unwrap();
        let mut server = Record::new("BROKER", url);
        server.push("Gatherer-Id", id);
        server.push("Type", "Broker");
        server.push("Title", "Listed");
        let summary = Summary {
            id: id.to_owned(),
            name: "Told".to_owned(),
            url: None,
            content: crate::route::summary::Content {
                objects: 7,
                terms: HashMap::new(),
                ..crate::route::summary::Content::default()
            },
        };
        let changes = vec![Change::Update(server), Change::Update(summary.to_record(1))];
        collection.commit(Batch { changes, notes: Vec::new() }, Stamp(2)).unwrap();
        let mut directory = Directory::default();
        directory.follow(&collection).unwrap();
        directory
    }

    #[test]
    fn a_broker_that_is_named_and_listed_is_one() {
        let (folder, id) = (tempfile::tempdir().unwrap(), "00000000000000aa");
        let directory = directory(folder.path(), (id, "https://public.example/"));
        let inside = Url::parse("http://10.0.0.5:8501/").unwrap();
        let peer = settings::Peer { urls: vec![inside.clone()], name: None, token: None };
        let settings = Everywhere { peers: vec![peer], ..Everywhere::default() };
        let of = |known: Option<&str>| {
            let known = known.map(str::to_owned);
            peers(&directory, &settings, "00000000000000bb", |_: &Url| known.clone())
        };
        let one = of(Some(id));
        assert_eq!((one.len(), &one[0].urls[0], &*one[0].broker.id), (1, &inside, id));
        assert_eq!(one[0].summary.as_ref().unwrap().content.objects, 7);
        assert!(one[0].allow_private);
        // Until its feed has told whose it is, they are two.
        let two = of(None);
        assert_eq!(two.len(), 2);
        assert!(two.iter().any(|it| it.summary.is_none() && it.allow_private));
        assert!(two.iter().any(|it| it.summary.is_some() && !it.allow_private));
        assert!(peers(&directory, &settings, id, |_: &Url| Some(id.to_owned())).is_empty());
    }
}
