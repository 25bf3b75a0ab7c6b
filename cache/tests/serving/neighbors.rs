//! Tests of what neighbors say to each other: who is asked and when, who is believed, and what becomes of
//! a neighbor that does not keep its word.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::atomic::Ordering;
use std::time::Duration;

use crate::members::{Member, TurningFar, get, neighbor, one, origin};
use cache::neighbors::Neighbor;
use cache::resolution::Kind;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, UdpSocket};
use tokio::time::timeout;
use url::Url;

/// Time in which what is waited for has to come.
const PATIENCE: Duration = Duration::from_secs(30);

/// ICP's numbers for what is said.
const HIT: u8 = 2;
const MISS: u8 = 3;

/// A neighbor whose words are the test's.
struct Scripted {
    icp: UdpSocket,
    http: TcpListener,
}

/// A question that has come.
struct Query {
    bytes: Vec<u8>,
    from: SocketAddr,
}

impl Query {
    fn url(&self) -> &str {
        std::str::from_utf8(&self.bytes[24..self.bytes.len() - 1]).unwrap()
    }

    /// Returns an answer under the number of the question, plus `more`, about this URL.
    fn answer(&self, opcode: u8, more: u32, url: &str) -> Vec<u8> {
        let number = u32::from_be_bytes(self.bytes[4..8].try_into().unwrap()).wrapping_add(more);
        let length = u16::try_from(20 + url.len() + 1).unwrap();
        let front = [&[opcode, 2], &length.to_be_bytes()[..], &number.to_be_bytes(), &[0; 12]];
        [&front.concat(), url.as_bytes(), &[0]].concat()
    }
}

impl Scripted {
    async fn start(n: u8) -> Self {
        let at = (Ipv4Addr::new(127, 0, 0, n), 0);
        Self { icp: UdpSocket::bind(at).await.unwrap(), http: TcpListener::bind(at).await.unwrap() }
    }

    /// Returns it as its neighbors name it.
    fn named(&self, kind: Kind, domains: &[&str]) -> Neighbor {
        let at = self.icp.local_addr().unwrap();
        let ports = (self.http.local_addr().unwrap().port(), at.port());
        let std::net::IpAddr::V4(ip) = at.ip() else { panic!() };
        let domains = domains.iter().map(|it| (*it).to_owned()).collect();
        Neighbor { domains, ..neighbor(ip.octets()[3], ports, kind) }
    }

    /// Waits for a question.
    async fn query(&self) -> Query {
        let mut bytes = vec![0; 2_000];
        let (count, from) =
            timeout(PATIENCE, self.icp.recv_from(&mut bytes)).await.unwrap().unwrap();
        bytes.truncate(count);
        Query { bytes, from }
    }

    async fn says(&self, query: &Query, opcode: u8) {
        let answer = query.answer(opcode, 0, query.url());
        self.icp.send_to(&answer, query.from).await.unwrap();
    }

    /// Answers one request with this status; returns its head.
    async fn gives(&self, status: &str) -> String {
        let (mut stream, _) = timeout(PATIENCE, self.http.accept()).await.unwrap().unwrap();
        let mut head = vec![0; 4_000];
        let count = stream.read(&mut head).await.unwrap();
        let answer = format!("HTTP/1.1 {status}\r\nContent-Length: 4\r\n\r\nevil");
        stream.write_all(answer.as_bytes()).await.unwrap();
        String::from_utf8(head[..count].to_vec()).unwrap()
    }

    /// Returns the URLs of all that has been asked.
    fn asked(&self) -> Vec<String> {
        let (mut bytes, mut all) = (vec![0; 2_000], Vec::new());
        while let Ok((count, from)) = self.icp.try_recv_from(&mut bytes) {
            all.push(Query { bytes: bytes[..count].to_vec(), from }.url().to_owned());
        }
        all
    }
}

/// Waits until something is so.
async fn until(what: &str, is_so: impl Fn() -> bool) {
    let waited = timeout(PATIENCE, async {
        while !is_so() {
            tokio::task::yield_now().await;
        }
    });
    assert!(waited.await.is_ok(), "{what}");
}

/// Returns a home that is far: what it had, somebody else has got.
async fn far() -> TurningFar {
    let other = Member::start(20, vec![]).await;
    TurningFar::new().given_to(&other.proxy).await
}

