//! The six cases of TR §9 with three caches: one misses, and its sibling or parent has the object, or its home is
//! the fastest, or nobody has it. Each is shown by the whole logs of all three.

use std::sync::atomic::Ordering;

use crate::common::until;
use crate::members::{Link, Member, NAME, TurningFar, get, neighbor, one, origin, origin_until};
use cache::config::Origin;
use cache::resolution::{Kind, PATIENCE};
use net::clock;
use net::shutdown::Shutdown;
use url::Url;

/// A cache that asks, with a sibling and a parent; what these say comes when their links are open.
struct Three {
    asker: Member,
    sibling: Member,
    parent: Member,
    links: [Link; 2],
}

/// Numbers of their addresses.
const ASKER: u8 = 41;
const SIBLING: u8 = 42;
const PARENT: u8 = 43;

/// What a log has of an object that its home gave, and of a hit.
const FETCHED: [&str; 2] = ["TCP_MISS/200", "HIER_DIRECT/127.0.0.1"];
const HIT: [&str; 2] = ["TCP_HIT/200", "HIER_NONE/-"];

/// Returns a line of a log.
fn line([code, giver]: [&str; 2], url: &Url) -> String {
    format!("{code} {url} {giver}")
}

impl Three {
    async fn start() -> Self {
        Self::with(|_| (), |_| ()).await
    }

    /// Starts them, with other settings of the asker, and of the parent.
    async fn with(
        asker: impl FnOnce(&mut cache::Config),
        parent: impl FnOnce(&mut cache::Config),
    ) -> Self {
        let sibling = Member::start(SIBLING, vec![]).await;
        let parent = Member::with((PARENT, 0), vec![], parent).await;
        let (theirs, above) = (sibling.ports(), parent.ports());
        let links = [Link::to(SIBLING, theirs.1).await, Link::to(PARENT, above.1).await];
        let neighbors = vec![
            neighbor(SIBLING, (theirs.0, links[0].port), Kind::Sibling),
            neighbor(PARENT, (above.0, links[1].port), Kind::Parent),
        ];
        let asker = Member::with((ASKER, 0), neighbors, asker).await;
        Self { asker, sibling, parent, links }
    }

    fn open(&self) {
        self.links.iter().for_each(Link::open);
    }

    /// Waits until both have said so often that they have not what was asked for.
    async fn have_missed(&self, count: u64) {
        let all = async || self.asker.neighbors().await.iter().all(|it| it.misses == count);
        until("both have said no", all).await;
    }

    /// Ends all three, and checks their logs: the asker's, the sibling's and the parent's.
    async fn logs(mut self, expected: [&[String]; 3]) {
        let members = [&mut self.asker, &mut self.sibling, &mut self.parent];
        for (member, expected) in members.into_iter().zip(expected) {
            member.end().await;
            let mut expected = expected.to_vec();
            expected.sort_unstable();
            assert_eq!(member.log(), expected);
        }
    }
}

#[tokio::test]
async fn a_sibling_that_has_it_gives_it() {
    let three = Three::start().await;
    three.open();
    let home = TurningFar::new().given_to(&three.sibling.proxy).await;
    assert_eq!(three.asker.get(&home.url).await, (200, "body".to_owned()));
    assert_eq!(three.asker.routes(), one("NEIGHBOR_HIT"));
    // It is stored here, too.
    assert_eq!(three.asker.get(&home.url).await, (200, "body".to_owned()));
    let taken = line(["TCP_MISS/200", "SIBLING_HIT/127.0.0.42"], &home.url);
    let asker = [taken, line(HIT, &home.url)];
    three.logs([&asker, &[line(FETCHED, &home.url), line(HIT, &home.url)], &[]]).await;
}

#[tokio::test]
async fn a_parent_that_has_it_gives_it() {
    let three = Three::start().await;
    three.open();
    let home = TurningFar::new().given_to(&three.parent.proxy).await;
    assert_eq!(three.asker.get(&home.url).await, (200, "body".to_owned()));
    assert_eq!(three.asker.routes(), one("PARENT_HIT"));
    let asker = [line(["TCP_MISS/200", "PARENT_HIT/127.0.0.43"], &home.url)];
    three.logs([&asker, &[], &[line(FETCHED, &home.url), line(HIT, &home.url)]]).await;
}

#[tokio::test]
async fn a_home_that_is_nearer_than_those_who_have_it_gives_it() {
    let (three, (url, count)) = (Three::start().await, origin().await);
    for member in [&three.sibling, &three.parent] {
        assert_eq!(member.get(&url).await.0, 200);
    }
    // What the neighbors say comes later.
    assert_eq!(three.asker.get(&url).await, (200, "body".to_owned()));
    assert_eq!((three.asker.routes(), count.load(Ordering::SeqCst)), (one("SOURCE_FASTEST"), 3));
    three.open();
    let have = async || three.asker.neighbors().await.iter().all(|it| it.hits == 1);
    until("both have said that they have it", have).await;
    let asker = [line(["TCP_MISS/200", "SOURCE_FASTEST/127.0.0.1"], &url)];
    let fetched = [line(FETCHED, &url)];
    three.logs([&asker, &fetched, &fetched]).await;
}

