//! The peers: the brokers that a search everywhere may ask, as registries and the settings name them.
//!
//! Registries are followed by long polls: their feeds have the brokers and, as a part, all content summaries. What came
//! is kept in a small collection of its own, so a restart knows it. Brokers that the settings name are asked for their
//! summaries themselves, and are believed for themselves alone ([`named`](super::named)).

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use collection::pull::{FeedClient, PullLimits, Puller};
use collection::{Collection, Options, Stamp};
use daemon::Token;
use daemon::announce::Registries;
use exchange::servers::ServerKind;
use net::client::Client;
use net::clock;
use net::shutdown::Shutdown;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::sleep;
use url::Url;

use super::directory::Directory;
use super::named::{Declared, NamedFeed};
use super::polling::Polling;
use super::settings::{self, Everywhere};
use super::summary::{QUERY, Summary};
use crate::answer::FromBroker;
use crate::blocking::blocking;
use crate::error::Error;

/// Folder of the collection in the data directory.
const FOLDER: &str = "peers";
/// Longest time for which a feed holds back its answer.
const WAIT: Duration = Duration::from_secs(50);
/// What is pulled of a registry besides content summaries.
const BROKERS: &str = "type:Broker";
/// Most that a registry may send: changes, and bytes.
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
    /// Whether its feed is of another id than the settings give it.
    pub(crate) is_another: bool,
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
    /// What registries have; `None`: there are none.
    collection: Option<Collection>,
    directory: Mutex<Directory>,
    /// What the brokers of the settings say, each of itself, by their first addresses.
    named: Mutex<BTreeMap<Url, Declared>>,
    /// Whether one of the registries is in a private network: then what it lists may be, too.
    is_private: AtomicBool,
    known: watch::Sender<Arc<Vec<Peer>>>,
}