#[tokio::test]
async fn neighbors_are_asked_for_their_domains_alone() {
    let (url, _count) = origin().await;
    let [one, other, all] = [21, 22, 23].map(Scripted::start);
    let (one, other, all) = tokio::join!(one, other, all);
    let neighbors = vec![
        one.named(Kind::Sibling, &["localhost"]),
        other.named(Kind::Parent, &["127.0.0.1", "example.org"]),
        all.named(Kind::Sibling, &[]),
    ];
    let asker = Member::start(24, neighbors).await;
    let named = Url::parse(&url.as_str().replace("127.0.0.1", "localhost")).unwrap();
    for url in [&named, &url] {
        assert_eq!(asker.get(url).await.0, 200);
    }
    // The home is near: it was asked before any of them answered.
    assert_eq!(
        asker.routes(),
        std::collections::BTreeMap::from([("SOURCE_FASTEST".to_owned(), 2)])
    );
    assert_eq!(one.asked(), [named.as_str()]);
    assert_eq!(other.asked(), [url.as_str()]);
    assert_eq!(all.asked(), [named.as_str(), url.as_str()]);
}

#[tokio::test]
async fn a_sibling_is_asked_for_what_it_has_alone_and_gone_around_if_it_has_it_not() {
    for status in [
        "504 Gateway Timeout",
        "403 Forbidden",
        "407 Proxy Authentication Required",
        "503 Service Unavailable",
        "508 Loop Detected",
        "cut off",
    ] {
        let (sibling, home) = (Scripted::start(25).await, far().await);
        let asker = Member::start(26, vec![sibling.named(Kind::Sibling, &[])]).await;
        let (proxy, url) = (asker.proxy.clone(), home.url.clone());
        let asking = tokio::spawn(async move { get(&proxy, &url).await });
        let query = sibling.query().await;
        assert_eq!(query.url(), home.url.as_str());
        sibling.says(&query, HIT).await;
        let head = if status == "cut off" {
            let (stream, _) = sibling.http.accept().await.unwrap();
            drop(stream);
            None
        } else {
            Some(sibling.gives(status).await)
        };
        let home = home.returns("home");
        assert_eq!(asking.await.unwrap(), (200, "home".to_owned()), "{status}");
        assert_eq!(asker.routes(), one("NEIGHBOR_HIT"), "{status}");
        if let Some(head) = head {
            assert!(head.to_lowercase().contains("cache-control: only-if-cached"), "{head}");
        }
        home.abort();
    }
}

#[tokio::test]
async fn a_parent_is_asked_for_whatever_it_can_fetch() {
    let (parent, home) = (Scripted::start(27).await, far().await);
    let asker = Member::start(28, vec![parent.named(Kind::Parent, &[])]).await;
    let (proxy, url) = (asker.proxy.clone(), home.url.clone());
    let asking = tokio::spawn(async move { get(&proxy, &url).await });
    parent.says(&parent.query().await, MISS).await;
    let head = parent.gives("200 OK").await;
    assert!(!head.to_lowercase().contains("only-if-cached"), "{head}");
    assert_eq!(asking.await.unwrap(), (200, "evil".to_owned()));
    assert_eq!(asker.routes(), one("FIRST_PARENT_MISS"));
}

#[tokio::test]
async fn a_parent_that_refuses_is_gone_around_and_one_that_tells_of_an_error_is_not() {
    for (status, expected) in [
        ("403 Forbidden", (200, "home")),
        ("407 Proxy Authentication Required", (200, "home")),
        ("508 Loop Detected", (200, "home")),
        ("503 Service Unavailable", (503, "evil")),
    ] {
        let (parent, home) = (Scripted::start(36).await, far().await);
        let asker = Member::start(37, vec![parent.named(Kind::Parent, &[])]).await;
        let (proxy, url) = (asker.proxy.clone(), home.url.clone());
        let asking = tokio::spawn(async move { get(&proxy, &url).await });
        parent.says(&parent.query().await, MISS).await;
        parent.gives(status).await;
        let home = home.returns("home");
        assert_eq!(asking.await.unwrap(), (expected.0, expected.1.to_owned()), "{status}");
        home.abort();
    }
}

#[tokio::test]
async fn a_parents_refusal_is_told_if_the_home_cannot_be_asked() {
    let parent = Scripted::start(38).await;
    let closed = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = Url::parse(&format!("http://{}/", closed.local_addr().unwrap())).unwrap();
    drop(closed);
    let asker = Member::start(39, vec![parent.named(Kind::Parent, &[])]).await;
    let proxy = asker.proxy.clone();
    let asking = tokio::spawn(async move { get(&proxy, &url).await });
    parent.says(&parent.query().await, MISS).await;
    parent.gives("403 Forbidden").await;
    assert_eq!(asking.await.unwrap(), (403, "evil".to_owned()), "it may be the home's");
}