#[tokio::test]
async fn where_nobody_has_it_a_near_home_gives_it() {
    let (three, (url, count)) = (Three::start().await, origin().await);
    three.links[0].open();
    assert_eq!(three.asker.get(&url).await, (200, "body".to_owned()));
    assert_eq!((three.asker.routes(), count.load(Ordering::SeqCst)), (one("SOURCE_FASTEST"), 1));
    // The parent is farther than the home.
    three.open();
    three.have_missed(1).await;
    let asker = [line(["TCP_MISS/200", "SOURCE_FASTEST/127.0.0.1"], &url)];
    three.logs([&asker, &[], &[]]).await;
}

#[tokio::test]
async fn where_nobody_has_it_and_the_home_is_far_the_parent_fetches_it() {
    let (three, home) = (Three::start().await, TurningFar::new().far().await);
    three.open();
    let (proxy, url) = (three.asker.proxy.clone(), home.url.clone());
    let asking = tokio::spawn({
        let url = url.clone();
        async move { get(&proxy, &url).await }
    });
    let is_asked = async || three.asker.routes() == one("FIRST_PARENT_MISS");
    until("the parent is asked", is_asked).await;
    let home = home.returns("body");
    assert_eq!(asking.await.unwrap(), (200, "body".to_owned()));
    three.have_missed(1).await;
    let asker = [line(["TCP_MISS/200", "FIRST_PARENT_MISS/127.0.0.43"], &url)];
    three.logs([&asker, &[], &[line(FETCHED, &url)]]).await;
    home.abort();
}

#[tokio::test]
async fn a_dead_sibling_is_waited_for_by_nobody_while_the_parent_gives_what_it_has() {
    const MANY: usize = 12;
    let (mut three, stop) = (Three::start().await, Shutdown::new());
    three.open();
    let (url, _count, serving) = origin_until(stop.clone()).await;
    let urls: Vec<Url> = (0..MANY).map(|n| url.join(&n.to_string()).unwrap()).collect();
    for url in &urls {
        assert_eq!(three.parent.get(url).await.0, 200);
    }
    three.sibling.end().await;
    // Nobody but the parent can give them now.
    stop.start();
    serving.await.unwrap().unwrap();
    for url in &urls {
        assert_eq!(three.asker.get(url).await, (200, "body".to_owned()));
    }
    assert_eq!(three.asker.routes()["PARENT_HIT"], MANY as u64);
    let told = three.asker.neighbors().await;
    assert_eq!([told[0].is_dead, told[1].is_dead], [true, false], "{told:?}");
    assert!(told[1].round_trip_ms.is_some(), "{told:?}");
    let page = three.asker.page("statistics").await;
    assert!(page.contains("dead</span>") && page.contains("round trip "), "{page}");
    // Of what nobody has only the parent says so, and it is asked at once.
    let (began, nobody) = (clock::monotonic(), url.join("/nobody").unwrap());
    for _ in 0..5 {
        assert_eq!(three.asker.get(&nobody).await.0, 502);
    }
    assert!(began.elapsed() < 5 * PATIENCE, "{:?}", began.elapsed());
    assert_eq!(three.asker.routes()["FIRST_PARENT_MISS"], 5);
    let all = |what| -> Vec<String> { urls.iter().map(|it| line(what, it)).collect() };
    let taken = all(["TCP_MISS/200", "PARENT_HIT/127.0.0.43"]);
    let failed = vec![line(["TCP_MISS/502", "FIRST_PARENT_MISS/127.0.0.43"], &nobody); 5];
    let asker = [taken, failed].concat();
    let refused = vec![line(["NONE_NONE/502", "HIER_NONE/-"], &nobody); 5];
    let parent = [all(FETCHED), all(HIT), refused].concat();
    three.logs([&asker, &[], &parent]).await;
}

#[tokio::test]
async fn who_may_not_ask_private_addresses_has_neighbors_there_and_nothing_of_homes_there() {
    let (home, count) = origin().await;
    let (host, url) = (NAME.to_owned(), home.join("/").unwrap());
    let three =
        Three::with(|it| it.allow_private = false, |it| it.origins.push(Origin { host, url }));
    let three = three.await;
    three.open();
    let at = |path: &str| Url::parse(&format!("http://{NAME}/{path}")).unwrap();
    // The parent has it, or fetches it.
    assert_eq!(three.parent.get(&at("a")).await.0, 200);
    for path in ["a", "b"] {
        assert_eq!(three.asker.get(&at(path)).await, (200, "body".to_owned()));
    }
    let routes = three.asker.routes();
    assert_eq!([routes["PARENT_HIT"], routes["FIRST_PARENT_MISS"]], [1, 1], "{routes:?}");
    assert_eq!(count.load(Ordering::SeqCst), 2);
    // What is at a private address nobody gives it, whoever has it.
    assert_eq!(three.parent.get(&home).await.0, 200);
    let (status, why) = three.asker.get(&home).await;
    assert!(status == 403 && why.contains("allow_private"), "{status}: {why}");
    assert_eq!((count.load(Ordering::SeqCst), three.parent.answers("hit")), (3, 1));
}