/// A part of a registry's feed that is followed.
#[derive(Clone, Debug)]
struct Feed {
    name: String,
    url: Url,
    query: &'static str,
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
        let open = || {
            let options = Options { own_id: Some(own_id.to_owned()), ..Options::default() };
            Collection::open(&data.join(FOLDER), options, Stamp(clock::now_ms())).map(|it| it.0)
        };
        let collection = if registries.urls.is_empty() { None } else { Some(open()?) };
        let this = Self(Arc::new(Following {
            client,
            settings,
            registries,
            own_id: own_id.to_owned(),
            collection,
            directory: Mutex::default(),
            named: Mutex::default(),
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
        self.0.collection.is_some() || !self.0.settings.peers.is_empty()
    }

    fn named(&self) -> MutexGuard<'_, BTreeMap<Url, Declared>> {
        self.0.named.lock().unwrap_or_else(PoisonError::into_inner)
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
        let of_named = |it| NamedFeed::of(it, self.0.client.clone());
        for feed in self.0.settings.peers.iter().filter_map(of_named) {
            let (this, stop) = (self.clone(), shutdown.clone());
            running.spawn(async move {
                tokio::select! {
                    () = stop.started() => {}
                    () = this.follow_named(feed) => {}
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
                Feed { name, url, query }
            })
        };
        self.0.registries.urls.iter().flat_map(of_registry).collect()
    }

    async fn follow(&self, feed: &Feed) {
        let Some(collection) = &self.0.collection else { return };
        let client = FeedClient::new(self.0.client.clone(), feed.url.clone(), feed.name.as_str())
            .allow_private(self.0.registries.allow_private.unwrap_or(true))
            .consumer(self.0.own_id.as_str())
            .part(Some(("q", feed.query.to_owned())));
        // What a registry lists no more is asked no more, however much it is.
        let puller = Puller::new(client, collection.clone(), LIMITS).confirmed(true);
        let mut polling = Polling::default();
        loop {
            let is_private = self.look_up(feed).await;
            let began = clock::monotonic();
            let outcome = puller.pull(Some(WAIT)).await;
            let pause = polling.after(outcome.is_ok(), began.elapsed());
            if let Err(error) = outcome {
                tracing::debug!(%error, feed = feed.name, "a feed of brokers is not followed");
            }
            self.look_again(is_private).await;
            sleep(pause).await;
        }
    }

    async fn follow_named(&self, mut feed: NamedFeed) {
        let mut polling = Polling::default();
        loop {
            let began = clock::monotonic();
            let outcome = feed.follow().await;
            let pause = polling.after(outcome.is_ok(), began.elapsed());
            match outcome {
                Ok(true) => {
                    self.named().insert(feed.url().clone(), feed.declared().clone());
                    self.look_again(true).await;
                }
                Ok(false) => {}
                Err(error) => {
                    tracing::debug!(error, url = %feed.url(), "a named broker is not followed");
                }
            }
            sleep(pause).await;
        }
    }

    /// Takes what has changed.
    async fn look_again(&self, is_anew: bool) {
        let this = self.clone();
        if let Err(error) = blocking("peers", move || this.look(is_anew)).await {
            tracing::warn!(%error, "what brokers there are is not read");
        }
    }

    /// Looks up whether a registry is in a private network; returns whether that is new.
    async fn look_up(&self, feed: &Feed) -> bool {
        self.0.client.is_private(&feed.url).await
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
            let (named, own_id) = (self.named(), &self.0.own_id);
            let mut peers = peers(&directory, (&self.0.settings, &named), own_id);
            peers.iter_mut().for_each(|it| it.allow_private |= self.allow_private());
            self.0.known.send_replace(Arc::new(peers));
        }
        Ok(())
    }
}

/// Returns the brokers of the directory and of the settings, each once, but for ourselves. `named` has what those of the
/// settings say, each of itself.
///
/// A broker is both if it is listed by the id that the settings give it, or without one at an address of the settings. The
/// id that its feed names is no proof: by that it would take the place of whom it likes.
fn peers(
    directory: &Directory,
    (settings, named): (&Everywhere, &BTreeMap<Url, Declared>),
    own_id: &str,
) -> Vec<Peer> {
    let summaries: BTreeMap<&str, &Arc<Summary>> =
        directory.summaries().map(|it| (&*it.id, it)).collect();
    let mut listed: BTreeMap<Url, Peer> = BTreeMap::new();
    for server in directory.servers().filter(|it| it.kind == ServerKind::Broker) {
        let broker = FromBroker {
            id: server.id.clone(),
            name: server.name.clone(),
            url: server.url.to_string(),
        };
        let summary = summaries.get(&*server.id).map(|it| Arc::clone(it));
        let urls = vec![server.url.clone()];
        let (token, allow_private, is_another) = (None, false, false);
        let peer = Peer { broker, urls, token, allow_private, summary, is_another };
        listed.insert(server.url.clone(), peer);
    }
    let mut peers = Vec::new();
    for one in &settings.peers {
        let Some(url) = one.urls.first() else { continue };
        let is_same = |it: &Peer| match &one.id {
            Some(id) => it.broker.id == *id,
            None => one.urls.iter().any(|url| it.urls.contains(url)),
        };
        let known = listed.extract_if(.., |_, it| is_same(it)).last().map(|it| it.1);
        // Who is listed at the same address under another id is asked there already.
        listed.retain(|_, it| !one.urls.iter().any(|url| it.urls.contains(url)));
        peers.push(of_settings(one, url, (known, named.get(url))));
    }
    peers.extend(listed.into_values());
    peers.retain(|it| it.broker.id != own_id);
    peers
}

/// Returns a broker of the settings: as it is `listed`, if it is, and by what it has `declared` of itself, which is newer
/// than what a registry has of it, and does not count if it is of another id.
fn of_settings(
    one: &settings::Peer,
    url: &Url,
    (listed, declared): (Option<Peer>, Option<&Declared>),
) -> Peer {
    let differs = |it: &Declared| one.id.as_ref().is_some_and(|id| *id != it.id);
    let is_another = declared.is_some_and(differs);
    let id = one.id.clone().or_else(|| listed.as_ref().map(|it| it.broker.id.clone()));
    let declared = declared.filter(|it| id.as_ref().is_none_or(|id| *id == it.id));
    let id = id.or_else(|| declared.map(|it| it.id.clone())).unwrap_or_default();
    let (broker, summary) = listed.map(|it| (it.broker, it.summary)).unzip();
    let summary = declared.and_then(|it| it.summary.clone()).or_else(|| summary.flatten());
    let mut broker = broker.unwrap_or_else(|| FromBroker {
        id,
        name: summary.as_ref().map(|it| it.name.clone()).unwrap_or_default(),
        url: url.to_string(),
    });
    if let Some(name) = &one.name {
        broker.name.clone_from(name);
    }
    if broker.name.is_empty() {
        broker.name = url.host_str().unwrap_or_default().to_owned();
    }
    // The settings name it.
    let (urls, token, allow_private) = (one.urls.clone(), one.token.clone(), true);
    Peer { broker, urls, token, allow_private, summary, is_another }
}

#[cfg(test)]
mod tests {
    use collection::{Batch, Change};
    use soif::Record;

    use super::super::summary::Content;
    use super::*;

    const IDS: [&str; 2] = ["00000000000000aa", "00000000000000bb"];
    /// Where the first of them is listed.
    const PUBLIC: &str = "https://public.example/";

    /// Returns the summary of a broker that has so many objects, and says that it is at this address.
    fn summary((id, url): (&str, &str), objects: u64) -> Summary {
        Summary {
            id: id.to_owned(),
            name: format!("has {objects}"),
            url: Url::parse(url).ok(),
            content: Content { objects, ..Content::default() },
            excess: std::collections::BTreeSet::new(),
        }
    }