#[tokio::test]
async fn nobody_is_believed_who_was_not_asked() {
    let (sibling, home) = (Scripted::start(29).await, far().await);
    let stranger = UdpSocket::bind((Ipv4Addr::new(127, 0, 0, 30), 0)).await.unwrap();
    let here = UdpSocket::bind((Ipv4Addr::new(127, 0, 0, 29), 0)).await.unwrap();
    let asker = Member::start(31, vec![sibling.named(Kind::Sibling, &[])]).await;
    let (proxy, url) = (asker.proxy.clone(), home.url.clone());
    let asking = tokio::spawn(async move { get(&proxy, &url).await });
    let query = sibling.query().await;
    let right = query.answer(HIT, 0, query.url());
    // While the question is open: of another number, or about another URL, from the right place; the right
    // words from another address, and from another port of the same.
    sibling.icp.send_to(&query.answer(HIT, 1, query.url()), query.from).await.unwrap();
    let other = home.url.join("/other").unwrap();
    sibling.icp.send_to(&query.answer(HIT, 0, other.as_str()), query.from).await.unwrap();
    stranger.send_to(&right, query.from).await.unwrap();
    here.send_to(&right, query.from).await.unwrap();
    // Datagrams are read in order.
    until("strangers are ignored", || asker.handle.status().icp_ignored == 2).await;
    assert!(asker.routes().is_empty(), "nothing is decided: {:?}", asker.routes());
    sibling.says(&query, MISS).await;
    let home = home.returns("home");
    assert_eq!(asking.await.unwrap(), (200, "home".to_owned()));
    // A busy machine may take longer than answers are waited for.
    assert!(
        [one("DIRECT"), one("TIMEOUT_DIRECT")].contains(&asker.routes()),
        "{:?}",
        asker.routes()
    );
    let is_asked = timeout(Duration::from_millis(1), sibling.http.accept()).await;
    assert!(is_asked.is_err(), "the sibling was asked for the object");
    home.abort();
}

#[tokio::test]
async fn a_dead_neighbor_lives_again_when_it_answers() {
    let (url, _count) = origin().await;
    let sibling = Scripted::start(32).await;
    let port = sibling.icp.local_addr().unwrap().port();
    // It will be there for clients at the same port.
    let named = neighbor(32, (port, port), Kind::Sibling);
    let asker = Member::start(33, vec![named]).await;
    let route = async |path: &str| {
        let before = asker.routes();
        assert_eq!(asker.get(&url.join(path).unwrap()).await.0, 200);
        let is_new = |(code, count): &(String, u64)| before.get(code) != Some(count);
        asker.routes().into_iter().find(is_new).unwrap().0
    };
    let mut silent = 0;
    while route(&format!("/{silent}")).await != "DIRECT" {
        silent += 1;
        assert!(silent < 20, "it is waited for again and again");
    }
    assert_eq!(silent, 11, "more than ten questions in turn");
    // A cache comes up in its place.
    drop(sibling);
    let sibling = Member::start_at((32, port), vec![]).await;
    let home = TurningFar::new().given_to(&sibling.proxy).await;
    assert_eq!(route("/again").await, "DIRECT", "its answer is not waited for");
    // Nobody else can give this, so that who asks before the answer has come waits in vain.
    let soon = Duration::from_secs(1);
    let mut tries = 0;
    while timeout(soon, asker.get(&home.url)).await != Ok((200, "body".to_owned())) {
        tries += 1;
        assert!(tries < 20, "it is dead for ever");
    }
    assert_eq!(asker.routes()["NEIGHBOR_HIT"], 1);
}

#[tokio::test]
async fn a_flood_of_questions_holds_up_no_client() {
    let (url, count) = origin().await;
    let member = Member::start(34, vec![]).await;
    assert_eq!(member.get(&url).await.0, 200);
    let stranger = UdpSocket::bind((Ipv4Addr::new(127, 0, 0, 35), 0)).await.unwrap();
    let at = SocketAddr::from(([127, 0, 0, 34], member.ports().1));
    let question = |number: u32, url: &str| {
        let length = u16::try_from(24 + url.len() + 1).unwrap();
        let front = [&[1, 2], &length.to_be_bytes()[..], &number.to_be_bytes(), &[0; 16]];
        [&front.concat(), url.as_bytes(), &[0]].concat()
    };
    let longest = url.join("/999").unwrap().as_str().len();
    let (mut bytes, mut answered) = ([0; 2_000], 0);
    for n in 0..20_000 {
        let asked = url.join(&format!("/{}", n % 1_000)).unwrap();
        // What has no room on the way is lost, as in any flood.
        let _ = stranger.try_send_to(&question(n, asked.as_str()), at);
        if n % 1_000 == 0 {
            assert_eq!(member.get(&url).await.0, 200);
        }
        while let Ok(came) = stranger.try_recv(&mut bytes) {
            assert!(came <= 20 + longest + 1 && bytes[0] == MISS);
            answered += 1;
        }
    }
    assert!(0 < answered);
    assert_eq!((count.load(Ordering::SeqCst), member.answers("hit")), (1, 20));
    // It is still asked by others.
    until("the last is answered", || {
        let _ = stranger.try_send_to(&question(77_777, url.as_str()), at);
        let mut bytes = [0; 2_000];
        stranger.try_recv(&mut bytes).is_ok() && bytes[0] == HIT
    })
    .await;
}
