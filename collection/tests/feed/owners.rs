//! Tests of whose feed a source is: a gatherer shows it by the URL at which it serves, and who
//! copies its key gets no power over what it holds.

use std::collections::BTreeSet;
use std::time::Duration;

use collection::feed::{FeedOptions, proof_of_site};
use collection::pull::{PullLimits, Puller, Summary};
use collection::replica::{Follower, Replica};
use collection::{Author, Change, Collection, GATHERER_ID, Oid, Options};
use net::identity::Identity;
use soif::Record;
use tokio::time::timeout;
use url::Url;

use crate::support::{SOON, Server, Store, base, client, feed_client, get, now, update};

/// Number of objects that the gatherer has.
const OBJECTS: u32 = 5;

/// The gatherer.
fn author() -> Author {
    let identity = Identity::of(&[7; 32]).unwrap();
    Author { id: identity.id(), identity }
}

fn oid(n: u32) -> Oid {
    Oid::new(&author().id, &format!("http://h/{n}"))
}

fn all() -> BTreeSet<u32> {
    (0..OBJECTS).collect()
}

/// Makes a store whose versions are newer than those of another.
fn newer_than(other: &Store) -> Store {
    loop {
        let store = Store::new();
        if other.collection.version().epoch < store.collection.version().epoch {
            return store;
        }
    }
}

/// A source with a feed.
struct Source {
    name: &'static str,
    store: Store,
    server: Server,
}

impl Source {
    async fn start(name: &'static str, store: Store) -> Self {
        let server = Server::start(&store, FeedOptions::default()).await;
        Self { name, store, server }
    }

    /// Names the gatherer's key as its own, with this proof.
    fn names_key(&self, site: Option<String>) {
        let options = FeedOptions::default().owned_by(&author(), None);
        self.server.serve_with(&self.store, FeedOptions { site, ..options });
    }

    /// Returns the proof that the gatherer serves here.
    fn proof(&self) -> String {
        proof_of_site(&author().identity, &base(self.server.address))
    }

    async fn pull_into(&self, reader: &Store) -> Summary {
        self.pull_as(self.name, reader).await
    }

    async fn pull_as(&self, name: &str, reader: &Store) -> Summary {
        let feed = feed_client(client(), self.server.address, name);
        let puller = Puller::new(feed, reader.collection.clone(), PullLimits::default());
        timeout(SOON, puller.pull(None)).await.unwrap().unwrap()
    }
}

/// A gatherer, one that copies its key and all that it has, another broker, and the broker that
/// pulls them all.
struct World {
    gatherer: Source,
    poser: Source,
    other: Source,
    broker: Store,
}

impl World {
    /// Starts all with the same objects. The gatherer and the poser name the same key, and these
    /// proofs are chosen by their addresses.
    async fn start(proofs: impl Fn(&Source, &Source) -> (Option<String>, Option<String>)) -> Self {
        let gatherer = Source::start("gatherer", Store::new()).await;
        let updates = (0..OBJECTS).map(oid).map(|oid| {
            let mut record = Record::new("FILE", oid.url);
            record.push("Title", "an object");
            record.push(GATHERER_ID, oid.gatherer);
            Change::Update(record)
        });
        gatherer.store.commit(updates.collect());
        let poser = Source::start("poser", newer_than(&gatherer.store)).await;
        let other = Source::start("other", Store::new()).await;
        let (own, copied) = proofs(&gatherer, &poser);
        gatherer.names_key(own);
        poser.names_key(copied);
        for source in [&poser, &other] {
            gatherer.pull_into(&source.store).await;
        }
        Self { gatherer, poser, other, broker: Store::new() }
    }

    async fn pull(&self, sources: &[&Source]) {
        for source in sources {
            source.pull_into(&self.broker).await;
        }
    }

    /// Has a source delete an object, and pulls it.
    async fn delete(&self, source: &Source, n: u32) {
        source.store.commit(vec![Change::Delete(oid(n))]);
        source.pull_into(&self.broker).await;
    }

    /// Returns which objects the broker has.
    fn left(&self) -> BTreeSet<u32> {
        let serial = |n: u32| self.broker.collection.serial(&oid(n)).unwrap();
        (0..OBJECTS).filter(|n| serial(*n).is_some()).collect()
    }

    fn restart(&mut self) {
        self.broker.collection.close();
        let opened = Collection::open(self.broker.dir.path(), Options::default(), now());
        self.broker.collection = opened.unwrap().0;
    }
}