    /// Returns the directory of a registry that lists the first broker with seven objects.
    fn directory(folder: &Path, summary_at: &str) -> Directory {
        let (collection, _) = Collection::open(folder, Options::default(), Stamp(1)).unwrap();
        let mut server = Record::new("BROKER", PUBLIC);
        server.push("Gatherer-Id", IDS[0]);
        server.push("Type", "Broker");
        server.push("Title", "Listed");
        let summary = summary((IDS[0], summary_at), 7).to_record(1);
        let changes = vec![Change::Update(server), Change::Update(summary)];
        collection.commit(Batch { changes, notes: Vec::new() }, Stamp(2)).unwrap();
        let mut directory = Directory::default();
        directory.follow(&collection).unwrap();
        directory
    }

    fn named(url: &str, id: Option<&str>) -> settings::Peer {
        let (urls, id) = (vec![Url::parse(url).unwrap()], id.map(str::to_owned));
        settings::Peer { urls, id, name: None, token: None }
    }

    /// Returns, as a map for [`peers`], that what is at these addresses says it has these ids and so many objects.
    fn declared(all: &[(&str, &str, u64)]) -> BTreeMap<Url, Declared> {
        let one = |(url, id, objects): &(&str, &str, u64)| {
            let summary = Some(Arc::new(summary((id, url), *objects)));
            (Url::parse(url).unwrap(), Declared { id: (*id).to_owned(), summary })
        };
        all.iter().map(one).collect()
    }

    /// Checks the address that is asked, the id and the number of objects of each peer.
    fn check(
        directory: &Directory,
        (of_settings, says): (Vec<settings::Peer>, &[(&str, &str, u64)]),
        expected: &[(&str, &str, Option<u64>)],
    ) {
        let settings = Everywhere { peers: of_settings, ..Everywhere::default() };
        let found = peers(directory, (&settings, &declared(says)), "00000000000000cc");
        let one = |it: &Peer| {
            let objects = it.summary.as_ref().map(|it| it.content.objects);
            let is_of_settings = settings.peers.iter().any(|named| named.urls == it.urls);
            assert_eq!(it.allow_private, is_of_settings);
            (it.urls[0].to_string(), it.broker.id.clone(), objects)
        };
        let found: Vec<_> = found.iter().map(one).collect();
        let expected: Vec<_> =
            expected.iter().map(|it| (it.0.to_owned(), it.1.to_owned(), it.2)).collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn a_broker_that_is_named_and_listed_is_one() {
        let folder = tempfile::tempdir().unwrap();
        let (directory, inside) = (directory(folder.path(), PUBLIC), "http://10.0.0.5:8501/");
        // At the same address: what it says itself is newer than what the registry has of it.
        let same = || vec![named(PUBLIC, None)];
        check(&directory, (same(), &[]), &[(PUBLIC, IDS[0], Some(7))]);
        check(&directory, (same(), &[(PUBLIC, IDS[0], 9)]), &[(PUBLIC, IDS[0], Some(9))]);
        check(&directory, (same(), &[(PUBLIC, IDS[1], 9)]), &[(PUBLIC, IDS[0], Some(7))]);
        // At another address the settings say which it is.
        let other = || vec![named(inside, Some(IDS[0]))];
        check(&directory, (other(), &[]), &[(inside, IDS[0], Some(7))]);
        check(&directory, (other(), &[(inside, IDS[0], 9)]), &[(inside, IDS[0], Some(9))]);
        check(&directory, (other(), &[(inside, IDS[1], 9)]), &[(inside, IDS[0], Some(7))]);
        for (id, is_another) in [(IDS[0], false), (IDS[1], true)] {
            let settings = Everywhere { peers: other(), ..Everywhere::default() };
            let found = peers(&directory, (&settings, &declared(&[(inside, id, 9)])), "");
            assert_eq!(found[0].is_another, is_another);
        }
        // Another one is listed where it is.
        let moved = vec![named(PUBLIC, Some(IDS[1]))];
        check(&directory, (moved, &[]), &[(PUBLIC, IDS[1], None)]);
        // This broker itself is not asked.
        let none = peers(&directory, (&Everywhere::default(), &BTreeMap::new()), IDS[0]);
        assert!(none.is_empty());
    }

    #[test]
    fn a_named_broker_takes_nobodys_place() {
        let folder = tempfile::tempdir().unwrap();
        let (a, b) = ("http://a.example/", "http://b.example/");
        let directory = directory(folder.path(), a);
        let listed = (PUBLIC, IDS[0], Some(7));
        // The listed one says that it is where a named one is.
        check(&directory, (vec![named(a, None)], &[]), &[(a, "", None), listed]);
        // A named one names the key of the listed one.
        let says = [(a, IDS[0], 0)];
        check(&directory, (vec![named(a, None)], &says), &[(a, IDS[0], Some(0)), listed]);
        // Two name the same key, which is that of one of them.
        let says = [(a, IDS[1], 3), (b, IDS[1], 0)];
        let expected = [(a, IDS[1], Some(3)), (b, IDS[1], Some(0)), listed];
        check(&directory, (vec![named(a, None), named(b, None)], &says), &expected);
    }
}