#[tokio::test]
async fn a_gatherer_is_shown_by_the_url_at_which_it_serves() {
    // The poser copies the proof, too.
    let copied = |gatherer: &Source, _: &Source| (Some(gatherer.proof()), Some(gatherer.proof()));
    let mut world = World::start(copied).await;
    for (source, is_elsewhere) in
        [(&world.poser, true), (&world.other, false), (&world.gatherer, false)]
    {
        assert_eq!(source.pull_into(&world.broker).await.is_elsewhere, is_elsewhere);
    }
    world.delete(&world.poser, 0).await;
    assert_eq!(world.left(), all());
    // The two others have it still.
    world.delete(&world.gatherer, 1).await;
    assert_eq!(world.left(), BTreeSet::from([0, 2, 3, 4]));
    world.restart();
    world.delete(&world.poser, 2).await;
    world.delete(&world.gatherer, 3).await;
    assert_eq!(world.left(), BTreeSet::from([0, 2, 4]));
}

#[tokio::test]
async fn nothing_else_shows_a_gatherer() {
    let proof_of = |secret: u8, url: &str| {
        let identity = Identity::of(&[secret; 32]).unwrap();
        proof_of_site(&identity, &Url::parse(url).unwrap())
    };
    let elsewhere = |it: &Source| it.proof().replace("http:", "https:");
    let of_other_url = |_: &Source| proof_of(7, "http://gatherer.example/");
    let of_other_key = |it: &Source| proof_of(8, base(it.server.address).as_str());
    let without = |it: &Source| base(it.server.address).to_string();
    type Proof<'a> = &'a dyn Fn(&Source) -> String;
    let proofs: [(&str, Proof<'_>); 5] = [
        ("an empty one", &|_| String::new()),
        ("another URL", &of_other_url),
        ("a URL that was not signed", &elsewhere),
        ("another key", &of_other_key),
        ("no signature", &without),
    ];
    for (what, proof) in proofs {
        let named = |gatherer: &Source, poser: &Source| (Some(proof(gatherer)), Some(proof(poser)));
        let mut world = World::start(named).await;
        world.pull(&[&world.gatherer, &world.poser, &world.other]).await;
        // Neither counts as long as the other one holds it.
        world.delete(&world.poser, 0).await;
        world.delete(&world.gatherer, 1).await;
        world.restart();
        world.delete(&world.poser, 2).await;
        world.delete(&world.gatherer, 3).await;
        assert_eq!(world.left(), all(), "{what}");
        world.delete(&world.poser, 3).await;
        assert_eq!(world.left(), BTreeSet::from([0, 1, 2, 4]), "{what}: both have deleted it");
    }
}

#[tokio::test]
async fn a_key_without_a_proof_counts_until_another_source_names_it() {
    let mut world = World::start(|_, _| (None, None)).await;
    world.pull(&[&world.other, &world.poser]).await;
    world.delete(&world.poser, 0).await;
    let left = BTreeSet::from([1, 2, 3, 4]);
    assert_eq!(world.left(), left, "it is not known that there is another one");
    world.restart();
    // What the gatherer has is there again, whatever was deleted in its name.
    world.pull(&[&world.gatherer]).await;
    assert_eq!(world.left(), all());
    world.delete(&world.poser, 1).await;
    assert_eq!(world.left(), all());
    // Another epoch, whose snapshot names one object that is not the gatherer's.
    world.poser.store = newer_than(&world.poser.store);
    world.poser.store.commit(vec![update(7, "other")]);
    world.poser.names_key(None);
    world.pull(&[&world.poser]).await;
    assert_eq!(world.left(), all());
    // From then on the gatherer is alone, and the other broker's hold goes with its own.
    world.delete(&world.gatherer, 2).await;
    assert_eq!(world.left(), BTreeSet::from([0, 1, 3, 4]));
}

#[tokio::test]
async fn a_replica_passes_on_the_key_without_the_proof() {
    let world = World::start(|gatherer, _| (Some(gatherer.proof()), None)).await;
    let asked = get(world.gatherer.server.address, "feed").await;
    assert_eq!(asked.header("harvest-site"), Some(world.gatherer.proof().as_str()));
    let key = asked.header("harvest-key").map(str::to_owned);
    let dir = tempfile::tempdir().unwrap();
    let feed = feed_client(client(), world.gatherer.server.address, "gatherer");
    let mut follower = Follower::open(feed, dir.path().to_owned()).await.unwrap();
    assert!(timeout(SOON, follower.follow(Duration::ZERO)).await.unwrap().unwrap());
    let replica = Replica::open(dir.path()).unwrap();
    world.poser.server.serve_replica(&replica);
    let asked = get(world.poser.server.address, "feed").await;
    assert_eq!(asked.header("harvest-key").map(str::to_owned), key);
    assert_eq!(asked.header("harvest-site"), None);
    // It lags behind, and keeps nothing that the gatherer has deleted.
    world.pull(&[&world.poser, &world.gatherer]).await;
    world.delete(&world.gatherer, 1).await;
    world.pull(&[&world.poser]).await;
    assert_eq!(world.left(), BTreeSet::from([0, 2, 3, 4]));
    // A snapshot brings nothing back either.
    world.delete(&world.gatherer, 2).await;
    world.poser.pull_as("again", &world.broker).await;
    assert_eq!(world.left(), BTreeSet::from([0, 3, 4]));
}
